package e2e

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/devicetest"
)

// TestKnownAfterRestart: a speaker is the same after a restart, by the token in its
// flash, and so is who only says its name. No secret lies in database, files or log,
// and nothing of the speaker once it is forgotten.
func TestKnownAfterRestart(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	const (
		mac    = "24:6f:28:0a:0b:0c"
		client = "5b1f4a3e-0000-4a66-9a5e-0c2b8a6f1d33"
		other  = "6c1f4a3e-1111-4a66-9a5e-0c2b8a6f1d33"
	)
	s := start(t, setup{})
	flash := &devicetest.Flash{}
	o := devicetest.Options{DeviceID: mac, ClientID: client, Flash: flash, Mode: devicetest.Manual}
	boot := func(s *server, o devicetest.Options) (token string, d *devicetest.Device) {
		t.Helper()
		p, err := devicetest.Boot(ctx, s.ota, o, nil)
		if err != nil || len(p.Violations) > 0 {
			t.Fatal(err, p.Violations)
		}
		o.URL, o.Token = p.URL, p.Token
		if d, err = devicetest.Dial(ctx, o); err != nil {
			t.Fatal(err)
		}
		return p.Token, d
	}
	devices := func(s *server, args ...string) string {
		t.Helper()
		server := strings.TrimSuffix(s.ota, "/xiaozhi/ota/")
		out, err := exec.CommandContext(ctx, binary, append([]string{"devices", "--server", server, "--data", filepath.Join(s.dir, "data")}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("devices %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	token, d := boot(s, o)
	ask(ctx, t, d, "what time is it")
	d.Close()
	devices(s, "rename", mac, "Zanzibar")
	s.stop(t)

	again, err := launch(setup{}, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { again.stop(t) })
	kept, d := boot(again, o)
	if kept != token || token == "" {
		t.Errorf("the token was %q and is %q", token, kept)
	}
	ask(ctx, t, d, "what time is it")
	stranger, thief := boot(again, devicetest.Options{DeviceID: "246F280A0B0C", ClientID: other, Mode: devicetest.Manual})
	if stranger != "" {
		t.Error("a stranger is told a token")
	}
	ask(ctx, t, thief, "what time is it")
	ask(ctx, t, d, "what is the date") // the speaker was not disturbed
	if list := devices(again); !strings.Contains(list, mac+"  paired  Zanzibar") || !strings.Contains(list, mac+"~") || !strings.Contains(list, "stranger") {
		t.Errorf("listed:\n%s", list)
	}
	d.Close()
	thief.Close()
	for _, secret := range []string{token, client, other} {
		if where := holds(t, s.dir, secret); where != "" || strings.Contains(s.log.String()+again.log.String(), secret) {
			t.Errorf("a secret lies in %q or the log", where)
		}
	}
	devices(again, "forget", mac)
	if list := devices(again); strings.Contains(list, "Zanzibar") || strings.Contains(list, mac+"  ") {
		t.Errorf("listed once forgotten:\n%s", list)
	}
	if where := holds(t, s.dir, "Zanzibar"); where != "" {
		t.Errorf("the forgotten name lies in %s", where)
	}
	if n := strings.Count(again.log.String(), "audit"); n != 1 {
		t.Errorf("%d audit lines", n)
	}
}

// holds names a file below a folder that holds a text, also packed; "": none.
func holds(t *testing.T, dir, text string) (where string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.HasSuffix(path, ".gz") && err == nil {
			var packed *gzip.Reader
			if packed, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
				data, err = io.ReadAll(packed)
			}
		}
		if bytes.Contains(data, []byte(text)) {
			where = path
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return where
}
