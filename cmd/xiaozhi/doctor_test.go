package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/doctor"
)

// seenDoctor runs the subcommand.
func seenDoctor(t *testing.T, args ...string) (code int, shown string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"doctor"}, args...), &out, &errs)
	return code, out.String() + errs.String()
}

// asksDoctor asks a server that runs, of the settings of the folder, how it is.
func asksDoctor(t *testing.T, base string) {
	t.Helper()
	const id = "24:6f:28:aa:10:07"
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/xiaozhi/ota/", strings.NewReader(`{"board":{"type":"box\u001b[2J"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Device-Id": {id}, "Client-Id": {"c"}, "Content-Type": {"application/json"}}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	code, out := seenDoctor(t, "--config", "config.yaml", "--server", base)
	for _, want := range []string{"The server at " + base, strings.TrimPrefix(base, "http://") + " answers on this machine", "deepgram is not used", "problems", id, "next: It asks for a connection"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") || strings.Contains(out, "sk-wrong") || code != 1 { // it listens on loopback only
		t.Errorf("%d %q", code, out)
	}
	var a doctor.Answer
	if code, out := seenDoctor(t, "--server", base, "--json"); code != 1 || json.Unmarshal([]byte(out), &a) != nil || len(a.Findings) < 8 {
		t.Errorf("--json: %d\n%s", code, out)
	}
	if code, out := seenDoctor(t, id, "--server", base); code != 0 || !strings.Contains(out, " 1 [x]") || !strings.Contains(out, " 4 [ ]") || !strings.Contains(out, "say its wake word") {
		t.Errorf("%d %s", code, out)
	}
	if code, out := seenDoctor(t, "24:6f:28:aa:10:08", "--server", base); code != 1 || !strings.Contains(out, "has not called") || !strings.Contains(out, "Switch the speaker off and on") || !strings.Contains(out, id) {
		t.Errorf("%d %s", code, out)
	}
	file := filepath.Join(t.TempDir(), "b.zip")
	if code, out := seenDoctor(t, "--server", base, "--bundle", file); code != 0 || !strings.Contains(out, "was written") {
		t.Errorf("%d %s", code, out)
	}
	inBundle(t, file, "log.txt", "contacts.json")
	if code, out := seenDoctor(t, "--server", base, "--bundle", file); code != 1 || !strings.Contains(out, "exists") {
		t.Errorf("a file was written over: %d %s", code, out)
	}
}

// inBundle looks for files in a bundle, and for keys that are not in it.
func inBundle(t *testing.T, file string, names ...string) {
	t.Helper()
	z, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	for _, name := range names {
		f, err := z.Open("xiaozhi-support/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(f); err != nil || len(body) == 0 || strings.Contains(string(body), "sk-wrong") {
			t.Errorf("%s: %s, %v", name, body, err)
		}
	}
}

// asksNoDoctor looks at settings and machine, for no server runs.
func asksNoDoctor(t *testing.T) {
	t.Helper()
	if code, out := seenDoctor(t, "--config", "config.yaml"); !strings.Contains(out, "No server answers") || !strings.Contains(out, "The settings can be used") || !strings.Contains(out, "mine can be asked") && !strings.Contains(out, "mine, local can be asked") {
		t.Errorf("%d %s", code, out)
	}
	var r struct {
		Running bool
		doctor.Report
	}
	if _, out := seenDoctor(t, "--config", "config.yaml", "--json"); json.Unmarshal([]byte(out), &r) != nil || r.Running || len(r.Findings) < 6 {
		t.Error(out)
	}
	file := filepath.Join(t.TempDir(), "b.zip")
	if _, out := seenDoctor(t, "--config", "config.yaml", "--bundle", file); !strings.Contains(out, "was written") {
		t.Error(out)
	}
	inBundle(t, file, "settings.json", "doctor.json")
	if code, out := seenDoctor(t, "--config", "none.yaml"); code != 1 || !strings.Contains(out, "none.yaml") {
		t.Errorf("%d %s", code, out)
	}
	if code, out := seenDoctor(t, "one", "two"); code != 2 || !strings.Contains(out, "usage: xiaozhi doctor") {
		t.Errorf("%d %s", code, out)
	}
	if code, out := seenDoctor(t, "24:6f:28:aa:10:07", "--config", "config.yaml"); code != 1 || !strings.Contains(out, "does the server run?") {
		t.Errorf("%d %s", code, out)
	}
}
