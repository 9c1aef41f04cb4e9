package camera

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"xiaozhi/internal/text"
)

const cameraBoundary = "----ESP32_CAMERA_BOUNDARY"

const cameraType = "multipart/form-data; boundary=" + cameraBoundary

// jpegOf is the beginning of a JPEG file and n bytes.
func jpegOf(n int) string { return "\xff\xd8\xff\xe0" + strings.Repeat("\x00", n) }

// field is one part of a form as firmware writes it; head are further lines.
func field(name, head, value string) string {
	return "--" + cameraBoundary + "\r\nContent-Disposition: form-data; name=\"" + name + "\"" + head + "\r\n\r\n" + value + "\r\n"
}

const jpegHead = "; filename=\"camera.jpg\"\r\nContent-Type: image/jpeg"

// cameraForm is what firmware uploads.
func cameraForm(question, picture string) string {
	return field("question", "", question) + field("file", jpegHead, picture) + "--" + cameraBoundary + "--\r\n"
}

func TestReadUpload(t *testing.T) {
	end := "--" + cameraBoundary + "--\r\n"
	question, file := field("question", "", "what?"), field("file", jpegHead, jpegOf(9))
	whole := cameraForm("what?", jpegOf(9))
	tests := map[string]struct{ kind, body, want string }{
		"as firmware sends it":  {cameraType, whole, "what? image/jpeg 13"},
		"quoted boundary":       {`Multipart/Form-Data; boundary="` + cameraBoundary + `"`, whole, "what? image/jpeg 13"},
		"the picture first":     {cameraType, file + question + end, "what? image/jpeg 13"},
		"fields of another":     {cameraType, field("device", "", "x") + question + file + end, "what? image/jpeg 13"},
		"text after the form":   {cameraType, whole + "epilogue", "what? image/jpeg 13"},
		"a PNG that says JPEG":  {cameraType, question + field("file", jpegHead, "\x89PNG\x0D\x0A\x1A\x0A") + end, "what? image/png 8"},
		"a GIF":                 {cameraType, question + field("file", jpegHead, "GIF89a...") + end, "what? image/gif 9"},
		"a WebP":                {cameraType, question + field("file", jpegHead, "RIFF\x00\x00\x00\x00WEBPVP") + end, "what? image/webp 14"},
		"invalid UTF-8":         {cameraType, field("question", "", "wh\xffat?") + file + end, "wh\uFFFDat? image/jpeg 13"},
		"a long question":       {cameraType, field("question", "", strings.Repeat("a", maxQuestion)) + file + end, "image/jpeg 13"},
		"the largest picture":   {cameraType, question + field("file", jpegHead, jpegOf(maxPicture-4)) + end, "what? image/jpeg 4194304"},
		"no type":               {"", whole, "no multipart/form-data"},
		"JSON":                  {"application/json", whole, "no multipart/form-data"},
		"no boundary":           {"multipart/form-data", whole, "no multipart/form-data"},
		"another boundary":      {"multipart/form-data; boundary=x", whole, "before it was complete"},
		"no body":               {cameraType, "", "before it was complete"},
		"an empty form":         {cameraType, end, "no question"},
		"no question":           {cameraType, file + end, "no question"},
		"an empty question":     {cameraType, field("question", "", " \n") + file + end, "no question"},
		"two questions":         {cameraType, question + question + file + end, "more than one question"},
		"too long a question":   {cameraType, field("question", "", strings.Repeat("a", maxQuestion+1)) + file + end, "question is longer than 8192"},
		"no picture":            {cameraType, question + end, "no picture (field file)"},
		"an empty picture":      {cameraType, question + field("file", jpegHead, "") + end, "no picture (field file)"},
		"two pictures":          {cameraType, question + file + file + end, "more than one picture"},
		"a text as the picture": {cameraType, question + field("file", jpegHead, "hello") + end, "but text/plain"},
		"a page as the picture": {cameraType, question + field("file", jpegHead, "<html>") + end, "but text/html"},
		"too large a picture":   {cameraType, question + field("file", jpegHead, jpegOf(maxPicture-3)) + end, "picture is larger than 4194304"},
		"too large a form":      {cameraType, field("x", "", strings.Repeat("a", maxUpload)) + question + file + end, "upload is larger than 5242880"},
		"many fields":           {cameraType, strings.Repeat(field("x", "", "y"), maxParts) + question + file + end, "more than 8 fields"},
		"cut in the question":   {cameraType, question[:len(question)-4], "before it was complete"},
		"cut in a head":         {cameraType, question + file[:60], "no picture (field file)"}, // which looks like the form's end
		"cut in the picture":    {cameraType, question + file[:len(file)-5], "before it was complete"},
		"cut before the end":    {cameraType, question + file, "before it was complete"},
		"a broken head":         {cameraType, "--" + cameraBoundary + "\r\nno colon\r\n\r\nx\r\n" + end, "cannot be read"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for how, body := range map[string]io.Reader{
				"whole": strings.NewReader(test.body), "halves": iotest.HalfReader(strings.NewReader(test.body)),
			} {
				u, err := readUpload(test.kind, body)
				got := fmt.Sprintf("%s %s %d", u.question, u.kind, len(u.data))
				if err != nil {
					flaw, ok := errors.AsType[*uploadError](err)
					if !ok {
						t.Fatalf("%s: %T %v", how, err, err)
					}
					got = flaw.in(text.English)
					if flaw.in(text.Chinese) == flaw.id || strings.Contains(flaw.Error(), "\n") {
						t.Errorf("%s: %+v", how, flaw)
					}
				}
				if !strings.Contains(got, test.want) {
					t.Errorf("%s: got %s, want %s", how, got, test.want)
				}
			}
		})
	}
}

