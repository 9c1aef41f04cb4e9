package app

import (
	"strings"
	"testing"

	"xiaozhi/internal/config"
	"xiaozhi/providers"
)

// TestSealedKey: a provider gets the secret that it names if it is asked at the host the secret was entered for.
func TestSealedKey(t *testing.T) {
	data := t.TempDir()
	v, closeAll, err := OpenSecrets(t.Context(), config.Default(), data)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Put(t.Context(), "cloud", "api.example.com", "sk-planted", ""); err != nil {
		t.Fatal(err)
	}
	if err := closeAll(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ key, address, driver, want, why string }{
		{"sealed:cloud", "https://api.example.com/v1", "auto", "sk-planted", ""},
		{"plain", "https://evil.example/v1", "auto", "plain", ""},
		{"sealed:cloud", "https://evil.example/v1", "auto", "", "providers.mine.api_key: the secret cloud was entered for api.example.com"},
		{"sealed:cloud", "", "auto", "", "api.openai.com"},
		{"sealed:clout", "https://api.example.com/v1", "auto", "", `"clout"`},
		{"sealed:cloud", "https://api.example.com/v1", "none", "", "store.driver"},
	} {
		a := without(t, data, func(c *config.Config) {
			c.Store.Driver = test.driver
			c.Providers["mine"] = config.Provider{Type: "openai", BaseURL: test.address, APIKey: providers.Secret(test.key)}
		})
		err := a.openStore(t.Context())
		if err == nil {
			err = a.unseal(t.Context())
		}
		got := string(a.cfg.Providers["mine"].APIKey)
		if test.why == "" && (err != nil || got != test.want) || test.why != "" && (err == nil || !strings.Contains(err.Error(), test.why) || strings.Contains(err.Error(), "planted")) {
			t.Errorf("%+v: %q %v", test, got, err)
		}
		a.Close()
	}
}
