package external

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestWatch: whoever waits for a resource of a server is told when it changes, and what it holds, over a new connection too, and no
// more once nobody waits for it.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		wanted, told, state := []string{"home://door", "home://nothing"}, []string{}, "shut"
		taken := func() []string {
			mu.Lock()
			defer mu.Unlock()
			defer func() { told = nil }()
			return told
		}
		peer := sdk.NewServer(&sdk.Implementation{Name: "home", Version: "1"}, &sdk.ServerOptions{
			SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
			UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
		})
		read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			mu.Lock()
			defer mu.Unlock()
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: state}}}, nil
		}
		peer.AddResource(&sdk.Resource{Name: "door", URI: "home://door"}, read)
		peer.AddResource(&sdk.Resource{Name: "window", URI: "home://window"}, read)
		s, cut := piped(t, peer, ServerOptions{Watch: Watch{
			Wanted: func(server string) []string {
				mu.Lock()
				defer mu.Unlock()
				return slices.Clone(map[string][]string{"near": wanted}[server])
			},
			Changed: func(server, uri, text string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, server+" "+uri+" "+text)
			},
		}})
		running(t, s)
		changes := func(now string, uris ...string) {
			t.Helper()
			mu.Lock()
			state = now
			mu.Unlock()
			for _, uri := range uris {
				if err := peer.ResourceUpdated(t.Context(), &sdk.ResourceUpdatedNotificationParams{URI: uri}); err != nil {
					t.Fatal(err)
				}
			}
			later(time.Second)
		}
		later(time.Second)
		changes("open", "home://door", "home://window")
		if got := taken(); !slices.Equal(got, []string{"near home://door open"}) {
			t.Error(got)
		}
		cut()
		later(2 * time.Second)
		changes("shut", "home://door")
		if got := taken(); !slices.Equal(got, []string{"near home://door shut"}) {
			t.Errorf("after the connection was lost: %v", got)
		}
		mu.Lock()
		wanted = []string{"home://window"}
		mu.Unlock()
		wake(s.watcher.again)
		later(time.Second)
		changes("ajar", "home://door", "home://window")
		if got := taken(); !slices.Equal(got, []string{"near home://window ajar"}) {
			t.Errorf("after others were wanted: %v", got)
		}
	})
}
