package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"time"

	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
)

// readyTime bounds the time until the tools of the server of a scenario are known.
const readyTime = 8 * time.Second

// Client does what a scenario of the suite asks a client to do, against the
// server at address: our client of external servers connects, lists, and
// calls each tool once.
func Client(ctx context.Context, address, scenario string) error {
	entry := external.Entry{URL: address, Type: "http", Elicitation: "defaults"}
	var given struct { // of scenarios about clients that were registered by hand
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given) == nil {
		entry.ClientID, entry.ClientSecret = external.Text(given.ID), external.Text(given.Secret)
	}
	server, err := connect(ctx, entry)
	if err != nil {
		return fmt.Errorf("scenario %s: %w", scenario, err)
	}
	defer server.Stop()
	if scenario == "json-schema-ref-no-deref" { // only the list matters; its server knows no calls
		return nil
	}
	var errs []error
	for _, c := range calls(server.GetAvailableTools(), os.Getenv("MCP_CONFORMANCE_CONTEXT")) {
		if _, err := server.CallTool(ctx, c.Name, c.Arguments); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// connect starts our client of one external server and waits for its tools. The
// caller stops it.
func connect(ctx context.Context, entry external.Entry) (*external.Server, error) {
	config, err := entry.Config()
	if err != nil {
		return nil, err
	}
	server := external.NewServer("suite", config, external.ServerOptions{
		Version: "conformance", Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Browse: browse, Redirect: "http://localhost:3000/callback", ClientURL: "https://conformance-test.local/client-metadata.json",
	})
	if err := server.Start(ctx); err != nil {
		return nil, err
	}
	if err := ready(ctx, server); err != nil {
		_ = server.Stop()
		return nil, err
	}
	return server, nil
}

// browse follows the link of a login, whose server agrees at once.
func browse(ctx context.Context, link string) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		return nil, err
	}
	return back.Query(), nil
}

type toolCall struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// calls returns those that the context of the scenario asks for, else one of each tool.
func calls(tools []mcp.Tool, wanted string) []toolCall {
	var asked struct {
		ToolCalls []toolCall `json:"toolCalls"`
	}
	if json.Unmarshal([]byte(wanted), &asked) == nil && len(asked.ToolCalls) > 0 {
		return asked.ToolCalls
	}
	var out []toolCall
	for _, t := range tools {
		c := toolCall{t.Name, arguments(t.Schema)}
		if t.Name == "json_schema_echo" { // it wants to see a schema as we have it
			c.Arguments["schema"] = tools[0].Schema
		}
		out = append(out, c)
	}
	return out
}

func ready(ctx context.Context, server *external.Server) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !server.IsReady() {
		select {
		case <-ctx.Done():
			return errors.New("the tools of the server are not known in time")
		case <-ticker.C:
		}
	}
	return nil
}

func arguments(schema json.RawMessage) map[string]any {
	var s struct {
		Properties map[string]struct {
			Type any   `json:"type"`
			Enum []any `json:"enum"`
		} `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return map[string]any{}
	}
	out := map[string]any{}
	for name, p := range s.Properties {
		switch {
		case len(p.Enum) > 0:
			out[name] = p.Enum[0]
		case p.Type == "integer", p.Type == "number":
			out[name] = 5
		case p.Type == "boolean":
			out[name] = true
		case p.Type == "string":
			out[name] = "text"
		}
	}
	return out
}
