package sealed

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestGrants: what a server has granted is kept sealed, for that server and its host only, beside the secrets of people.
func TestGrants(t *testing.T) {
	v, s, dir := open(t)
	g := Grants{v}
	const at = "https://tools.example.com/mcp?key=hidden"
	if got, err := g.Load(t.Context(), "Tools 工具", at); got != "" || err != nil {
		t.Errorf("nothing was kept: %q, %v", got, err)
	}
	granted := `{"access":"` + planted + `"}`
	if err := g.Save(t.Context(), "Tools 工具", at, granted); err != nil {
		t.Fatal(err)
	}
	for address, want := range map[string]string{at: granted, "https://tools.example.com/other": granted, "https://evil.example/mcp": "", "http://tools.example.com/mcp": ""} {
		if got, err := g.Load(t.Context(), "Tools 工具", address); got != want || err != nil {
			t.Errorf("%s: %q, %v", address, got, err)
		}
	}
	if got, err := g.Load(t.Context(), "tools 工具", at); got != "" || err != nil {
		t.Errorf("another server: %q, %v", got, err)
	}
	all, err := v.List(t.Context())
	if err != nil || len(all) != 2 || !strings.HasPrefix(all[1].Name, "login.tools---.") || all[1].Bound != "tools.example.com" {
		t.Errorf("%+v, %v", all, err)
	}
	for _, name := range []string{"xiaozhi.db", "xiaozhi.db-wal"} {
		if raw, err := os.ReadFile(filepath.Join(dir, name)); err != nil || bytes.Contains(raw, []byte(planted)) {
			t.Errorf("%s has it in clear, or %v", name, err)
		}
	}
	next := Grants{&Vault{Keeper: s.Secrets, KeyFile: v.KeyFile}}
	if got, err := next.Load(t.Context(), "Tools 工具", at); got != granted || err != nil {
		t.Errorf("after a restart: %q, %v", got, err)
	}
	for range 2 {
		if err := g.Save(t.Context(), "Tools 工具", at, ""); err != nil {
			t.Error(err)
		}
	}
	if got, err := g.Load(t.Context(), "Tools 工具", at); got != "" || err != nil {
		t.Errorf("forgotten: %q, %v", got, err)
	}
}
