package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/bench"
)

func TestBenchFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--quick --full", "exclude each other"},
		{"--scenario m1,m99", `unknown metric "m99"`},
		{"--pid 5", "--url"},
		{"--runs 0", "--runs"},
		{"--guard -1s", "--guard"},
		{"--trouble lazy", "--trouble"},
		{"extra", `unknown argument "extra"`},
		{"--nonsense", "nonsense"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"bench"}, strings.Fields(c.args)...), nil, &out, &errs)
		if code != 2 || !strings.Contains(errs.String(), c.want) || out.Len() > 0 {
			t.Errorf("%s: code %d, %q, %q", c.args, code, out.String(), errs.String())
		}
	}
	f, err := parseBench(strings.Fields("--full --scenario m1,m4 --scenario m12 --guard 0 --silence 500ms --runs 3"), nil)
	if err != nil || f.Size != bench.Full || len(f.Metrics) != 3 || f.Guard >= 0 || f.Silence != 500*time.Millisecond || f.Runs != 3 {
		t.Errorf("%+v, %v", f, err)
	}
	if f, err = parseBench(nil, nil); err != nil || f.Size != "" || f.Guard != bench.OwnGuard {
		t.Errorf("no flags: %+v, %v", f, err)
	}
}

func TestBenchHelpAndList(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"bench", "--help"}, nil, &out, &errs); code != 0 || !strings.Contains(out.String(), "--url") && !strings.Contains(out.String(), "-url") {
		t.Errorf("help: %d, %q", code, out.String())
	}
	out.Reset()
	code := run(t.Context(), []string{"bench", "--list"}, nil, &out, &errs)
	for _, m := range []string{"m1 ", "m4,m5,m6,m7", "m17"} {
		if code != 0 || !strings.Contains(out.String(), m) {
			t.Errorf("list: %d, no %q in %q", code, m, out.String())
		}
	}
}

// The stub providers run by themselves until they are told to end.
func TestBenchStubsOnly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &watched{found: make(chan string, 1)}
	code := make(chan int)
	go func() {
		code <- run(ctx, []string{"bench", "--stubs-only", "--trouble", "failing"}, nil, out, &bytes.Buffer{})
	}()
	url := <-out.found
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/chat/completions", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("status %d", resp.StatusCode)
	}
	cancel()
	if got := <-code; got != 0 {
		t.Errorf("code %d", got)
	}
}

// watched gives the first URL that is written to it.
type watched struct{ found chan string }

func (w *watched) Write(p []byte) (int, error) {
	for word := range strings.FieldsSeq(string(p)) {
		if strings.HasPrefix(word, "http://") {
			w.found <- word
		}
	}
	return len(p), nil
}

func TestBenchCompare(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"a", "b", "broken"} {
		file := filepath.Join(dir, name+".json")
		text := `{"server":"` + name + `","figures":[{"metric":"M1","what":"latency","unit":"ms","n":3,"sample":[1,2,3]}]}`
		if name == "broken" {
			text = "{"
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"bench", "--compare", files[0] + "," + files[1]}, nil, &out, &errs); code != 0 || !strings.Contains(out.String(), "latency") {
		t.Errorf("code %d, %s%s", code, out.String(), errs.String())
	}
	for _, bad := range [][]string{{files[0]}, {files[0], files[2]}, {files[0], filepath.Join(dir, "none")}} {
		errs.Reset()
		if code := run(t.Context(), []string{"bench", "--compare", strings.Join(bad, ",")}, nil, &out, &errs); code != 1 || errs.Len() == 0 {
			t.Errorf("%v: code %d, %q", bad, code, errs.String())
		}
	}
}
