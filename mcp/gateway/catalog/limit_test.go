package catalog

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
)

// TestRunnerLimit: a call from outside ends when a setting says so, else when its tool does, else after a minute. Where
// a router runs the tool, it has that time beside the time it may wait.
func TestRunnerLimit(t *testing.T) {
	never := func(ctx context.Context, _ Call) Outcome {
		<-ctx.Done()
		return Outcome{Response: mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "late"}}
	}
	for name, test := range map[string]struct {
		tool Tool
		want time.Duration
	}{
		"nothing is said":      {Tool{Stream: "a", Name: "b"}, time.Minute},
		"as the tool says":     {Tool{Stream: "a", Name: "b", Timeout: 3 * time.Minute}, 3 * time.Minute},
		"as a setting says":    {Tool{Stream: "maps", Name: "find", Source: "external:maps", Trusted: true, Timeout: 3 * time.Minute}, 7 * time.Second},
		"by its name outward":  {Tool{Stream: "a", Name: "slow", Timeout: time.Second}, 5 * time.Minute},
		"a tool of a router's": {Tool{Stream: "device-1", Name: "self.fan", Source: "device", Routed: true, Timeout: 4 * time.Minute}, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t)
				s.runner.SetTimes(router.Times{"external:maps/*": 7 * time.Second, "a.slow": 5 * time.Minute, "self.*": time.Minute})
				test.tool.Do = never
				if err := s.Add(test.tool); err != nil {
					t.Fatal(err)
				}
				v, _ := s.Of(Caller{Owner: true}, "")
				began := time.Now()
				result, err := s.runner.Run(WithCaller(t.Context(), Caller{Owner: true}), v.Tools()[0], nil, nil)
				if err != nil || !result.IsError || time.Since(began) != test.want {
					t.Errorf("%v, %v after %v, want %v", result, err, time.Since(began), test.want)
				}
				synctest.Wait()
			})
		})
	}
}
