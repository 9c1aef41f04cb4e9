package app

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"xiaozhi/docs"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
)

// description is docs/openapi.yaml as a test reads it.
type description struct {
	t    *testing.T
	root map[string]any
	defs map[string]any

	resolved map[string]*jsonschema.Resolved // by the schema
}

func readDescription(t *testing.T) *description {
	t.Helper()
	d := &description{t: t, resolved: map[string]*jsonschema.Resolved{}}
	if err := yaml.Unmarshal(docs.OpenAPI, &d.root); err != nil {
		t.Fatal(err)
	}
	d.defs, _ = d.at(d.root, "components")["schemas"].(map[string]any)
	all := map[string]any{}
	for name := range d.defs {
		all[name] = map[string]any{"$ref": definitions + name}
	}
	if _, err := d.resolve(map[string]any{"properties": all}); err != nil {
		t.Fatal(err)
	}
	return d
}

// at follows references and keys; what is not there is an empty map.
func (d *description) at(node any, keys ...string) map[string]any {
	m, _ := node.(map[string]any)
	for _, key := range append(keys, "") {
		for ref, ok := m["$ref"].(string); ok; ref, ok = m["$ref"].(string) {
			node := d.root
			for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				next, there := node[part].(map[string]any)
				if !there {
					d.t.Fatalf("%s is nowhere", ref)
				}
				node = next
			}
			m = node
		}
		if key != "" {
			m, _ = m[key].(map[string]any)
		}
	}
	return m
}

// valid says what is wrong with a value of a schema.
func (d *description) valid(schema, value any) error {
	resolved, err := d.resolve(schema)
	if err != nil {
		return err
	}
	plain, err := json.Marshal(value) // as JSON has it
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(plain, &v); err != nil {
		return err
	}
	return resolved.Validate(v)
}

// resolve reads a schema once, with the definitions that it needs: all of them take 20 ms.
func (d *description) resolve(schema any) (*jsonschema.Resolved, error) {
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	key := string(text)
	if r, ok := d.resolved[key]; ok {
		return r, nil
	}
	whole := map[string]any{"$defs": d.needed(key, map[string]any{})}
	for k, v := range schema.(map[string]any) {
		whole[k] = v
	}
	if text, err = json.Marshal(whole); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), definitions, "#/$defs/")), &s); err != nil {
		return nil, err
	}
	r, err := s.Resolve(nil)
	if err == nil {
		d.resolved[key] = r
	}
	return r, err
}

// definitions is where references lead to.
const definitions = "#/components/schemas/"

// needed adds the definitions that a text refers to, and those that they refer to.
func (d *description) needed(text string, to map[string]any) map[string]any {
	for _, rest := range strings.Split(text, definitions)[1:] {
		name, _, _ := strings.Cut(rest, `"`)
		if _, there := to[name]; there {
			continue
		}
		def, there := d.defs[name]
		if !there {
			continue // resolving tells
		}
		to[name] = def
		more, err := json.Marshal(def)
		if err != nil {
			d.t.Fatal(err)
		}
		d.needed(string(more), to)
	}
	return to
}

// content walks all that is sent in a part of the description.
func (d *description) content(at string, node any) {
	for kind, media := range d.at(node, "content") {
		m := d.at(media)
		schema := m["schema"]
		if example, ok := m["example"]; ok && schema != nil {
			if err := d.valid(schema, example); err != nil {
				d.t.Errorf("%s, %s: the example: %v", at, kind, err)
			}
		} else if schema == nil {
			d.t.Errorf("%s, %s has no schema", at, kind)
		} else if err := d.valid(schema, map[string]any{}); err != nil && strings.Contains(err.Error(), "resolv") {
			d.t.Errorf("%s, %s: %v", at, kind, err)
		}
	}
}

