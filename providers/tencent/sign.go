package tencent

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the vendor's rule
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// signed returns the query of an address with its signature. What is signed begins with
// head, the host and the path, and holds the values as they are; parameter names the
// parameter that the signature is sent in.
func signed(secret, head, hostPath, parameter string, values url.Values) string {
	return values.Encode() + "&" + parameter + "=" + url.QueryEscape(signature(secret, head+hostPath, values))
}

// signature signs the values, sorted by name, after a host and path.
func signature(secret, before string, values url.Values) string {
	pairs := make([]string, 0, len(values))
	for name := range values {
		pairs = append(pairs, name)
	}
	slices.Sort(pairs)
	for i, name := range pairs {
		pairs[i] = name + "=" + values.Get(name)
	}
	h := hmac.New(sha1.New, []byte(secret))
	_, _ = h.Write([]byte(before + "?" + strings.Join(pairs, "&")))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}
