//lint:file-ignore SA1019 servers still ask for roots

package external

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestRoots: a server is told of the folders of its entry, and of none where there are none.
func TestRoots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, roots := range [][]Text{nil, {"/srv/my files/", "file:///data"}} {
			c := config(t, Entry{Command: "x", Roots: roots, Protocol: "legacy"})
			p := newPipeNet()
			peer := tools(t)
			peer.AddTool(&sdk.Tool{Name: "roots", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				if r.Session.InitializeParams().Capabilities.RootsV2 == nil {
					return words("not told"), nil
				}
				list, err := r.Session.ListRoots(ctx, nil)
				if err != nil {
					return nil, err
				}
				var all []string
				for _, root := range list.Roots {
					all = append(all, root.URI)
				}
				return words(strings.Join(all, " ")), nil
			})
			p.serve(t, streamable(t, peer))
			c.Transport, c.URL = HTTP, "http://h/mcp"
			s := dialled(c, p, ServerOptions{})
			running(t, s)
			want := "not told"
			if roots != nil {
				want = "file:///data file:///srv/my%20files"
			}
			says(t, s, "roots", want)
		}
	})
	for _, bad := range []Text{"relative/path", "https://x/y", "file://other/host", ""} {
		if _, err := (Entry{Command: "x", Roots: []Text{bad}}).Config(); err == nil || !strings.Contains(err.Error(), "roots") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
