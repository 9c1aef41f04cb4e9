package offer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/rawjson"
	"xiaozhi/mcp/secret"
)

// Limits of declarative tools.
const (
	maxToolFile  = 256 << 10 // bytes of one file
	maxToolFiles = 256
	maxPage      = 1 << 20 // bytes of one answer
	pageTime     = 15 * time.Second
)

// HTTPTool is a tool that is one HTTP request, as a file of the folder of tools
// describes it. In its texts {name} stands for an argument: escaped in the
// address, as JSON in a body of JSON, as it is elsewhere; ${NAME} stands for a
// variable of the environment. Address, headers and body may be in files of their own,
// or sealed for the host of the address.
type HTTPTool struct {
	Name        string         `yaml:"name"` // stream.name, or a bare name
	Description string         `yaml:"description"`
	Schema      map[string]any `yaml:"schema"` // JSON Schema of the arguments; left out: none
	ReadOnly    bool           `yaml:"read_only"`
	Destructive bool           `yaml:"destructive"` // it needs a spoken yes
	Kind        mcp.Kind       `yaml:"kind"`        // "": as [mcp.ExplainKind] says
	Timeout     time.Duration  `yaml:"timeout"`     // 0: 15 s
	Request     HTTPRequest    `yaml:"request"`
	Result      string         `yaml:"result"` // text with {path.of.json}, * for all of a list; "": all of the answer

	page   *page // the request, checked
	schema json.RawMessage
}

// HTTPRequest is the request of a declarative tool.
type HTTPRequest struct {
	Method  string            `yaml:"method"` // "": GET, or POST with a body
	URL     string            `yaml:"url"`
	Headers map[string]string `yaml:"headers"`
	Body    string            `yaml:"body"`

	URLFile    string            `yaml:"url_file"` // its content becomes URL
	HeaderFile map[string]string `yaml:"headers_file"`
	BodyFile   string            `yaml:"body_file"`
}

// toolFile is one file: one tool, or a list.
type toolFile struct {
	HTTPTool `yaml:",inline"`
	Tools    []HTTPTool `yaml:"tools"`
}

// readToolFile reads the tools of a file. The error joins all that is wrong.
func readToolFile(ctx context.Context, data []byte, from secret.Sources) ([]HTTPTool, error) {
	d := yaml.NewDecoder(strings.NewReader(string(data)))
	d.KnownFields(true)
	var f toolFile
	if err := d.Decode(&f); err != nil {
		return nil, err
	}
	list := f.Tools
	if f.Name != "" {
		list = append([]HTTPTool{f.HTTPTool}, list...)
	}
	if len(list) == 0 {
		return nil, errors.New(`there is no tool: "name" or "tools" is missing`)
	}
	var out []HTTPTool
	var errs []error
	for i, t := range list {
		e, err := t.checked(ctx, from)
		if err != nil {
			errs = append(errs, fmt.Errorf("tool %d (%.64s): %w", i+1, t.Name, err))
			continue
		}
		out = append(out, e)
	}
	return out, errors.Join(errs...)
}

// page is a declarative tool, checked.
type page struct {
	method  string
	address string
	headers map[string]header
	body    string
	result  string
	client  *http.Client
}

// header is the value of a header. In one that is kept apart nothing is filled in.
type header struct {
	text  string
	apart bool
}

func (h header) with(arguments map[string]any) string {
	if h.apart {
		return h.text
	}
	return fill(h.text, func(name string) string {
		return strings.NewReplacer("\r", " ", "\n", " ").Replace(plainText(arguments[name]))
	})
}

// compile checks a request, and finds what it refers to.
func (q HTTPRequest) compile(ctx context.Context, from secret.Sources) (*page, error) {
	if err := q.expand(from.Lookup); err != nil {
		return nil, err
	}
	address, err := from.Address(ctx, q.URL, q.URLFile)
	if err != nil {
		return nil, fmt.Errorf("request.url: %w", err)
	}
	p := &page{method: strings.ToUpper(q.Method), address: address, headers: map[string]header{}}
	host, err := p.host()
	if err != nil {
		return nil, err
	}
	if p.body, _, err = from.Sent(ctx, q.Body, q.BodyFile, host); err != nil {
		return nil, fmt.Errorf("request.body: %w", err)
	}
	for name := range q.HeaderFile {
		if _, beside := q.Headers[name]; !beside {
			q.Headers[name] = ""
		}
	}
	for name, value := range q.Headers {
		var h header
		if h.text, h.apart, err = from.Sent(ctx, value, q.HeaderFile[name], host); err != nil {
			return nil, fmt.Errorf("request.headers.%s: %w", name, err)
		}
		p.headers[http.CanonicalHeaderKey(name)] = h
	}
	switch p.method {
	case "":
		p.method = http.MethodGet
		if p.body != "" {
			p.method = http.MethodPost
		}
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return nil, fmt.Errorf("request.method: %q is none of GET, POST, PUT, PATCH, DELETE", q.Method)
	}
	if p.body != "" && p.headers["Content-Type"].text == "" {
		p.headers["Content-Type"] = header{text: "application/json"}
	}
	p.client = &http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > 5 || r.URL.Host != via[0].URL.Host || r.URL.Scheme == "http" && via[0].URL.Scheme == "https" { // it would get the headers
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return p, nil
}

// expand puts variables of the environment into every text. One that is not set is an error that names it.
func (q *HTTPRequest) expand(lookup func(string) (string, bool)) error {
	var missing []string
	expand := func(text string) string {
		return replace(text, "${", func(name string) (string, bool) {
			value, set := lookup(name)
			if !set {
				missing = append(missing, name)
			}
			return value, true
		})
	}
	all := func(texts map[string]string) map[string]string {
		out := map[string]string{}
		for name, text := range texts {
			out[name] = expand(text)
		}
		return out
	}
	q.URL, q.URLFile, q.Body, q.BodyFile = expand(q.URL), expand(q.URLFile), expand(q.Body), expand(q.BodyFile)
	q.Headers, q.HeaderFile = all(q.Headers), all(q.HeaderFile)
	if len(missing) > 0 {
		return fmt.Errorf("%s is not set in the environment", strings.Join(missing, ", "))
	}
	return nil
}

// host returns the address without its path, which no argument chooses.
func (p *page) host() (string, error) {
	u, err := url.Parse(fill(p.address, func(string) string { return "x" }))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("request.url is no address such as http://192.168.1.5/lamp?on={on}")
	}
	_, rest, _ := strings.Cut(p.address, "://")
	if host, _, _ := strings.Cut(rest, "/"); strings.ContainsAny(host, "{}") {
		return "", errors.New("request.url: an argument cannot choose the host")
	}
	return u.Scheme + "://" + u.Host, nil
}