// TestReadUploadByteByByte: chunks may end anywhere.
func TestReadUploadByteByByte(t *testing.T) {
	u, err := readUpload(cameraType, iotest.OneByteReader(strings.NewReader(cameraForm("看到什么?", jpegOf(500)))))
	if err != nil || u.question != "看到什么?" || len(u.data) != 504 {
		t.Errorf("%q, %d bytes, %v", u.question, len(u.data), err)
	}
}

// TestReadUploadEnds: a reader that fails or never ends is no harm.
func TestReadUploadEnds(t *testing.T) {
	begun := strings.NewReader(field("question", "", "what?"))
	_, err := readUpload(cameraType, io.MultiReader(begun, iotest.ErrReader(os.ErrDeadlineExceeded)))
	if flaw, ok := errors.AsType[*uploadError](err); !ok || flaw.id != "connection/picture-late" {
		t.Errorf("a slow upload: %v", err)
	}
	_, err = readUpload(cameraType, iotest.ErrReader(errors.New("wire cut")))
	if err == nil || !strings.Contains(err.Error(), "wire cut") {
		t.Errorf("a broken wire: %v", err)
	}
	endless := io.MultiReader(strings.NewReader("--"+cameraBoundary+"\r\n"), repeat("X-Head: 1\r\n"))
	if _, err := readUpload(cameraType, endless); err == nil {
		t.Error("an endless head: no error")
	}
}

// repeat reads the same bytes for ever.
type repeat string

func (r repeat) Read(p []byte) (int, error) {
	n := 0
	for n+len(r) <= len(p) {
		n += copy(p[n:], r)
	}
	if n == 0 {
		n = copy(p, r)
	}
	return n, nil
}

func TestUploadSlots(t *testing.T) {
	l := newUploadSlots()
	for i := range maxUploads {
		if err := l.acquire(fmt.Sprint(i)); err != nil {
			t.Fatalf("device %d: %v", i, err)
		}
	}
	if err := l.acquire("0"); err == nil || !strings.Contains(err.Error(), "before this one") {
		t.Errorf("a second picture: %v", err)
	}
	if err := l.acquire("x"); err == nil || !strings.Contains(err.Error(), "Too many") {
		t.Errorf("one device too many: %v", err)
	}
	l.release("0")
	if err := l.acquire("x"); err != nil {
		t.Errorf("after one has left: %v", err)
	}
}

// FuzzReadUpload: whatever is uploaded, what is accepted has a question and a
// picture within the limits, and what is not has a reason in both languages.
func FuzzReadUpload(f *testing.F) {
	whole := cameraForm("what?", jpegOf(9))
	for _, body := range []string{whole, whole[:len(whole)/2], "", "--x--", strings.ReplaceAll(whole, "\r\n", "\n"), whole + whole, field("file", jpegHead, "GIF89a")} {
		f.Add(cameraType, []byte(body))
	}
	f.Add("multipart/form-data; boundary=x", []byte("--x\r\nContent-Disposition: form-data; name=question\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n=41\r\n--x--"))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		u, err := readUpload(kind, bytes.NewReader(body))
		if err == nil {
			if u.question == "" || len(u.question) > 3*maxQuestion || len(u.data) == 0 || len(u.data) > len(body) || !strings.HasPrefix(u.kind, "image/") {
				t.Errorf("accepted %q, %s, %d bytes", u.question, u.kind, len(u.data))
			}
			return
		}
		if flaw, ok := errors.AsType[*uploadError](err); !ok || flaw.id == "" {
			t.Errorf("%T %v", err, err)
		}
	})
}
