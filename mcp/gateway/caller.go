package gateway

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
)

// caller is who sends a request, as Access has found.
type caller struct {
	token    *Token // nil: this machine, without a token
	remote   string
	via      string // jsonrpc, rest, ws, sse: for the audit
	language string // "zh" or "en"
	// gone runs f when the other side leaves, unless stop is called before; nil:
	// that is not known.
	gone func(f func()) (stop func() bool)
}

type callerKey struct{}

func withCaller(ctx context.Context, c caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// callerFrom is the caller that Access has put into ctx; without one it is
// nobody, who may see nothing that a token is needed for.
func callerFrom(ctx context.Context) caller {
	c, ok := ctx.Value(callerKey{}).(caller)
	if !ok {
		c = caller{token: &Token{Name: "nobody", Streams: []string{""}, ReadOnly: true}, language: "zh"}
	}
	return c
}

func (c caller) name() string {
	if c.token == nil {
		return ""
	}
	return c.token.Name
}

func (c caller) readOnly() bool { return c.token != nil && c.token.ReadOnly }

// sees reports whether the caller may see a stream.
func (c caller) sees(stream string) bool {
	return c.token == nil || len(c.token.Streams) == 0 || slices.ContainsFunc(c.token.Streams, func(pattern string) bool {
		ok, err := path.Match(pattern, stream)
		return ok && err == nil && stream != ""
	})
}

// reaches reports whether the caller's tools may work on a device: one that
// names devices among its streams is kept to them.
func (c caller) reaches(deviceID string) bool {
	if c.token == nil || c.sees(StreamOf(deviceID)) {
		return true
	}
	return !slices.ContainsFunc(c.token.Streams, func(pattern string) bool { return strings.HasPrefix(pattern, "device-") })
}

// shows reports whether a device may be named to the caller.
func (c caller) shows(deviceID string) bool {
	return c.reaches(deviceID) && (c.sees(StreamOf(deviceID)) || c.sees("device"))
}

// languageOf is what a request wants to be answered in: the first of zh and en
// in Accept-Language, else Chinese.
func languageOf(r *http.Request) string { return languageIn(r.Header) }

func languageIn(header http.Header) string {
	for tag := range strings.SplitSeq(strings.ToLower(header.Get("Accept-Language")), ",") {
		tag = strings.TrimSpace(tag)
		for _, lang := range []string{"zh", "en"} {
			if strings.HasPrefix(tag, lang) {
				return lang
			}
		}
	}
	return "zh"
}

// say picks the text in a language.
func say(language, zh, en string) string {
	if language == "en" {
		return en
	}
	return zh
}

// until has ctx tell when the other side leaves.
func (c caller) until(ctx context.Context) caller {
	c.gone = func(f func()) func() bool { return context.AfterFunc(ctx, f) }
	return c
}

// contextLanguage is the language of the caller of ctx.
func contextLanguage(ctx context.Context) string { return callerFrom(ctx).language }
