package catalog

import (
	"context"
	"log/slog"
	"net/http"
	"path"
	"slices"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp"
)

// Token lets its bearer in.
type Token struct {
	Name     string   // for the log
	Token    string   // never empty, never logged
	ReadOnly bool     // only reading is allowed: also of tools, those of this server that change nothing
	Streams  []string // patterns (path.Match) of the streams that are shown; empty: all. Named devices: no others
	Rate     int      // requests in a second, over some seconds; 0: no limit
	Account  *Account // what it may do by an account, within the above; nil: it is one of the settings

	// Only, of a token that this server has made for itself, narrows what is shown to tools: those for which it is true,
	// and that are run without somebody who is asked first. names are what a tool is called beside its own name.
	Only func(t mcp.Tool, names []string) bool
}

// LogValue keeps the token out of logs.
func (t Token) LogValue() slog.Value { return slog.StringValue(t.Name) }

// Caller is the sender of a request, as access control has found it. One with neither
// a token nor the owner's is shown nothing for which a token is needed.
type Caller struct {
	Token    *Token
	Owner    bool   // it has shown the admin token: everything is allowed, and Token is nil
	Remote   string // address
	Via      string // jsonrpc, rest, ws, sse, api: for the log
	Language string // "zh" or "en"
	// Gone runs f when the other side leaves, unless stop is called before; nil:
	// that is not known.
	Gone func(f func()) (stop func() bool)
}

type callerKey struct{}

// WithCaller returns ctx with the caller of a request.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller that [WithCaller] put into ctx. Without one it
// returns a caller that is shown nothing for which a token is needed.
func CallerFrom(ctx context.Context) Caller {
	c, ok := ctx.Value(callerKey{}).(Caller)
	if !ok {
		c = Caller{Language: "zh"}
	}
	return c
}

// Name returns the name of the caller's token; "" for the owner, "nobody" without one.
func (c Caller) Name() string {
	switch {
	case c.Owner:
		return ""
	case c.Token == nil:
		return "nobody"
	}
	return c.Token.Name
}

// ReadOnly reports whether the caller may change nothing by tools, but perhaps speak.
func (c Caller) ReadOnly() bool {
	a := c.account()
	return !c.Owner && (c.Token == nil || c.Token.ReadOnly || a != nil && !a.Tools && !a.Admin)
}

// Sees reports whether a stream is shown to the caller.
func (c Caller) Sees(stream string) bool {
	if c.Owner || c.Token == nil || !c.account().sees(stream) {
		return c.Owner
	}
	return len(c.Token.Streams) == 0 || slices.ContainsFunc(c.Token.Streams, func(pattern string) bool {
		ok, err := path.Match(pattern, stream)
		return ok && err == nil && stream != ""
	})
}

// Reaches reports whether the caller's tools may work on a device. A token that
// names devices among its streams is kept to them.
func (c Caller) Reaches(deviceID string) bool {
	if c.Owner || c.Token == nil || !c.account().reaches(deviceID) {
		return c.Owner
	}
	if c.Sees(StreamOf(deviceID)) {
		return true
	}
	return !slices.ContainsFunc(c.Token.Streams, func(pattern string) bool { return strings.HasPrefix(pattern, "device-") })
}

// Shows reports whether a device may be named to the caller.
func (c Caller) Shows(deviceID string) bool {
	return c.Reaches(deviceID) && (c.Sees(StreamOf(deviceID)) || c.Sees("device"))
}

// LanguageOf returns the language to answer a request in: the first of zh and en
// in Accept-Language, else zh.
func LanguageOf(header http.Header) string {
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

// CallerOf returns the sender of a request, without a token.
func CallerOf(r *http.Request) Caller {
	return Caller{Remote: r.RemoteAddr, Language: LanguageOf(r.Header)}
}

// Both returns a text of the gateway in Chinese and in English, for what is listed
// to clients of any language.
func Both(id string, args ...any) string {
	return message.In(text.Chinese, id, args...) + " / " + message.In(text.English, id, args...)
}

// Say returns a text of the gateway in the caller's language, with args filled in as
// by [message.In].
func (c Caller) Say(id string, args ...any) string {
	return message.In(text.Lang(c.Language), id, args...)
}

// Until returns c as a caller whose other side leaves when ctx ends.
func (c Caller) Until(ctx context.Context) Caller {
	c.Gone = func(f func()) func() bool { return context.AfterFunc(ctx, f) }
	return c
}
