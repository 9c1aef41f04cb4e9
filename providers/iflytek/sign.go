package iflytek

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"xiaozhi/providers"
)

// signature is S of the URL signature: HMAC-SHA256 over host, date and request line.
func signature(host, path, date string, secret providers.Secret) string {
	mac := hmac.New(sha256.New, []byte(secret.Reveal()))
	_, _ = fmt.Fprintf(mac, "host: %s\ndate: %s\nGET %s HTTP/1.1", host, date, path)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signed returns an address with the three parameters by which the service knows who
// asks, and when. It must be shown nowhere.
func signed(address *url.URL, key, secret providers.Secret, now time.Time) string {
	date := now.UTC().Format(http.TimeFormat)
	authorization := fmt.Sprintf(`api_key="%s", algorithm="hmac-sha256", headers="host date request-line", signature="%s"`,
		key.Reveal(), signature(address.Host, address.Path, date, secret))
	u := *address
	u.RawQuery = url.Values{
		"authorization": {base64.StdEncoding.EncodeToString([]byte(authorization))}, "date": {date}, "host": {address.Host},
	}.Encode()
	return u.String()
}
