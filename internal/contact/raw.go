package contact

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Dots stand for a secret.
const Dots = "•••"

// members are those of a JSON object whose values are secrets, however broken the JSON is.
var members = regexp.MustCompile(`(?i)("[^"]*(?:token|password|passwd|secret|authorization|hmac|api_?key|credential|uuid|client_id|serial_number)[^"]*"\s*:\s*")((?:[^"\\]|\\.)*)`)

// Dump writes a request as it came, with dots for all that is secret, at most [MaxRaw] bytes.
func Dump(r *http.Request, body []byte) string {
	hidden := []string{"Authorization", "Proxy-Authorization", "Cookie", "Client-Id", "Serial-Number", "X-Api-Key", "Sec-Websocket-Key"}
	var secrets []string
	var b strings.Builder
	b.WriteString(r.Method + " " + Address(r.URL) + " " + r.Proto + "\n")
	b.WriteString("Host: " + r.Host + "\n")
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		for _, value := range r.Header[name] {
			if slices.Contains(hidden, name) {
				secrets = append(secrets, value, strings.TrimSpace(strings.TrimPrefix(value, "Bearer ")))
				value = Dots
			}
			b.WriteString(name + ": " + value + "\n")
		}
	}
	for _, values := range r.URL.Query() {
		for _, v := range values {
			if strings.HasPrefix(v, "Bearer ") {
				secrets = append(secrets, strings.TrimPrefix(v, "Bearer "))
			}
		}
	}
	b.WriteString("\n")
	b.WriteString(Plain(body, secrets...))
	return cut(b.String())
}

// Address is the path and the query of a request, with dots for all values of the query but those that name a device.
func Address(u *url.URL) string {
	if u.RawQuery == "" {
		return u.EscapedPath()
	}
	var parts []string
	query := u.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		squeezed := strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(name))
		for _, v := range query[name] {
			if squeezed != "deviceid" && squeezed != "protocolversion" {
				v = Dots
			} else {
				v = url.QueryEscape(v)
			}
			parts = append(parts, url.QueryEscape(name)+"="+v)
		}
	}
	return u.EscapedPath() + "?" + strings.Join(parts, "&")
}

// Plain is a body with dots for what is secret in it: the values of members that are called so, and those that are given.
func Plain(body []byte, secrets ...string) string {
	body = members.ReplaceAll(body, []byte("${1}"+Dots))
	for _, s := range secrets {
		if len(s) >= 4 {
			body = bytes.ReplaceAll(body, []byte(s), []byte(Dots))
		}
	}
	return cut(strings.ToValidUTF8(string(body), "\uFFFD"))
}

func cut(s string) string {
	if len(s) <= MaxRaw {
		return s
	}
	return strings.ToValidUTF8(s[:MaxRaw-len("…")], "") + "…"
}
