package mcp

import (
	"context"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/text"
)

// What a tool finds in the context that it is called with.
type (
	infoKey    struct{}
	peerKey    struct{}
	callerKey  struct{}
	sentKey    struct{}
	assumedKey struct{}
	heardKey   struct{}
)

// Info describes the turn that a tool is called in. The zero value is a turn of
// which nothing is known.
type Info struct {
	DeviceID string         // Device-Id in lower case; "" for none
	Agent    string         // name of whom the device talks to; "" for none
	Language string         // a tag of BCP 47: the language to answer in; "" for none
	Zone     *time.Location // nil: the server's zone
	Hand     bool           // a person does it at a page, and waits for it
	Pictures bool           // the caller takes pictures as they are: they are not described for it
	Speaker  Speaker        // who has said what the tool is called for
}

// Speaker says who is speaking, as far as their voice tells. It proves nothing: voices can be alike, and
// recorded.
type Speaker struct {
	On      bool   // voices are told apart: who is not known is a stranger
	ID      string // of the person; "": a stranger, or nobody has spoken
	Name    string
	Sure    int  // how much the voices are alike, in per cent
	Certain bool // that is well above what is needed
	Before  bool // the voice was known a moment ago, and is only taken to be the same
	Other   bool // the voice is surely of nobody who is known
}

// Told reports whether the voice itself has told who it is, or that it is a stranger's.
func (s Speaker) Told() bool { return s.Other || s.ID != "" && !s.Before }

// MayAllow reports whether this is one of the people of these names, told by the voice itself. nil: whoever speaks may.
func (s Speaker) MayAllow(people []string) bool {
	return people == nil || s.ID != "" && !s.Before && slices.ContainsFunc(people, func(name string) bool { return strings.EqualFold(name, s.Name) })
}

// WithInfo returns a context that carries info to the tools called under it.
func WithInfo(ctx context.Context, info Info) context.Context {
	return context.WithValue(ctx, infoKey{}, info)
}

// InfoFrom is the Info that ctx carries, or the zero value.
func InfoFrom(ctx context.Context) Info {
	info, _ := ctx.Value(infoKey{}).(Info)
	return info
}

// Peer is the device of a conversation as a tool of this server sees it. All
// methods may be called at the same time.
type Peer interface {
	// Tools are the device's own tools that are offered to the model, IoT ones
	// among them, under the names that the device gave them.
	Tools() []Tool
	// Call runs one of them through the router, hence in its turn, checked and
	// limited like a call of the model, and waits for its outcome.
	Call(ctx context.Context, name string, arguments map[string]any) ActionResponse
}

// NoPeer stands for the device where there is none.
type NoPeer struct{}

// Tools returns none.
func (NoPeer) Tools() []Tool { return nil }

// Call returns that there is no such tool.
func (NoPeer) Call(_ context.Context, name string, _ map[string]any) ActionResponse {
	return ActionResponse{Action: ActionTypeNotFound, Result: "the device has no tool named " + text.Shorten(name, 128)}
}

// WithPeer returns a context that carries the device to the tools called under it.
func WithPeer(ctx context.Context, p Peer) context.Context {
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerFrom is the device that ctx carries, or one without tools. Every call of
// a router carries its device.
func PeerFrom(ctx context.Context) Peer {
	if p, ok := ctx.Value(peerKey{}).(Peer); ok {
		return p
	}
	return NoPeer{}
}

// WithCaller returns a context for a call that outlives its caller, with the caller's context for
// [AfterCaller]. A device cannot stop a tool that it runs, and takes no other call meanwhile: when the
// caller of a query leaves, the call keeps its place, and the device is only told that nobody needs the result.
func WithCaller(ctx, caller context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// AfterCaller calls f, in a goroutine of its own, once the caller of ctx's call has left.
// stop must be called; it returns when f is not running and never will.
func AfterCaller(ctx context.Context, f func()) (stop func()) {
	caller, ok := ctx.Value(callerKey{}).(context.Context)
	if !ok {
		return func() {}
	}
	done := make(chan struct{})
	cancel := context.AfterFunc(caller, func() {
		defer close(done)
		f()
	})
	return func() {
		if !cancel() {
			<-done
		}
	}
}

// WithSent returns a context for a call in which [Sent] calls f.
func WithSent(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, sentKey{}, f)
}

// Sent tells whoever has made the call of ctx that the tool's device has all that it needs, and may be sent other calls
// while the outcome is waited for. A source that says nothing keeps its device until CallTool returns.
func Sent(ctx context.Context) {
	if f, ok := ctx.Value(sentKey{}).(func()); ok {
		f()
	}
}

// WithAssumed returns a context for a call whose success is assumed when it is sent.
func WithAssumed(ctx context.Context) context.Context {
	return context.WithValue(ctx, assumedKey{}, true)
}

// Assumed reports whether nobody waits for the outcome of ctx's call: its source may take until the end of ctx to find out
// whether it was done.
func Assumed(ctx context.Context) bool {
	assumed, _ := ctx.Value(assumedKey{}).(bool)
	return assumed
}

// Progress says how far a call is.
type Progress struct {
	Done    float64 // grows with each report
	Total   float64 // of which Done is a part; 0: not known
	Message string  // as the tool words it; "" for nothing
}

// WithProgress returns a context for a call whose progress f hears. f must not wait.
func WithProgress(ctx context.Context, f func(Progress)) context.Context {
	return context.WithValue(ctx, heardKey{}, f)
}

// ProgressFrom returns who hears of the progress of ctx's call; nil: nobody does.
func ProgressFrom(ctx context.Context) func(Progress) {
	f, _ := ctx.Value(heardKey{}).(func(Progress))
	return f
}
