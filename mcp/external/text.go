package external

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"xiaozhi/internal/text"
)

// Text is a string of an entry. A number or a switch is taken as it is written.
type Text string

// UnmarshalJSON reads a string, a number, true or false.
func (t *Text) UnmarshalJSON(data []byte) error {
	switch data[0] {
	case '"':
		var s string
		if err := json.Unmarshal(data, &s); err != nil {
			return err
		}
		*t = Text(s)
	case '{', '[':
		return errors.New("want text")
	case 'n':
	default:
		*t = Text(data)
	}
	return nil
}

func texts(list []Text) []string {
	var out []string
	for _, t := range list {
		out = append(out, string(t))
	}
	return out
}

func textMap(m map[string]Text) map[string]string {
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for name, t := range m {
		out[name] = string(t)
	}
	return out
}

// minMasked is how short a secret may be and still be hidden: hiding "1" or
// "true" would hide half of the log.
const minMasked = 6

// mask hides the secrets of a server in what is logged about it.
type mask struct{ replacer *strings.Replacer }

// newMask hides the values of headers, variables and the query of the address.
func newMask(c Config) mask {
	var pairs []string
	if public := PublicURL(c.URL); c.URL != public {
		pairs = append(pairs, c.URL, public)
	}
	hide := func(secret string) {
		if len(secret) >= minMasked {
			pairs = append(pairs, secret, "***")
		}
	}
	for _, value := range c.Headers {
		hide(value)
		_, bare, _ := strings.Cut(value, " ") // Bearer …
		hide(bare)
	}
	for _, value := range c.Env {
		hide(value)
	}
	for _, value := range queryValues(c.URL) {
		hide(value)
	}
	return mask{strings.NewReplacer(pairs...)}
}

// text is s without secrets.
func (m mask) text(s string) string { return m.replacer.Replace(s) }

// err is the text of err without secrets, "" for nil.
func (m mask) err(err error) string {
	if err == nil {
		return ""
	}
	return text.Cut(m.text(err.Error()), maxErrorText)
}

// maxErrorText is how much of an error is logged, in bytes.
const maxErrorText = 1 << 10

// queryValues are the values in the query of an address, as written and as meant.
func queryValues(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	var out []string
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		_, raw, _ := strings.Cut(pair, "=")
		out = append(out, raw)
		if meant, err := url.QueryUnescape(raw); err == nil && meant != raw {
			out = append(out, meant)
		}
	}
	if password, ok := u.User.Password(); ok {
		out = append(out, password)
	}
	return out
}
