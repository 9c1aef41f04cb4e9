package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/testall"
	"xiaozhi/knowledge/readertest"
)

// TestDocumentsAreRead: the built program reads the files of a folder and what is uploaded, each in a process of its own; one that is hostile
// gets a sentence, and the rest is found. A device without a model is told what stands there.
func TestDocumentsAreRead(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), testall.Pick(10*time.Minute, 2*time.Minute))
	defer cancel()
	papers := t.TempDir()
	pdf := readertest.PDF(readertest.PDFOptions{}, "The lease ends on the third of May.")
	files := map[string][]byte{
		"fridge.docx": readertest.DOCX("# Care", "Clean the filter each month."),
		"bomb.docx":   readertest.Word("<w:p><w:r><w:t>" + strings.Repeat("a", 20<<20) + "</w:t></w:r></w:p>"),
		"binary.txt":  []byte("a\x00b\x01\x02\x03"),
	}
	if testall.Running() { // what reads PDFs is translated first, which takes seconds
		files["lease.pdf"], files["locked.pdf"] = pdf, readertest.PDF(readertest.PDFOptions{Password: "x"}, "text")
		files["bomb.pdf"] = readertest.PDFBomb(300)
		files["broken.pdf"] = append(bytes.Repeat([]byte("%PDF-1.7 "), 1000), pdf[:len(pdf)/2]...)
	}
	for name, data := range files {
		settled(t, filepath.Join(papers, name), data)
	}
	s := start(t, setup{config: "agents: {default: {language: en, knowledge: ['" + papers + "']}}\n"})
	request := s.documents(ctx, t)
	var made map[string]any
	request("PUT", "/documents?name="+url.QueryEscape("note.html"), strings.NewReader("<html><p>The key is under the mat."), &made)
	states, want := map[string]string{}, map[string]string{
		"fridge.docx": "ready", "bomb.docx": "bomb", "bomb.pdf": "heavy", "binary.txt": "binary", "note.html": "ready", "lease.pdf": "ready", "locked.pdf": "encrypted", "broken.pdf": "ready",
	}
	for waiting := true; waiting; time.Sleep(50 * time.Millisecond) {
		var all struct {
			Documents []struct{ Name, State, Fault, Problem string }
		}
		request("GET", "/documents", nil, &all)
		waiting = len(all.Documents) <= len(files)
		for _, d := range all.Documents {
			waiting = waiting || d.State == "waiting"
			if states[d.Name] = d.State; d.Fault != "" {
				states[d.Name] = d.Fault
			}
			if (d.Fault != "") != strings.Contains(d.Problem, " / ") {
				t.Errorf("%s: %s: %s", d.Name, d.Fault, d.Problem)
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("not read in time: %v", states)
		}
	}
	delete(want, "broken.pdf") // PDFium mends what it can: it is read, or has a fault
	for name, state := range states {
		if want[name] != "" && want[name] != state {
			t.Errorf("%s is %s, want %s", name, state, want[name])
		}
	}
	var found struct {
		Found []struct{ Name, Text string }
	}
	request("GET", "/search?q=where+is+the+key", nil, &found)
	if len(found.Found) != 1 || found.Found[0].Name != "note.html" {
		t.Errorf("found %+v", found)
	}
	d := s.dial(ctx, t, devicetest.Options{NoMCP: true})
	if r := ask(ctx, t, d, "what do my papers say about the filter"); r.Text() != "In fridge.docx, Care it says: Clean the filter each month." {
		t.Errorf("the device says %q", r.Text())
	}
}

// settled writes a file that looks as if nobody writes to it any more.
func settled(t *testing.T, name string, data []byte) {
	t.Helper()
	old := time.Now().Add(-time.Minute)
	if err := errors.Join(os.WriteFile(name, data, 0o600), os.Chtimes(name, old, old)); err != nil {
		t.Fatal(err)
	}
}

// documents returns what asks for the documents of the default agent.
func (s *server) documents(ctx context.Context, t *testing.T) func(method, path string, body io.Reader, answer any) {
	token := s.adminToken(t)
	return func(method, path string, body io.Reader, answer any) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, s.base()+"/api/v1/agents/default"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		if err := json.NewDecoder(w.Body).Decode(answer); err != nil || w.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %v %v", method, path, w.StatusCode, answer, err)
		}
	}
}