// TestOpenAPI walks docs/openapi.yaml: each route for programs is in it with who may ask it, and each of it is in the
// program; its examples fit their schemas, and so do the answers of a running server to an owner, and all refusals.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	cfg.ASR, cfg.TTS, cfg.LLM = nil, nil, []string{"rules"}
	a, err := Build(t.Context(), cfg, Options{PasswordCost: cheap, Data: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	h, err := a.routes()
	if err != nil {
		t.Fatal(err)
	}
	const admin = "0123456789abcdef"
	a.web.guard.SetAdmin(admin)
	by := account.Actor{Name: "test", Via: account.ViaCommand}
	if err := a.accounts.Add(t.Context(), by, account.NewUser{Name: "x", Role: account.Owner, Password: "correct horse battery"}); err != nil {
		t.Fatal(err)
	}
	d := readDescription(t)
	ask := func(method, path, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, strings.NewReplacer("{name}", "default", "{id}", "x", "{head}", "x", "{letter}", "x", "{talk}", "x", "{turn}", "x", "{person}", "x", "{voice}", "x").Replace(path), nil)
		r.Host = "127.0.0.1:8000"
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	routes := map[string]access.Route{}
	for _, r := range a.allRoutes() {
		if strings.Contains(r.Pattern, " /api/v1/") {
			routes[r.Pattern] = r
		}
	}
	operations := map[string]bool{}
	for path, item := range d.at(d.root, "paths") {
		for method, operation := range d.at(item) {
			if method == "parameters" {
				continue
			}
			pattern := strings.ToUpper(method) + " " + path
			o, route := d.at(operation), routes[pattern]
			id, _ := o["operationId"].(string)
			if id == "" || operations[id] || o["summary"] == nil {
				t.Errorf("%s has no id of its own, or no summary", pattern)
			}
			operations[id] = true
			if route.Pattern == "" {
				t.Errorf("%s is not in the program", pattern)
				continue
			}
			delete(routes, pattern)
			d.content(pattern+" asks", o["requestBody"])
			for status, response := range d.at(o, "responses") {
				d.content(pattern+" "+status, response)
			}
			role, _ := o["x-role"].(string)
			scope, _ := o["x-scope"].(string)
			own, _ := o["x-own"].(bool)
			fresh, _ := o["x-fresh"].(bool)
			again, _ := o["x-again"].(bool)
			if got := (account.Need{Role: account.Role(role), Scope: account.Scope(scope), Own: own, Fresh: fresh, Again: again}); got != route.Need {
				t.Errorf("%s needs %+v, the description says %+v", pattern, route.Need, got)
			}
			if strings.Count(path, "{") != strings.Count(pathParameters(d, item), ",") {
				t.Errorf("%s does not describe its parameters: %s", pattern, pathParameters(d, item))
			}
			problem := d.at(d.at(o, "responses", "default"), "content", "application/json")["schema"]
			if w := ask(strings.ToUpper(method), path, ""); route.For == access.People {
				d.fits(pattern+" to nobody", problem, w, http.StatusUnauthorized)
			}
			if method != "get" || route.Use == access.Stream {
				continue
			}
			w := ask("GET", path, admin)
			if w.Code >= http.StatusBadRequest {
				d.fits(pattern+" refused", problem, w, w.Code)
				continue
			}
			if schema := d.at(o, "responses", "200", "content", "application/json")["schema"]; schema != nil {
				d.fits(pattern, schema, w, http.StatusOK)
			}
		}
	}
	for pattern := range routes {
		t.Errorf("docs/openapi.yaml does not tell of %s", pattern)
	}
}

// pathParameters names those of a path, each with a comma.
func pathParameters(d *description, item any) (names string) {
	list, _ := d.at(item)["parameters"].([]any)
	for _, p := range list {
		if m := d.at(p); m["in"] == "path" {
			names += m["name"].(string) + ","
		}
	}
	return names
}

// fits checks an answer of the server.
func (d *description) fits(what string, schema any, w *httptest.ResponseRecorder, status int) {
	d.t.Helper()
	var value any
	if err := json.Unmarshal(w.Body.Bytes(), &value); err != nil || w.Code != status || schema == nil {
		d.t.Errorf("%s: %d %s: %v", what, w.Code, w.Body, err)
		return
	}
	if err := d.valid(schema, value); err != nil {
		d.t.Errorf("%s: %v in %s", what, err, w.Body)
	}
}
