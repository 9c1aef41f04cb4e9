package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"xiaozhi/internal/admintoken"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/gateway"
	"xiaozhi/mcp/gateway/offer"
)

const toolsUsage = `usage: xiaozhi tools [flags] [DEVICE]
       xiaozhi tools [flags] call DEVICE TOOL [ARGUMENTS]
       xiaozhi tools login [flags] SERVER

%s
%s

`

// toolsClient asks a server's /api/devices.
type toolsClient struct {
	server  string // without a last slash
	token   string // "": none was found
	data    string // folder of the server's admin token
	named   bool   // the folder was named
	asJSON  bool
	timeout time.Duration
	out     io.Writer
}

// parseClient reads the flags of a subcommand that asks a server, and returns what follows them. Not ok: the subcommand
// ends with code. about is the text below its usage.
func parseClient(name, usage, about string, timeout time.Duration, args []string, stdout, stderr io.Writer) (c toolsClient, rest []string, code int, ok bool) {
	c = toolsClient{out: stdout, token: os.Getenv("XIAOZHI_MCP_TOKEN")}
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), usage, message.In(text.English, about), message.In(text.Chinese, about))
		flags.PrintDefaults()
	}
	flags.StringVar(&c.server, "server", "http://127.0.0.1:8000", message.Both("tool/flag-server"))
	flags.StringVar(&c.data, "data", "data", message.Both("tool/flag-data"))
	flags.BoolVar(&c.asJSON, "json", false, message.Both("tool/flag-json"))
	flags.DurationVar(&c.timeout, "timeout", timeout, message.Both("tool/flag-timeout"))
	if err := flags.Parse(args); err != nil {
		return c, nil, exit(err), false
	}
	flags.Visit(func(f *flag.Flag) { c.named = c.named || f.Name == "data" })
	if c.server = strings.TrimRight(c.server, "/"); !strings.Contains(c.server, "://") {
		c.server = "http://" + c.server // localhost:8000
	}
	return c, flags.Args(), 0, true
}

// tools is the subcommand. It returns 0 when it was answered, 1 when the server
// or the tool failed, and 2 when it was misused.
func tools(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "login" {
		return login(ctx, args[1:], stdin, stdout, stderr)
	}
	c, rest, code, ok := parseClient("tools", toolsUsage, "tool/usage", 70*time.Second, args, stdout, stderr)
	if !ok {
		return code
	}
	if i := slices.IndexFunc(rest, func(arg string) bool { return strings.HasPrefix(arg, "--") }); i >= 0 {
		fmt.Fprintf(stderr, "xiaozhi tools: %s\n", message.Both("tool/order", rest[i]))
		return 2
	}
	err := c.findToken()
	switch {
	case err != nil:
	case len(rest) > 0 && rest[0] == "call":
		if len(rest) < 3 || len(rest) > 4 {
			fmt.Fprintln(stderr, "xiaozhi tools:", message.Both("tool/call"))
			return 2
		}
		err = c.call(ctx, rest[1:])
	case len(rest) > 1:
		fmt.Fprintf(stderr, "xiaozhi tools: %s\n", message.Both("tool/unexpected", rest[1]))
		return 2
	default:
		err = c.list(ctx, strings.Join(rest, ""))
	}
	if err != nil {
		fmt.Fprintf(stderr, "xiaozhi tools: %v\n", err)
		return 1
	}
	return 0
}

// findToken takes the token of the environment, or the admin token of the data folder.
// That of ./data is only shown to a server on this machine: another one is likely not
// its own.
func (c *toolsClient) findToken() error {
	if c.token != "" {
		return nil
	}
	u, err := url.Parse(c.server)
	if !c.named && (err != nil || !isLoopback(u.Hostname())) {
		return nil //nolint:nilerr // who asks names the address that is wrong
	}
	token, err := admintoken.Read(c.data)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !c.named:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return errors.New(message.Both("tool/no-admin-token", c.data))
	}
	c.token = token
	return err
}

