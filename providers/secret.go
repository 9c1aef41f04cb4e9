package providers

import (
	"fmt"
	"io"
	"log/slog"
)

// redacted stands for a secret wherever one would be shown.
const redacted = "***"

// Secret is a key or a token. It shows itself in no log, no formatted text and
// no encoded document; only Reveal gives it away. Its zero value is no secret.
type Secret string

// Reveal returns the secret itself, for the request that needs it.
func (s Secret) Reveal() string { return string(s) }

// String returns a placeholder, or "" when there is no secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString returns the placeholder as Go source.
func (s Secret) GoString() string { return fmt.Sprintf("%q", s.String()) }

// Format writes the placeholder for every verb and flag.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.String()
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		text = s.GoString()
	}
	// fmt.State keeps a write error to itself.
	_, _ = io.WriteString(f, text)
}

// LogValue returns the placeholder in log records.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the placeholder in JSON, YAML and the like.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
