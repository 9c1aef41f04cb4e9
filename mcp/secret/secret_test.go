package secret

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vault opens the secret of the name key, for one place of each kind.
type vault struct{}

func open(name, got, want string) (string, error) {
	if name != "key" || got != want {
		return "", errors.New("not for " + got)
	}
	return "s3cret", nil
}

func (vault) Sent(_ context.Context, name, address string) (string, error) {
	return open(name, address, "https://h")
}

func (vault) Given(_ context.Context, name, program string) (string, error) {
	return open(name, program, "npx")
}

func (vault) Address(_ context.Context, name string) (string, error) { return open(name, "", "") }

func TestSources(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, readable := file("good", " of-a-file\n", 0o600), file("readable", "of-a-file", 0o444)
	all := Sources{Sealed: vault{}}
	for _, c := range []struct {
		from                Sources
		text, file, address string
		want, wrong         string
		apart               bool
	}{
		{all, "plain", "", "https://h", "plain", "", false},
		{all, "", "", "https://h", "", "", false},
		{all, "sealed:key", "", "https://h", "s3cret", "", true},
		{all, "sealed:key", "", "https://evil", "", "not for https://evil", true},
		{all, "sealed:other", "", "https://h", "", "not for", true},
		{all, "unsealed:key", "", "https://h", "unsealed:key", "", false},
		{Sources{}, "sealed:key", "", "https://h", "", "no secret is known", true},
		{all, "", good, "https://h", "of-a-file", "", true},
		{Sources{}, "plain", readable, "https://h", "of-a-file", "", true},
		{all, "sealed:other", good, "https://evil", "of-a-file", "", true},
		{all, "plain", filepath.Join(dir, "none"), "", "", "none", true},
		{all, "plain", dir, "", "", dir, true},
		{all, "plain", file("empty", "\n", 0o600), "", "", "empty is empty", true},
		{all, "plain", file("open", "planted", 0o666), "", "", "chmod go-w " + dir, true},
		{all, "plain", file("large", strings.Repeat("x", maxFile+1), 0o600), "", "", "more than 65536 bytes", true},
	} {
		got, apart, err := c.from.Sent(t.Context(), c.text, c.file, c.address)
		if got != c.want || apart != c.apart || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%+v: %q, %v, %v", c, got, apart, err)
		}
	}
	given, err := all.Given(t.Context(), "sealed:key", "", "npx")
	_, other := all.Given(t.Context(), "sealed:key", "", "curl")
	if given != "s3cret" || err != nil || other == nil {
		t.Errorf("%q, %v; in another program: %v", given, err, other)
	}
	if address, err := all.Address(t.Context(), "sealed:key", ""); address != "s3cret" || err != nil {
		t.Errorf("%q, %v", address, err)
	}
	if _, set := (Sources{}).Lookup("HOME"); set {
		t.Error("a variable without an environment")
	}
}
