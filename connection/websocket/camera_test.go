package websocket

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/connection"
	"xiaozhi/connection/camera"
	"xiaozhi/connection/request"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/device"
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

// fakeEyes look at pictures as a test says.
type fakeEyes struct {
	mu   sync.Mutex
	seen []camera.Picture
	look func(ctx context.Context, p camera.Picture) (string, error) // nil: "a red disc"
}

func (f *fakeEyes) Explain(ctx context.Context, p camera.Picture) (string, error) {
	f.mu.Lock()
	f.seen = append(f.seen, p)
	f.mu.Unlock()
	if f.look != nil {
		return f.look(ctx, p)
	}
	return "a red disc", nil
}

// eyesight is a rig whose server looks at pictures, and the tools that tell the
// token of each device.
func eyesight(t *testing.T, eyes *fakeEyes, f func(t *testing.T, r *rig, visions func(deviceID string) device.Vision)) {
	t.Helper()
	var mu sync.Mutex
	told := map[string]device.Vision{}
	bubble(t, func(o *setup) {
		o.Explainer = eyes
		o.Language = "en"
		o.Settings = func(id string) connection.Settings {
			if strings.HasPrefix(id, "zh") {
				return connection.Settings{Language: "zh"}
			}
			return connection.Settings{}
		}
		o.NewTools = func(s wire.Session, link connection.Link) connection.Tools {
			mu.Lock()
			defer mu.Unlock()
			told[s.DeviceID] = *link.Vision
			return &fakeTools{link: link}
		}
	}, func(t *testing.T, r *rig) {
		f(t, r, func(id string) device.Vision {
			mu.Lock()
			defer mu.Unlock()
			return told[id]
		})
	})
}

// seeing connects a device that has a camera.
func (r *rig) seeing(deviceID string) {
	p := r.dial(deviceID)
	p.send(`{"type":"hello","version":1,"features":{"mcp":true},"transport":"websocket"}`)
	synctest.Wait()
}

// photo is one upload, as firmware makes it unless a field says otherwise.
type photo struct {
	path   string
	device string
	token  string
	kind   string // Content-Type
	form   string
	length bool   // Content-Length in place of chunks
	feed   func() // called before each chunk; nil: they come at once
}

// shown is the answer to an upload, as it came over the wire.
type shown struct {
	status string
	header http.Header
	body   string
	answer struct {
		Success          bool
		Action, Response string
		Message          string
	}
}

// upload sends a photo over a wire of its own.
func (r *rig) upload(p photo) shown {
	r.t.Helper()
	if p.path == "" {
		p.path = request.VisionPath
	}
	if p.kind == "" {
		p.kind = cameraType
	}
	if p.form == "" {
		p.form = cameraForm("what is it?", jpegOf(3000))
	}
	wire, err := r.ln.dial()
	if err != nil {
		r.t.Error(err)
		return shown{}
	}
	defer wire.Close()
	head := "POST " + p.path + " HTTP/1.1\r\nHost: 192.0.2.10:8000\r\nContent-Type: " + p.kind + "\r\nClient-Id: c-1\r\n"
	if p.device != "" {
		head += "Device-Id: " + p.device + "\r\n"
	}
	if p.token != "" {
		head += "Authorization: Bearer " + p.token + "\r\n"
	}
	sent := make(chan struct{})
	go func() { // the server may answer before all is sent; then the wire is closed
		defer close(sent)
		if p.length {
			fmt.Fprintf(wire, "%sContent-Length: %d\r\n\r\n%s", head, len(p.form), p.form)
			return
		}
		fmt.Fprintf(wire, "%sTransfer-Encoding: chunked\r\n\r\n", head)
		for rest := p.form; rest != ""; {
			n := min(len(rest), 512)
			if p.feed != nil {
				p.feed()
			}
			if _, err := fmt.Fprintf(wire, "%x\r\n%s\r\n", n, rest[:n]); err != nil {
				return
			}
			rest = rest[n:]
		}
		fmt.Fprint(wire, "0\r\n\r\n")
	}()
	s := r.readShown(wire)
	wire.Close()
	<-sent
	return s
}

func (r *rig) readShown(wire io.Reader) (s shown) {
	r.t.Helper()
	raw := bufio.NewReader(wire)
	s.status, _ = raw.ReadString('\n')
	s.status = strings.TrimSpace(s.status)
	s.header = http.Header{}
	for {
		line, err := raw.ReadString('\n')
		if line = strings.TrimSpace(line); line == "" || err != nil {
			break
		}
		name, value, _ := strings.Cut(line, ": ")
		s.header.Add(name, value)
	}
	body, _ := io.ReadAll(raw)
	s.body = string(body)
	if err := json.Unmarshal(body, &s.answer); err != nil {
		r.t.Errorf("status %q, body %q: %v; log:\n%s", s.status, s.body, err, r.log)
	}
	return s
}