// isLoopback reports whether a host is this machine.
func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (c toolsClient) list(ctx context.Context, device string) error {
	device, err := c.device(ctx, device)
	if err != nil {
		return err
	}
	var list gateway.ToolList
	if err := c.ask(ctx, http.MethodGet, "/api/devices/"+url.PathEscape(device)+"/tools", nil, &list); err != nil || c.asJSON {
		return err
	}
	fmt.Fprintf(c.out, "%s: %s\n", list.Device, message.Both("tool/count", len(list.Tools)))
	for _, t := range list.Tools {
		marks := ""
		if t.Job {
			marks += ", " + message.Both("tool/job")
		}
		if t.Consent {
			marks += ", " + message.Both("tool/consent")
		}
		if t.ForPeople {
			marks += ", " + message.Both("tool/for-people")
		}
		name := t.Name
		if t.LLMName != t.Name && t.LLMName != "" {
			name += " (" + t.LLMName + ")"
		}
		fmt.Fprintf(c.out, "\n%s\n  %s, %s: %s%s\n", text.Line(name), text.Line(cmp.Or(t.Source, "?")), t.Kind, plainText(t.Why), marks)
		if about := firstLine(t.Description); about != "" {
			fmt.Fprintf(c.out, "  %s\n", about)
		}
	}
	return nil
}

func (c toolsClient) call(ctx context.Context, args []string) error {
	device, err := c.device(ctx, args[0])
	if err != nil {
		return err
	}
	req := gateway.CallRequest{Name: args[1], Arguments: json.RawMessage("{}")}
	if len(args) == 3 {
		if !json.Valid([]byte(args[2])) {
			return fmt.Errorf("%s: %s", message.Both("tool/arguments"), args[2])
		}
		req.Arguments = json.RawMessage(args[2])
	}
	var result gateway.CallResult
	if err := c.ask(ctx, http.MethodPost, "/api/devices/"+url.PathEscape(device)+"/tools/call", req, &result); err != nil {
		return err
	}
	if result.IsError {
		return fmt.Errorf("%s: %s", plainText(result.Name), plainText(fmt.Sprint(result.Result)))
	}
	if c.asJSON {
		return nil
	}
	return c.print(result)
}

func (c toolsClient) print(result gateway.CallResult) error {
	switch text := result.Result.(type) {
	case nil:
	case string:
		fmt.Fprintln(c.out, plainText(text))
	default:
		data, err := json.MarshalIndent(text, "", "  ")
		if err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
		fmt.Fprintln(c.out, plainText(string(data)))
	}
	if result.Say != nil {
		fmt.Fprintf(c.out, "%s: %s\n", message.Both("tool/says"), plainText(fmt.Sprint(result.Say)))
	}
	fmt.Fprintf(c.out, "(%s, %d ms)\n", result.Action, result.Took)
	return nil
}

// device is the device that is meant: the one that is named, or the only one.
func (c toolsClient) device(ctx context.Context, name string) (string, error) {
	if name != "" && name != "-" {
		return name, nil
	}
	quiet := c
	quiet.asJSON = false
	var list struct{ Devices []offer.Device }
	if err := quiet.ask(ctx, http.MethodGet, "/api/devices", nil, &list); err != nil {
		return "", err
	}
	switch len(list.Devices) {
	case 0:
		return "", errors.New(message.Both("tool/no-device"))
	case 1:
		return list.Devices[0].ID, nil
	}
	var names []string
	for _, d := range list.Devices {
		names = append(names, strings.TrimSpace(d.ID+" "+d.Name))
	}
	return "", fmt.Errorf("%s\n  %s", message.Both("tool/which"), strings.Join(names, "\n  "))
}

// file gets what a path serves.
func (c toolsClient) file(ctx context.Context, path string) (body []byte, err error) {
	c.asJSON = false
	err = c.ask(ctx, http.MethodGet, path, nil, &body)
	return body, err
}

// ask makes one request. An answer that is an error comes back as one.
func (c toolsClient) ask(ctx context.Context, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var payload bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&payload).Encode(body); err != nil {
			return fmt.Errorf("write the request: %w", err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, &payload)
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", message.Both("tool/no-answer"), err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		var p struct{ Message string }
		if json.Unmarshal(data, &p) != nil || p.Message == "" {
			p.Message = firstLine(string(data))
		}
		if res.StatusCode == http.StatusUnauthorized && c.token == "" {
			p.Message = message.Both("tool/no-token")
		}
		return fmt.Errorf("%s: %s", res.Status, p.Message)
	}
	if file, ok := answer.(*[]byte); ok {
		*file = data
		return nil
	}
	if c.asJSON {
		fmt.Fprintf(c.out, "%s", data)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("%s: %w", message.Both("tool/strange-answer"), err)
	}
	return nil
}

// firstLine is the beginning of a text, for a list.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if r := []rune(line); len(r) > 100 {
		line = string(r[:100]) + "…"
	}
	return plainText(line)
}

// plainText is a stranger's text without what would steer the terminal.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, text)
}
