package service

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"xiaozhi/providers"
)

// Endpoint checks the address of a service: one of the schemes, and a host. It returns it
// without slashes at its end. It never shows the address, which may hold a key.
func Endpoint(address string, schemes ...string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", errors.New("it is not a URL")
	}
	if !slices.Contains(schemes, u.Scheme) {
		return "", fmt.Errorf("it begins with %q, not with %s", u.Scheme, strings.Join(schemes, " or "))
	}
	if u.Host == "" {
		return "", errors.New("it names no host")
	}
	return strings.TrimRight(address, "/"), nil
}

// minSecret is the length of the shortest header that counts as a secret, in bytes: shorter ones
// are words like "true", which errors may hold.
const minSecret = 8

// Secrets lists all that no log and no error of a section may show.
func (s Section) Secrets() []providers.Secret {
	out := []providers.Secret{s.Key, s.Secret}
	for _, v := range s.Headers {
		if len(v) >= minSecret {
			out = append(out, v)
		}
	}
	return out
}

// Join puts a path of a service, with its query if it has one, behind the address of one. What
// the address ends with of the beginning of the path is not said twice: people paste addresses
// with a path. A query of the address stays.
func Join(address, path string) string {
	address, query, _ := strings.Cut(address, "?")
	address = strings.TrimRight(address, "/")
	if query != "" {
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		path += sign + query
	}
	_, own, _ := strings.Cut(address, "://")
	if slash := strings.IndexByte(own, '/'); slash >= 0 {
		own = own[slash:]
	} else {
		return address + path
	}
	whole, _, _ := strings.Cut(path, "?")
	for n := len(whole); n > 1; n = strings.LastIndexByte(whole[:n], '/') {
		if strings.HasSuffix(own, whole[:n]) {
			return address + path[n:]
		}
	}
	return address + path
}

// HTTP returns an address whose scheme may be that of WebSockets as one for plain requests.
func HTTP(address string) string {
	if rest, ok := strings.CutPrefix(address, "ws"); ok && (strings.HasPrefix(rest, "://") || strings.HasPrefix(rest, "s://")) {
		return "http" + rest
	}
	return address
}