// check holds an answer to what firmware can take.
func (s shown) check(t *testing.T) {
	t.Helper()
	if s.status != "HTTP/1.1 200 OK" || s.header.Get("Content-Length") != fmt.Sprint(len(s.body)) ||
		s.header.Get("Transfer-Encoding") != "" || len(s.body) >= 8<<10 {
		t.Errorf("%s %v, body of %d bytes", s.status, s.header, len(s.body))
	}
}

func TestVisionExplains(t *testing.T) {
	eyes := &fakeEyes{}
	eyesight(t, eyes, func(t *testing.T, r *rig, visions func(string) device.Vision) {
		r.seeing("AA:01")
		v := visions("aa:01")
		if v.URL != "http://server:8000/mcp/vision/explain" || !strings.HasPrefix(v.Token, "vis_") {
			t.Errorf("the device is told %+v", v)
		}
		for _, path := range []string{
			"/mcp/vision/explain", "/mcp/vision/explain/", "//mcp/vision/explain", "/api/vision", "/api/vision/",
			"/xiaozhi/api/vision", "/xiaozhi/api/vision/",
		} {
			for _, length := range []bool{false, true} {
				s := r.upload(photo{path: path, device: "AA:01", token: v.Token, length: length})
				s.check(t)
				if want := `{"success":true,"action":"RESPONSE","response":"a red disc"}`; s.body != want {
					t.Errorf("%s: %s, want %s", path, s.body, want)
				}
			}
		}
		p := eyes.seen[0]
		if p.DeviceID != "aa:01" || p.Language != "en" || p.Question != "what is it?" || p.MIMEType != "image/jpeg" || string(p.Data) != jpegOf(3000) {
			t.Errorf("the eyes saw %+v of %d bytes", p, len(p.Data))
		}
		if len(r.log.lines("picture explained", "device_id=aa:01", "size=3004")) == 0 || strings.Contains(r.log.String(), v.Token) {
			t.Errorf("log: %s", r.log)
		}
	})
}

// TestVisionToken: each connection has its own, and nobody else's is good.
func TestVisionToken(t *testing.T) {
	eyes := &fakeEyes{}
	eyesight(t, eyes, func(t *testing.T, r *rig, visions func(string) device.Vision) {
		r.seeing("aa:01")
		first := visions("aa:01").Token
		r.seeing("aa:01") // it comes again
		r.seeing("aa:02")
		mine, other := visions("aa:01").Token, visions("aa:02").Token
		if first == mine || mine == other {
			t.Errorf("tokens %s, %s, %s", first, mine, other)
		}
		for name, p := range map[string]photo{
			"no token":               {device: "aa:01"},
			"a wrong token":          {device: "aa:01", token: "vis_x"},
			"an older connection's":  {device: "aa:01", token: first},
			"another device's token": {device: "aa:01", token: other},
			"an unknown device":      {device: "aa:03", token: mine},
			"no device":              {token: mine},
			"an odd device":          {device: strings.Repeat("a", 200), token: mine},
		} {
			s := r.upload(p)
			if s.status != "HTTP/1.1 401 Unauthorized" || s.answer.Success || s.answer.Message == "" || s.header.Get("Content-Length") != fmt.Sprint(len(s.body)) {
				t.Errorf("%s: %s %s", name, s.status, s.body)
			}
		}
		if len(eyes.seen) != 0 {
			t.Errorf("%d pictures were looked at", len(eyes.seen))
		}
		r.upload(photo{device: "aa:01", token: mine}).check(t)
		for _, token := range []string{first, mine, other} {
			if strings.Contains(r.log.String(), token) {
				t.Error("a token is in the log")
			}
		}
	})
}

