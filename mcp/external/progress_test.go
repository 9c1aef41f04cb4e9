package external

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp"
)

// TestProgress: what a server reports of a call reaches whoever made that call, and nobody else.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peer := tools(t)
		peer.AddTool(&sdk.Tool{Name: "long", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			token := r.Params.GetProgressToken()
			for _, one := range []any{token, 99, "x", nil} {
				if token != nil {
					_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: one, Progress: 1, Total: 4, Message: "a\nb" + strings.Repeat("x", 500)})
				}
			}
			return words(fmt.Sprint("asked for reports: ", token != nil)), nil
		})
		s, _ := piped(t, peer, ServerOptions{})
		running(t, s)
		var mu sync.Mutex
		var heard []mcp.Progress
		ctx := mcp.WithProgress(t.Context(), func(p mcp.Progress) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, p)
		})
		if got, err := s.CallTool(ctx, "long", nil); err != nil || got != "asked for reports: true" {
			t.Errorf("%v, %v", got, err)
		}
		synctest.Wait()
		mu.Lock()
		if len(heard) != 1 || heard[0].Done != 1 || heard[0].Total != 4 || !strings.HasPrefix(heard[0].Message, "a b") || len(heard[0].Message) > 210 {
			t.Errorf("%+v", heard)
		}
		mu.Unlock()
		says(t, s, "long", "asked for reports: false")
	})
}
