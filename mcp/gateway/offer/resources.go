package offer

import (
	"context"
	"encoding/json"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/rawjson"
)

// The resources of this server. A device's are below uriDevices/ID, the id as in
// its stream.
const (
	uriDevices = "xiaozhi://devices"
	uriConfig  = "xiaozhi://config"
	uriLog     = "xiaozhi://log"

	partStatus     = "/status"
	partStates     = "/states"
	partTranscript = "/transcript"
)

const mimeJSON = "application/json"

// shortID returns the id of a device as it stands in streams and URIs.
func shortID(id string) string { return strings.TrimPrefix(catalog.StreamOf(id), "device-") }

func deviceURI(id, about string) string { return uriDevices + "/" + shortID(id) + about }

// addJSON adds a resource that holds the JSON of a value, which of makes when it is read.
func addJSON(p *catalog.Part, stream, uri, name, description string, of func(ctx context.Context) (any, error)) {
	p.AddResource(stream, &sdk.Resource{URI: uri, Name: name, Description: description, MIMEType: mimeJSON}, func(ctx context.Context, _ *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		value, err := of(ctx)
		if err != nil {
			return nil, err
		}
		data, err := rawjson.Marshal(value)
		if err != nil {
			return nil, err
		}
		return textResource(uri, mimeJSON, string(data)), nil
	})
}

func textResource(uri, mime, text string) *sdk.ReadResourceResult {
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: mime, Text: text}}}
}

// addServerResources adds what is known of this server.
func addServerResources(p *catalog.Part, o Options) {
	if o.Config != nil {
		addJSON(p, "system", uriConfig, "config", catalog.Both("gateway/about-config"), func(context.Context) (any, error) {
			return json.RawMessage(o.Config()), nil
		})
	}
	if o.LogTail != nil {
		def := &sdk.Resource{URI: uriLog, Name: "log", Description: catalog.Both("gateway/about-log"), MIMEType: "text/plain"}
		p.AddResource("system", def, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return textResource(uriLog, "text/plain", o.LogTail()), nil
		})
	}
}