func (p *page) run(ctx context.Context, arguments map[string]any) (any, error) {
	address, query, hasQuery := strings.Cut(p.address, "?")
	address = fill(address, func(name string) string { return url.PathEscape(plainText(arguments[name])) })
	for part := range strings.SplitSeq(address, "/") {
		if part == "." || part == ".." { // they would lead to another path than the one that the file names
			return nil, errors.New("the arguments make no address")
		}
	}
	if hasQuery {
		address += "?" + fill(query, func(name string) string { return url.QueryEscape(plainText(arguments[name])) })
	}
	var body io.Reader
	if p.body != "" {
		body = strings.NewReader(fill(p.body, func(name string) string { return p.inBody(arguments[name]) }))
	}
	req, err := http.NewRequestWithContext(ctx, p.method, address, body)
	if err != nil {
		return nil, errors.New("the arguments make no address")
	}
	for name, value := range p.headers {
		req.Header.Set(name, value.with(arguments))
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	if err != nil {
		return nil, withoutAddress(err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, fmt.Errorf("HTTP %d: %s", resp.StatusCode, catalog.Clip(strings.TrimSpace(string(text))))
	}
	return p.tell(text)
}

// inBody returns an argument as it stands in a body of this kind.
func (p *page) inBody(value any) string {
	kind := p.headers["Content-Type"].text
	switch {
	case strings.Contains(kind, "json"):
		data, _ := rawjson.Marshal(value) // values come from JSON
		return string(data)
	case strings.Contains(kind, "x-www-form-urlencoded"):
		return url.QueryEscape(plainText(value))
	}
	return plainText(value)
}

// tell returns what the result template makes of an answer.
func (p *page) tell(text []byte) (any, error) {
	if p.result == "" {
		return strings.TrimSpace(string(text)), nil
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, errors.New("the answer is no JSON, which the result template needs")
	}
	return fill(p.result, func(path string) string {
		var parts []string
		for _, found := range walk(value, strings.Split(path, ".")) {
			parts = append(parts, plainText(found))
		}
		return strings.Join(parts, ", ")
	}), nil
}

// walk follows a path into JSON; * goes into all of a list or an object's values.
func walk(value any, path []string) []any {
	if len(path) == 0 {
		return []any{value}
	}
	switch v := value.(type) {
	case map[string]any:
		if inner, ok := v[path[0]]; ok {
			return walk(inner, path[1:])
		}
	case []any:
		if path[0] == "*" {
			var out []any
			for _, item := range v {
				out = append(out, walk(item, path[1:])...)
			}
			return out
		}
		if n, err := strconv.Atoi(path[0]); err == nil && n >= 0 && n < len(v) {
			return walk(v[n], path[1:])
		}
	}
	return nil
}

// fill replaces each {name} of a text. Braces around anything that is no name
// stay, so that bodies can hold JSON.
func fill(text string, value func(name string) string) string {
	return replace(text, "{", func(name string) (string, bool) {
		if name == "" || strings.Trim(strings.Map(nameRune, name), "a") != "" {
			return "", false
		}
		return value(name), true
	})
}

// replace replaces each name of a text that follows open and ends with "}", unless
// value does not take it for one.
func replace(text, open string, value func(name string) (string, bool)) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, open)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		name, after, closed := strings.Cut(rest, "}")
		filled, taken := "", false
		if closed {
			filled, taken = value(name)
		}
		if !taken {
			filled, after = open, rest
		}
		b.WriteString(filled)
		text = after
	}
}

// nameRune maps what a name may hold to "a".
func nameRune(r rune) rune {
	if catalog.IsPlain(r) || r == '.' || r == '*' || r > 0x7f {
		return 'a'
	}
	return r
}

// plainText returns a value as text: nothing for null.
func plainText(v any) string {
	if text, ok := v.(string); ok || v == nil {
		return text
	}
	data, _ := rawjson.Marshal(v) // values come from JSON
	return string(data)
}

// withoutAddress returns an error of an HTTP client without the address, which may
// hold a key.
func withoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