// TestThousandDocumentsServed measures what the built program takes for 1000 documents of all kinds: 18 MB of text in both languages, half of
// them below 8 KB and one in a hundred above 150 KB.
func TestThousandDocumentsServed(t *testing.T) {
	testall.Only(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	const count = 1000
	papers := t.TempDir()
	s := start(t, setup{measured: true, config: "agents: {default: {language: en, knowledge: ['" + papers + "']}}\n"})
	request := s.documents(ctx, t)
	s.waitReady(ctx, t)
	time.Sleep(5 * time.Second)
	before := s.memory(t, "VmRSS")
	for i, data := range household(count) {
		settled(t, filepath.Join(papers, fmt.Sprintf("paper %d%s", i, [...]string{".txt", ".docx", ".html", ".md", ".pdf"}[i%5])), data)
	}
	began := time.Now()
	for ready := 0; ready < count; time.Sleep(5 * time.Second) {
		var all struct {
			Documents []struct{ Name, State, Problem string }
		}
		request("GET", "/documents", nil, &all)
		ready = 0
		for _, d := range all.Documents {
			if d.State == "ready" {
				ready++
			} else if d.State != "waiting" {
				t.Fatalf("%+v", d)
			}
		}
	}
	t.Logf("%d documents read in %v", count, time.Since(began).Round(time.Second))
	var times []time.Duration
	for i := range 200 {
		n := i * 7919 % count
		var found struct {
			Found []struct{ Name string }
		}
		query := "what is the code " + code(n)
		if i%2 == 0 {
			query = "编号" + code(n) + "是什么"
		}
		began := time.Now()
		request("GET", "/search?q="+url.QueryEscape(query), nil, &found)
		times = append(times, time.Since(began))
		if len(found.Found) == 0 || !strings.HasPrefix(found.Found[0].Name, fmt.Sprintf("paper %d.", n)) {
			t.Errorf("%s: found %+v", query, found)
		}
	}
	slices.Sort(times)
	time.Sleep(5 * time.Second)
	after, peak := s.memory(t, "VmRSS"), s.memory(t, "VmHWM")
	t.Logf("search, by HTTP: p50 %v, p95 %v, most %v", times[len(times)/2], times[len(times)*95/100], times[len(times)-1])
	t.Logf("memory of the server: %d MiB before, %d MiB after, %d MiB at most", before>>20, after>>20, peak>>20)
	if after-before > 100<<20 || times[len(times)*95/100] > 50*time.Millisecond {
		t.Error("that is too much")
	}
}

// memory is a line of what the system tells of the server's memory, in bytes.
func (s *server) memory(t *testing.T, line string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), line+":")
	var kib int
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// code is a word that one document has alone.
func code(n int) string { return fmt.Sprintf("qz%dx", n*7919) }

// household makes documents of five kinds: text, DOCX, HTML, Markdown and PDF. Words are as frequent as Zipf's law has it.
func household(count int) (all [][]byte) {
	const vocabulary = 20000
	r := rand.New(rand.NewPCG(1, 2))
	var words [2][]string
	for range vocabulary {
		words[0] = append(words[0], string([]rune{rune(0x4E00 + r.IntN(3500)), rune(0x4E00 + r.IntN(3500))}))
		word := " "
		for range 1 + r.IntN(3) {
			word += string("bcdfghklmnprstvw"[r.IntN(16)]) + string("aeiou"[r.IntN(5)]) + string("lmnrstx"[r.IntN(7)])
		}
		words[1] = append(words[1], word)
	}
	zipf := rand.NewZipf(r, 1.1, 3, vocabulary-1)
	for i := range count {
		size := min(max(int(8000*math.Exp(1.35*r.NormFloat64())), 300), 400<<10)
		paragraphs := []string{"The code of this paper is " + code(i) + ". 编号是" + code(i) + "。"}
		for size > 0 {
			var b strings.Builder
			for b.Len() < min(600, size) {
				b.WriteString(words[i/5%2][zipf.Uint64()])
			}
			size -= b.Len()
			paragraphs = append(paragraphs, b.String())
		}
		switch i % 5 {
		case 1:
			all = append(all, readertest.DOCX(paragraphs...))
		case 2:
			all = append(all, []byte("<html><p>"+strings.Join(paragraphs, "</p>\n<p>")))
		case 4:
			all = append(all, readertest.PDF(readertest.PDFOptions{}, paragraphs...))
		default:
			all = append(all, []byte(strings.Join(paragraphs, "\n\n")))
		}
	}
	return all
}
