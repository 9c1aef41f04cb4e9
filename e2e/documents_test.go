package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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
	ctx, papers := limit(t), t.TempDir()
	pdf := readertest.PDF(readertest.PDFOptions{}, "The lease ends on the third of May.")
	files := map[string][]byte{
		"fridge.docx": readertest.DOCX("# Care", "Clean the filter each month."),
		"bomb.docx":   readertest.Word("<w:p><w:r><w:t>" + strings.Repeat("a", 20<<20) + "</w:t></w:r></w:p>"),
		"binary.txt":  []byte("a\x00b\x01\x02\x03"),
	}
	if testall.Running() { // what reads PDFs is translated first, which takes seconds
		files["lease.pdf"], files["locked.pdf"] = pdf, readertest.PDF(readertest.PDFOptions{Password: "x"}, "text")
		files["broken.pdf"] = append(bytes.Repeat([]byte("%PDF-1.7 "), 1000), pdf[:len(pdf)/2]...)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(papers, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		old := time.Now().Add(-time.Minute)
		if err := os.Chtimes(filepath.Join(papers, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	s := start(t, setup{config: "agents: {default: {language: en, knowledge: ['" + papers + "']}}\n"})
	token, err := os.ReadFile(filepath.Join(s.dir, "data", "admin-token"))
	if err != nil {
		t.Fatal(err)
	}
	request := func(method, path string, body io.Reader, answer any) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, s.base()+"/api/v1/agents/default"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Body.Close()
		if err := json.NewDecoder(w.Body).Decode(answer); err != nil || w.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %v %v", method, path, w.StatusCode, answer, err)
		}
	}
	var made map[string]any
	request("PUT", "/documents?name="+url.QueryEscape("note.html"), strings.NewReader("<html><p>The key is under the mat."), &made)
	states, want := map[string]string{}, map[string]string{
		"fridge.docx": "ready", "bomb.docx": "bomb", "binary.txt": "binary", "note.html": "ready", "lease.pdf": "ready", "locked.pdf": "encrypted", "broken.pdf": "ready",
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