// TestVisionMistakes: every mistake in an upload is a sentence for the
// model, in the device's language, that the device passes on.
func TestVisionMistakes(t *testing.T) {
	end := "--" + cameraBoundary + "--\r\n"
	question := field("question", "", "what?")
	eyes := &fakeEyes{}
	eyesight(t, eyes, func(t *testing.T, r *rig, visions func(string) device.Vision) {
		r.seeing("en:01")
		r.seeing("zh:01")
		for name, test := range map[string]struct {
			photo  photo
			en, zh string
		}{
			"no form":      {photo{kind: "image/jpeg", form: jpegOf(10)}, "no multipart/form-data", "不是 multipart"},
			"no question":  {photo{form: field("file", jpegHead, jpegOf(9)) + end}, "no question", "没有收到关于图片的问题"},
			"no file":      {photo{form: question + end}, "no picture", "没有收到图片"},
			"a wrong type": {photo{form: question + field("file", jpegHead, "<html>") + end}, "is no picture", "不是图片"},
			"truncated":    {photo{form: question + field("file", jpegHead, jpegOf(2000))}, "ended before", "不完整"},
			"too large":    {photo{form: question + field("file", jpegHead, jpegOf(4<<20)) + end, length: true}, "larger than 4194304", "图片太大"},
		} {
			test.photo.device, test.photo.token = "en:01", visions("en:01").Token
			s := r.upload(test.photo)
			s.check(t)
			if s.answer.Success || !strings.Contains(s.answer.Message, test.en) {
				t.Errorf("%s: %s, want %s", name, s.body, test.en)
			}
			test.photo.device, test.photo.token = "zh:01", visions("zh:01").Token
			if s := r.upload(test.photo); s.answer.Success || !strings.Contains(s.answer.Message, test.zh) {
				t.Errorf("%s: %s, want %s", name, s.body, test.zh)
			}
		}
		if len(eyes.seen) != 0 {
			t.Errorf("%d pictures were looked at", len(eyes.seen))
		}
	})
}

