package config

import (
	"net/url"
	"reflect"

	"xiaozhi/mcp/rawjson"
	"xiaozhi/providers"
)

// Redacted returns the settings as JSON that may be shown: without secrets, and
// without what may hold one.
func (c *Config) Redacted() []byte {
	// Of programs and requests: keys hide there.
	data, err := rawjson.Marshal(settingsTree(reflect.ValueOf(*c), shownText, "args", "extra", "headers", "env"))
	if err != nil {
		return []byte("{}")
	}
	return data
}

// shownText is a text setting as it may be shown.
func shownText(v reflect.Value) string {
	if secret, ok := reflect.TypeAssert[providers.Secret](v); ok {
		return secret.String()
	}
	return plainAddress(v.String())
}

// plainAddress is an address without its query and its user, where keys hide.
func plainAddress(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User == nil && u.RawQuery == "" {
		return text
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}
