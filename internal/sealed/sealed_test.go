package sealed

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/store"
)

const planted = "sk-planted-0123456789-a3f2"

func open(t *testing.T) (*Vault, *store.Store, string) {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(t.Context(), store.Options{Path: filepath.Join(dir, "xiaozhi.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	v := &Vault{Keeper: s.Secrets, KeyFile: filepath.Join(dir, "key")}
	if err := v.Put(t.Context(), "cloud", "https://API.example.com/v1", planted, ""); err != nil {
		t.Fatal(err)
	}
	return v, s, dir
}

// refused checks that a secret is not opened, and why.
func refused(t *testing.T, v *Vault, name, address, why string) {
	t.Helper()
	value, err := v.Open(t.Context(), name, address)
	if err == nil || value != "" || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), planted) {
		t.Errorf("%s for %s: %q, %v", name, address, value, err)
	}
}

// TestVault: a secret is opened for its host only, and neither the database nor a list has it in clear.
func TestVault(t *testing.T) {
	v, _, dir := open(t)
	for _, address := range []string{"api.example.com", "https://api.example.com:443/other", "wss://api.EXAMPLE.com"} {
		if got, err := v.Open(t.Context(), "cloud", address); got != planted || err != nil {
			t.Errorf("%s: %q %v", address, got, err)
		}
	}
	refused(t, v, "cloud", "https://evil.example", "api.example.com")
	refused(t, v, "cloud", "https://api.example.com:8443", "api.example.com:8443")
	refused(t, v, "cloud", "https://api.example.com@evil.example/", "evil.example")
	refused(t, v, "cloud", "http://api.example.com", "is not sent to http://api.example.com") // in clear
	refused(t, v, "cloud", ThisServer, "is not sent to this-server")
	refused(t, v, "cloud", Program+"npx", "program:npx")
	refused(t, v, "cloud", "", "address")
	refused(t, v, "clouds", "api.example.com", "did you mean cloud?")
	if info, err := os.Stat(v.KeyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	all, err := v.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Sealed != "" || all[0].Tail != "a3f2" || all[0].Bound != "api.example.com" {
		t.Errorf("%+v %v", all, err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range files {
		if content, err := os.ReadFile(name); err != nil || bytes.Contains(content, []byte("planted")) {
			t.Errorf("%s has the secret: %v", name, err)
		}
	}
}

// TestMoved: a row that somebody changed in the database, a key of another server, and no key open nothing.
func TestMoved(t *testing.T) {
	v, s, _ := open(t)
	row, err := s.Secrets.Get(t.Context(), "cloud")
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func(r *store.Secret)) {
		r := row
		change(&r)
		if err := s.Secrets.Put(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	const tampered = "was changed in the database"
	changed(func(r *store.Secret) { r.Bound = "evil.example" })
	refused(t, v, "cloud", "evil.example", tampered)
	changed(func(r *store.Secret) { r.Name = "other" })
	refused(t, v, "other", "api.example.com", tampered)
	other := "x"
	if row.Sealed[20:21] == other {
		other = "y"
	}
	for _, text := range []string{"", "1:", "1:AAAA", "1::AAAA", "2:" + row.Sealed[2:], row.Sealed[:len(row.Sealed)-2], row.Sealed[:20] + other + row.Sealed[21:]} {
		changed(func(r *store.Secret) { r.Sealed = text })
		refused(t, v, "cloud", "api.example.com", tampered)
	}
	changed(func(*store.Secret) {})
	stranger, _, _ := open(t)
	stranger.Keeper = s.Secrets
	refused(t, stranger, "cloud", "api.example.com", "was sealed with another key than that in "+stranger.KeyFile)
	changed(func(r *store.Secret) { r.Sealed = version + strings.Repeat("0", 8) + row.Sealed[10:] })
	refused(t, v, "cloud", "api.example.com", "another key")
	changed(func(*store.Secret) {})
	if err := os.WriteFile(v.KeyFile, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, v, "cloud", "api.example.com", v.KeyFile+" is no key")
	if err := os.Chmod(v.KeyFile, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, v, "cloud", "api.example.com", "chmod")
	if err := os.Remove(v.KeyFile); err != nil {
		t.Fatal(err)
	}
	refused(t, v, "cloud", "api.example.com", "is not there")
	if err := v.Put(t.Context(), "new", "a.example", planted, ""); err == nil || !strings.Contains(err.Error(), "2 secrets are sealed with it") {
		t.Errorf("a new key was made although the old one is needed: %v", err)
	}
	if _, err := os.Stat(v.KeyFile); err == nil {
		t.Error("a new key was made")
	}
}

// TestPurposes: what is entered for one purpose is opened for no other, whatever it is called.
func TestPurposes(t *testing.T) {
	v, _, _ := open(t)
	const address = "wss://tools.example.com/mcp?token=planted-token-of-ours"
	for name, kept := range map[string][2]string{
		"token": {ThisServer, planted}, "env": {Program + "npx", planted}, "plain": {"http://192.168.1.20:80/v1", planted},
		"bridge": {"tools.example.com", address}, "stolen": {"tools.example.com", "wss://evil.example/"}, "word": {"tools.example.com", "tools.example.com"},
	} {
		if err := v.Put(t.Context(), name, kept[0], kept[1], ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range [][2]string{{"token", ThisServer}, {"env", Program + "npx"}, {"plain", "http://192.168.1.20/other"}} {
		if got, err := v.Open(t.Context(), test[0], test[1]); got != planted || err != nil {
			t.Errorf("%v: %q %v", test, got, err)
		}
	}
	refused(t, v, "token", "https://this-server/", "this-server")
	refused(t, v, "token", "http://this-server/", "this-server")
	refused(t, v, "env", Program+"sh", "program:sh")
	refused(t, v, "env", "https://npx", "program:npx")
	refused(t, v, "plain", "https://192.168.1.20", "http://192.168.1.20")
	if got, err := v.OpenAddress(t.Context(), "bridge"); got != address || err != nil {
		t.Errorf("%q %v", got, err)
	}
	for name, why := range map[string]string{"stolen": "evil.example", "word": "no address", "token": "no address", "gone": "gone"} {
		if got, err := v.OpenAddress(t.Context(), name); got != "" || err == nil || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
}

// TestPutRefuses: what cannot be a secret, a name or a host is not kept.
func TestPutRefuses(t *testing.T) {
	v, _, _ := open(t)
	for _, bad := range [][3]string{
		{"", "a.example", "x"}, {"A b", "a.example", "x"}, {strings.Repeat("a", 65), "a.example", "x"},
		{"a", "", "x"}, {"a", "https://", "x"}, {"a", Program, "x"}, {"a", "program:a\nb", "x"}, {"a", "a.example", ""}, {"a", "a.example", "x\ny"}, {"a", "a.example", strings.Repeat("x", 9<<10)},
	} {
		if err := v.Put(t.Context(), bad[0], bad[1], bad[2], ""); err == nil {
			t.Errorf("%.80q was kept", bad)
		}
	}
	if err := v.Put(t.Context(), "short", "a.example", "hunter2", ""); err != nil {
		t.Fatal(err)
	}
	if all, err := v.List(t.Context()); err != nil || len(all) != 2 || all[1].Tail != "" {
		t.Errorf("the end of a short secret is shown: %+v %v", all, err)
	}
	if err := v.Delete(t.Context(), "short", "anna"); err != nil {
		t.Error(err)
	}
	if err := v.Delete(t.Context(), "short", "anna"); err == nil || !strings.Contains(err.Error(), "short") {
		t.Error(err)
	}
}

func FuzzUnseal(f *testing.F) {
	f.Add("1:AAAA", "cloud", "a.example")
	f.Add("1:01234567:AAAA", "cloud", "server:this")
	f.Fuzz(func(t *testing.T, text, name, host string) {
		file := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(file, bytes.Repeat([]byte("0a"), 32), 0o600); err != nil {
			t.Fatal(err)
		}
		key, err := (&Vault{KeyFile: file}).key()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := key.unseal(name, host, text); err == nil {
			t.Errorf("%q was opened", got)
		}
		if got, err := key.unseal(name, host, key.seal(name, host, text)); err != nil || got != text {
			t.Errorf("%q %v", got, err)
		}
	})
}

// TestTextsOfOthers: what accounts keep sealed opens under its own name only, and is no secret of a service.
func TestTextsOfOthers(t *testing.T) {
	v, _, _ := open(t)
	text, err := v.Seal(t.Context(), "totp.ann", planted)
	if err != nil || strings.Contains(text, planted) {
		t.Fatal(text, err)
	}
	if value, err := v.Unseal("totp.ann", text); err != nil || value != planted {
		t.Error(value, err)
	}
	for _, name := range []string{"totp.bob", "", "cloud"} {
		if value, err := v.Unseal(name, text); err == nil {
			t.Errorf("%s opens it: %q", name, value)
		}
	}
	if _, err := v.Unseal("totp.ann", "1:x"); err == nil {
		t.Error("what is broken opens")
	}
}