// TestVisionFailures: a model that fails, crashes, says nothing, too much or
// takes too long.
func TestVisionFailures(t *testing.T) {
	hang := func(ctx context.Context, _ camera.Picture) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	fails := func(err error) func(context.Context, camera.Picture) (string, error) {
		return func(context.Context, camera.Picture) (string, error) { return "", err }
	}
	says := func(text string) func(context.Context, camera.Picture) (string, error) {
		return func(context.Context, camera.Picture) (string, error) { return text, nil }
	}
	for name, test := range map[string]struct {
		look func(context.Context, camera.Picture) (string, error)
		want string
		took time.Duration
	}{
		"an excuse":        {fails(fmt.Errorf("look: %w", &camera.ExcuseError{Text: "no model that can see"})), `{"success":false,"message":"no model that can see"}`, 0},
		"an error":         {fails(errors.New("secret inner words")), `{"success":false,"message":"Looking at the picture failed. Try again later."}`, 0},
		"a crash":          {func(context.Context, camera.Picture) (string, error) { panic("oh") }, `{"success":false,"message":"Looking at the picture failed. Try again later."}`, 0},
		"silence":          {says(""), `{"success":false,"message":"Looking at the picture failed. Try again later."}`, 0},
		"no end":           {hang, `{"success":false,"message":"The model that sees did not answer in time. Try again later."}`, 25 * time.Second},
		"a long text":      {says(strings.Repeat("长", 5000)), `{"success":true,"action":"RESPONSE","response":"` + strings.Repeat("长", 1333) + `…"}`, 0},
		"signs to escape":  {says(strings.Repeat("\x01", 4000)), `{"success":true,"action":"RESPONSE","response":"` + strings.Repeat(`\u0001`, 1000), 0},
		"quotes and lines": {says("\"a\"\n<b>"), `{"success":true,"action":"RESPONSE","response":"\"a\"\n<b>"}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			eyesight(t, &fakeEyes{look: test.look}, func(t *testing.T, r *rig, visions func(string) device.Vision) {
				r.seeing("aa:01")
				began := time.Now()
				s := r.upload(photo{device: "aa:01", token: visions("aa:01").Token})
				s.check(t)
				if !strings.HasPrefix(s.body, test.want) || time.Since(began) != test.took {
					t.Errorf("after %v: %.200s\nwant %.200s", time.Since(began), s.body, test.want)
				}
				if again := r.upload(photo{device: "aa:01", token: visions("aa:01").Token}); strings.Contains(again.body, "still being looked at") {
					t.Error("the slot is still taken")
				}
			})
		})
	}
}

// TestVisionSlowModel: a model may think longer than an upload may take.
func TestVisionSlowModel(t *testing.T) {
	look := func(ctx context.Context, _ camera.Picture) (string, error) {
		select {
		case <-time.After(20 * time.Second):
			return "at last", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	eyesight(t, &fakeEyes{look: look}, func(t *testing.T, r *rig, visions func(string) device.Vision) {
		r.seeing("aa:01")
		began := time.Now()
		pause := 18 * time.Second // upload and answer together take longer than uploadTime
		s := r.upload(photo{device: "aa:01", token: visions("aa:01").Token, feed: func() {
			time.Sleep(pause)
			pause = 0
		}})
		s.check(t)
		if s.answer.Response != "at last" || time.Since(began) != 38*time.Second {
			t.Errorf("after %v: %s", time.Since(began), s.body)
		}
	})
}

// TestVisionSlowUpload: one that drips ends in time; meanwhile the same device
// gets no second one, and another device is served as ever.
func TestVisionSlowUpload(t *testing.T) {
	eyesight(t, &fakeEyes{}, func(t *testing.T, r *rig, visions func(string) device.Vision) {
		r.seeing("aa:01")
		r.seeing("aa:02")
		mine, other := visions("aa:01").Token, visions("aa:02").Token
		began := time.Now()
		var slow shown
		done := make(chan struct{})
		go func() {
			defer close(done)
			slow = r.upload(photo{device: "aa:01", token: mine, feed: func() { time.Sleep(10 * time.Second) }})
		}()
		time.Sleep(15 * time.Second)
		s := r.upload(photo{device: "aa:01", token: mine})
		s.check(t)
		if !strings.Contains(s.answer.Message, "before this one") {
			t.Errorf("a second picture: %s", s.body)
		}
		if s := r.upload(photo{device: "aa:02", token: other}); !s.answer.Success || time.Since(began) != 15*time.Second {
			t.Errorf("another device after %v: %s", time.Since(began), s.body)
		}
		<-done
		slow.check(t)
		if !strings.Contains(slow.answer.Message, "longer than 30s") || time.Since(began) > 41*time.Second {
			t.Errorf("the slow one after %v: %s", time.Since(began), slow.body)
		}
		if s := r.upload(photo{device: "aa:01", token: mine}); !s.answer.Success {
			t.Errorf("afterwards: %s", s.body)
		}
	})
}

// TestVisionDeviceLeaves: a model's work ends when nobody waits for the answer.
func TestVisionDeviceLeaves(t *testing.T) {
	left := make(chan error, 1)
	look := func(ctx context.Context, _ camera.Picture) (string, error) {
		<-ctx.Done()
		left <- context.Cause(ctx)
		return "", ctx.Err()
	}
	eyesight(t, &fakeEyes{look: look}, func(t *testing.T, r *rig, visions func(string) device.Vision) {
		r.seeing("aa:01")
		wire, err := r.ln.dial()
		if err != nil {
			t.Fatal(err)
		}
		form := cameraForm("what?", jpegOf(100))
		fmt.Fprintf(wire, "POST %s HTTP/1.1\r\nHost: h\r\nDevice-Id: aa:01\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
			request.VisionPath, visions("aa:01").Token, cameraType, len(form), form)
		time.Sleep(time.Second)
		began := time.Now()
		wire.Close()
		if err := <-left; !errors.Is(err, context.Canceled) || time.Since(began) != 0 {
			t.Errorf("the model was told %v after %v", err, time.Since(began))
		}
	})
}

func TestVisionMethods(t *testing.T) {
	eyesight(t, &fakeEyes{}, func(t *testing.T, r *rig, _ func(string) device.Vision) {
		client := &http.Client{Transport: r.transport()}
		defer client.CloseIdleConnections()
		for method, want := range map[string]int{"GET": 405, "PUT": 405, "HEAD": 405, "OPTIONS": 204, "POST": 401} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://server"+request.VisionPath, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Origin", "http://localhost:8006")
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != want || resp.Header.Get("Access-Control-Allow-Origin") != "http://localhost:8006" {
				t.Errorf("%s: %d, want %d", method, resp.StatusCode, want)
			}
		}
	})
}

// TestNoVision: where nobody looks at pictures, no device is told to send any.
func TestNoVision(t *testing.T) {
	var told *device.Vision
	bubble(t, func(o *setup) {
		o.NewTools = func(_ wire.Session, link connection.Link) connection.Tools {
			told = link.Vision
			return &fakeTools{link: link}
		}
	}, func(t *testing.T, r *rig) {
		r.seeing("aa:01")
		if told != nil {
			t.Errorf("the device is told %+v", told)
		}
		client := &http.Client{Transport: r.transport()}
		defer client.CloseIdleConnections()
		resp, err := client.Post("http://server"+request.VisionPath, cameraType, strings.NewReader(cameraForm("a", jpegOf(1))))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("status %d", resp.StatusCode)
		}
	})
}
