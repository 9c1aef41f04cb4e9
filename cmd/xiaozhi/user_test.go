package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runUser is the command with a password on standard input.
func runUser(t *testing.T, password string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = user(t.Context(), args, strings.NewReader(password+"\n"), &out, &err)
	return code, out.String(), err.String()
}

const goodPassword = "correct horse battery"

// TestUserBesideServer: accounts are made while the server runs, which then asks for pairing within a second.
func TestUserBesideServer(t *testing.T) {
	t.Setenv("XIAOZHI_MCP_TOKEN", "")
	base, end := serving(t, "asr: [openai]\n")
	if _, out, _ := runDevices(t, base); !strings.Contains(out, "open") {
		t.Errorf("before: %s", out)
	}
	if code, out, why := runUser(t, goodPassword, "add", "Ann"); code != 0 {
		t.Fatalf("%d %s %s", code, out, why)
	}
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if _, out, why := runDevices(t, base); strings.Contains(out, "ask") {
			break
		} else if time.Since(start) > 10*time.Second {
			t.Fatalf("the server does not know its owner: %s %s", out, why)
		}
	}
	if code := end(); code != 0 {
		t.Errorf("the server ended with %d", code)
	}
	if code, out, _ := runUser(t, ""); code != 0 || !strings.Contains(out, "ann  owner") {
		t.Errorf("without the server: %d %s", code, out)
	}
}

// TestUserCommands: what the commands do, and what they say when they cannot.
func TestUserCommands(t *testing.T) {
	bare(t)
	t.Chdir(t.TempDir())
	word := filepath.Join(t.TempDir(), "word")
	if err := os.WriteFile(word, []byte(goodPassword+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, password string
		code           int
		says           string
	}{
		{"", "", 0, "no accounts yet"},
		{"add ann", "short", 1, "too short"},
		{"add ann", "", 1, "no password was given"},
		{"add ann boss", goodPassword, 1, "no such role"},
		{"add zoe viewer", goodPassword, 0, "Nobody owns this server yet"},
		{"--password-file " + word + " add ann", "", 0, "new devices must be accepted"},
		{"add bob", goodPassword, 0, "done"},
		{"add BOB", goodPassword, 1, "already"},
		{"", "", 0, "bob  member"},
		{"role ann member", "", 1, "last owner"},
		{"disable ann", "", 1, "last owner"},
		{"disable bob", "", 0, "done"},
		{"", "", 0, "disabled"},
		{"enable bob", "", 0, "done"},
		{"role bob viewer", "", 0, "done"},
		{"passwd bob", "12345678", 1, "easy to guess"},
		{"passwd bob", goodPassword + "!", 0, "done"},
		{"passwd cid", goodPassword, 1, `no account "cid"`},
		{"sessions bob", "", 0, "no sessions"},
		{"sessions bob end", "", 0, "done"},
		{"token bob", "", 0, "no tokens"},
		{"token bob new backup read,tools 30", "", 0, "xz_"},
		{"token bob new backup everything", "", 1, "no such scope"},
		{"token bob new backup read 0", "", 1, "DAYS"},
		{"token bob", "", 0, "never used / 从未使用  until 20"},
		{"devices bob give 246F28AA1002", "", 1, "xiaozhi devices"},
		{"totp off cid", "", 1, `"cid"`},
		{"ad eve", "", 2, "did you mean add?"},
		{"token bob revoke xz_nothing", "", 1, "not known"},
		{"invites", "", 0, "no invitations"},
		{"invites new boss", "", 1, "no such role"},
		{"invites new viewer", "", 0, "not shown again"},
		{"invites", "", 0, "  viewer  "},
		{"invites withdraw nothing", "", 1, "invitation is not known"},
		{"invites frobnicate", "", 1, "new ROLE"},
		{"delete ann", "", 1, "last owner"},
		{"delete bob", "", 0, "done"},
		{"delete bob", "", 1, "no account"},
		{"frobnicate", "", 2, "frobnicate"},
		{"role bob", "", 2, "NAME ROLE"},
		{"add cid --config x", goodPassword, 2, "--config"},
	} {
		code, out, why := runUser(t, c.password, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+why, c.says) {
			t.Errorf("user %s: %d %s %s, want %d %q", c.args, code, out, why, c.code, c.says)
		}
		if strings.Contains(out+why, goodPassword) {
			t.Errorf("user %s shows the password", c.args)
		}
	}
	if files, _ := filepath.Glob("data/xiaozhi.db*"); len(files) == 0 {
		t.Error("no database")
	} else {
		for _, f := range files {
			if data, err := os.ReadFile(f); err != nil || bytes.Contains(data, []byte("horse battery")) {
				t.Errorf("%s holds a password, or %v", f, err)
			}
		}
	}
	t.Setenv("XIAOZHI_STORE__DRIVER", "none")
	if code, _, why := runUser(t, ""); code != 1 || !strings.Contains(why, "store.driver") {
		t.Errorf("without a store: %d %s", code, why)
	}
}

// askedBefore is a person who is asked for a password: nothing of the data folder may be held until there is an answer.
type askedBefore struct {
	t    *testing.T
	data string
	io.Reader
}

func (a askedBefore) Read(b []byte) (int, error) {
	if _, err := os.Stat(a.data); !errors.Is(err, fs.ErrNotExist) {
		a.t.Errorf("the data folder is in use while the person thinks: %v", err)
	}
	return a.Reader.Read(b)
}

// TestUserAskedFirst: a server may start while somebody is asked for a password.
func TestUserAskedFirst(t *testing.T) {
	bare(t)
	t.Chdir(t.TempDir())
	var out, errs bytes.Buffer
	stdin := askedBefore{t, "data", strings.NewReader(goodPassword + "\n")}
	if code := user(t.Context(), []string{"add", "ann"}, stdin, &out, &errs); code != 0 {
		t.Errorf("%d %s%s", code, out.String(), errs.String())
	}
}
