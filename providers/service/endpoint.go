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

// Secrets lists all that no log and no error of a section may show.
func (s Section) Secrets() []providers.Secret {
	out := []providers.Secret{s.Key, s.Secret}
	for _, v := range s.Headers {
		out = append(out, v)
	}
	return out
}
