package access

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/account"
)

// TestStreamsAndExportsAtOnce: a person has 20 streams, all together have one export; what ends makes room.
func TestStreamsAndExportsAtOnce(t *testing.T) {
	g := &New(Options{}).lasting
	var ends []func()
	for range maxStreams {
		end, err := g.take(Stream, account.Person{ID: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if _, err := g.take(Stream, account.Person{ID: "a"}); err == nil {
		t.Error("one stream too many")
	}
	other, err := g.take(Stream, account.Person{ID: "b"})
	if err != nil {
		t.Error(err)
	}
	export, err := g.take(Export, account.Person{ID: "a"})
	if err != nil {
		t.Error(err)
	}
	if _, err := g.take(Export, account.Person{ID: "b"}); err == nil {
		t.Error("two exports")
	}
	export()
	other()
	for _, end := range ends {
		end()
	}
	if _, err := g.take(Export, account.Person{ID: "b"}); err != nil || len(g.streams) > 0 {
		t.Error(err, g.streams)
	}
}

// TestStreamsEndWithTheirRight: a stream ends soon after the logout of its session, the revoking of its token, and
// the disabling of its person; others go on.
func TestStreamsEndWithTheirRight(t *testing.T) {
	t.Parallel()
	r := newRig(t).people()
	began, ended := make(chan string, 3), make(chan string, 3)
	stream := http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		name := q.URL.Query().Get("as")
		began <- name
		<-q.Context().Done()
		ended <- name
	})
	need := account.Need{Role: account.Viewer, Scope: account.Read}
	mux := r.mux(append(r.guard.Routes(), Route{Pattern: "GET /stream", For: People, Need: need, Handler: stream, Use: Stream})...)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	until := func(q *http.Request) { *q = *q.WithContext(ctx) }
	for name, how := range map[string]request{
		"session": cookie(r.cookies["owner"]), "token": bearer(r.tokens["member read"]), "person": cookie(r.cookies["viewer"]), "other": cookie(r.cookies["member"]),
	} {
		all.Go(func() { ask(mux, "GET /stream?as="+name, "", until, how) })
	}
	for range 4 {
		<-began
	}
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	tokens, err := r.accounts.Tokens(t.Context(), "the-member")
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range tokens {
		if err := r.accounts.Revoke(t.Context(), by, "the-member", token.Head); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.accounts.Disable(t.Context(), by, "the-viewer", true); err != nil {
		t.Fatal(err)
	}
	ask(mux, "POST /api/v1/logout", "", cookie(r.cookies["owner"]))
	var gone []string
	for range 3 {
		select {
		case name := <-ended:
			gone = append(gone, name)
		case <-time.After(3 * time.Second):
			t.Fatalf("only %q ended", gone)
		}
	}
	if strings.Contains(strings.Join(gone, " "), "other") {
		t.Error("a stream ended that may go on")
	}
	cancel()
	all.Wait()
}
