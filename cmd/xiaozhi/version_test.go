package main

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"xiaozhi/internal/version"
)

func TestVersionJSON(t *testing.T) {
	code, out, errs := runMain(t, "version", "--json")
	if code != 0 || errs != "" {
		t.Fatalf("exit %d, %q", code, errs)
	}
	var i version.Info
	if err := json.Unmarshal([]byte(out), &i); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if i.Version != version.Number() || i.Go != runtime.Version() || i.Arch != runtime.GOARCH {
		t.Errorf("%+v", i)
	}
	if i.Data < 5 || i.Settings < 1 {
		t.Errorf("numbers %+v", i.Numbers)
	}
	if !strings.HasPrefix(i.Libraries["libopus"], "1.") || !strings.HasPrefix(i.Libraries["sqlite"], "3.") {
		t.Errorf("libraries %q", i.Libraries)
	}
}

func TestVersionMisuse(t *testing.T) {
	for _, args := range [][]string{{"version", "--jsn"}, {"version", "now"}} {
		if code, out, errs := runMain(t, args...); code != 2 || out != "" || errs == "" {
			t.Errorf("%q: exit %d, %q, %q", args, code, out, errs)
		}
	}
	if code, out, _ := runMain(t, "--version"); code != 0 || out != "xiaozhi "+version.Number()+"\n" {
		t.Errorf("--version: exit %d, %q", code, out)
	}
}
