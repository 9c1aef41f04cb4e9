package offer

import (
	"strings"
	"testing"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/router"
)

// TestTakeDeviceID finds the device in arguments, as an object or as text of one.
func TestTakeDeviceID(t *testing.T) {
	for arguments, want := range map[string][3]string{
		``:                                {"", "", ""},
		`{"device_id":"kitchen","x":1}`:   {"kitchen", `{"x":1}`, ""},
		`"{\"device_id\":\"k\",\"x\":1}"`: {"k", `{"x":1}`, ""},
		`{"x":1}`:                         {"", `{"x":1}`, ""},
		`{"device_id":7}`:                 {"", "", "device_id is no text"},
		`"kitchen"`:                       {"", "", "no JSON object"},
		`[1]`:                             {"", "", "no JSON object"},
	} {
		id, rest, err := takeDeviceID(arguments)
		if err != nil {
			if want[2] == "" || !strings.Contains(err.Error(), want[2]) {
				t.Errorf("%s: %v", arguments, err)
			}
			continue
		}
		if id != want[0] || rest != want[1] || want[2] != "" {
			t.Errorf("%s: %q, %q", arguments, id, rest)
		}
	}
}

// crowd is a device whose model has tools of several sources.
type crowd struct {
	home
	tools []mcp.Tool
}

func (c *crowd) Offers(string) (offers []router.Offer, there bool) {
	for _, t := range c.tools {
		offers = append(offers, router.Offer{Tool: t, LLMName: t.Source})
	}
	return offers, true
}

// A tool that is hidden on a device is not replaced by one of that name of another source.
func TestOnDeviceOtherSource(t *testing.T) {
	devices := &crowd{tools: []mcp.Tool{{Name: "take_photo", Source: "external:shop"}, {Name: "take_photo", Source: "light"}}}
	ctx := catalog.WithCaller(t.Context(), english())
	for source, there := range map[string]bool{"local": false, "device": false, "light": true} {
		o := onDevice(ctx, devices, "kitchen", source, "take_photo", catalog.Call{Language: "en"})
		if o.Response.Action.Failed() == there || there && o.Response.Result != "kitchen light" {
			t.Errorf("%s: %+v", source, o)
		}
	}
}
