package aliyun

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // the vendor's rule
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// signed returns the query of a GET request to an API of Alibaba Cloud with its
// signature: the parameters sorted and escaped by RFC 3986, signed by HMAC-SHA1.
func signed(secret string, parameters map[string]string) string {
	query := canonical(parameters)
	return "Signature=" + escape(signature(secret, query)) + "&" + query
}

// signature signs a canonical query.
func signature(secret, query string) string {
	h := hmac.New(sha1.New, []byte(secret+"&"))
	_, _ = h.Write([]byte("GET&%2F&" + escape(query)))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// canonical writes parameters in the order of their names.
func canonical(parameters map[string]string) string {
	pairs := make([]string, 0, len(parameters))
	for name, value := range parameters {
		pairs = append(pairs, escape(name)+"="+escape(value))
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// escape escapes by RFC 3986: a blank is %20, a star %2A, a tilde stays.
func escape(s string) string {
	return strings.NewReplacer("+", "%20", "*", "%2A", "%7E", "~").Replace(url.QueryEscape(s))
}
