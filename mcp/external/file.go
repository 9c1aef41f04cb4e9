package external

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/private"
	"xiaozhi/mcp/secret"
)

// maxFile is the size that the file of servers may have, in bytes.
const maxFile = 1 << 20

// maxServers is how many servers there may be.
const maxServers = 64

// parseServers reads the text of a file, in the shape that desktop clients use:
// the servers that can be used, and the problems of those that are left out. An
// error says that nothing of it can be used, and where it is broken.
func parseServers(ctx context.Context, data []byte, from secret.Sources) (configs map[string]Config, problems map[string]error, err error) {
	configs, problems = map[string]Config{}, map[string]error{}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return configs, problems, nil
	}
	var document struct {
		Servers *map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := decodeJSON(data, &document); err != nil {
		return configs, problems, err
	}
	if document.Servers == nil {
		return configs, problems, errors.New(`there is no "mcpServers" in it`)
	}
	if n := len(*document.Servers); n > maxServers {
		return configs, problems, fmt.Errorf("%d servers are too many (at most %d)", n, maxServers)
	}
	for name, raw := range *document.Servers {
		c, off, err := parseEntry(ctx, name, raw, from)
		switch {
		case err != nil:
			problems[name] = err
		case !off:
			configs[name] = c
		}
	}
	return configs, problems, nil
}

func parseEntry(ctx context.Context, name string, raw json.RawMessage, from secret.Sources) (c Config, off bool, err error) {
	var e Entry
	if strings.TrimSpace(name) == "" {
		return c, false, errors.New("a server has no name")
	}
	if bytes.Equal(raw, []byte("null")) {
		return c, false, errors.New("there is neither a command nor a url")
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return c, false, plainJSONError(err)
	}
	if e.Off() {
		return c, true, nil
	}
	if err := e.expand(from.Lookup); err != nil {
		return c, false, err
	}
	if err := e.fill(ctx, from); err != nil {
		return c, false, err
	}
	c, err = e.Config()
	return c, false, err
}

// decodeJSON reads one JSON document. The error names line and column, counted from
// 1, columns in bytes.
func decodeJSON(data []byte, to any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	err := decoder.Decode(to)
	offset := int64(len(data)) // it ends too early
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		offset, err = decoder.InputOffset(), errors.New("there is more after the end of the document")
	} else if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = kind.Offset
	}
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("line %d, column %d: %w", line, column, plainJSONError(err))
}

// plainJSONError says which key is of the wrong kind, without Go's names of types.
func plainJSONError(err error) error {
	kind, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	if kind.Field == "" {
		return fmt.Errorf("want a section of keys, found %s", kind.Value)
	}
	return fmt.Errorf("%s: %s is the wrong kind of value", kind.Field, kind.Value)
}

// CheckFile reads a file of servers and says what is in it: the servers that can
// be used, and what is wrong with others or, as the error, with all of it. One
// that is not there is empty. from has the secrets that it refers to.
func CheckFile(ctx context.Context, name string, from secret.Sources) (configs map[string]Config, problems map[string]error, err error) {
	if stampOf(name).size > maxFile {
		return nil, nil, fmt.Errorf("more than %d bytes are too many", maxFile)
	}
	data, err := private.Read(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	return parseServers(ctx, data, from)
}

// expand puts variables of the environment into every text of the entry. One
// that is not set is an error that names it.
func (e *Entry) expand(lookup func(string) (string, bool)) error {
	variable := regexp.MustCompile(`\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)
	var lost []string
	fill := func(text string) string {
		return variable.ReplaceAllStringFunc(text, func(found string) string {
			parts := variable.FindStringSubmatch(found)
			value, set := lookup(parts[1])
			switch {
			case value != "":
				return value
			case parts[2] != "":
				return strings.TrimPrefix(parts[2], ":-")
			case !set && !slices.Contains(lost, parts[1]):
				lost = append(lost, parts[1])
			}
			return ""
		})
	}
	for i := range e.Roots {
		e.Roots[i] = Text(fill(string(e.Roots[i])))
	}
	for _, text := range []*Text{&e.ClientID, &e.ClientSecret} {
		*text = Text(fill(string(*text)))
	}
	for _, text := range []*string{&e.Command, &e.Cwd, &e.URL, &e.BaseURL, &e.ServerURL, &e.HTTPURL, &e.URLFile, &e.ClientSecretFile} {
		*text = fill(*text)
	}
	for _, m := range []map[string]string{e.EnvFile, e.HeadersFile} {
		for name, file := range m {
			m[name] = fill(file)
		}
	}
	for i := range e.Args {
		e.Args[i] = Text(fill(string(e.Args[i])))
	}
	for _, m := range []map[string]Text{e.Env, e.Headers} {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			m[name] = Text(fill(string(m[name])))
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("the environment variable %s is not set", strings.Join(lost, ", "))
	}
	return nil
}

// fill puts the secrets into the entry that are in files of their own or sealed: those are opened for its program or
// its host only. The error joins all that is wrong.
func (e *Entry) fill(ctx context.Context, from secret.Sources) error {
	var errs []error
	found := func(key, value string, err error) string {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", key, err))
		}
		return value
	}
	for address, file := range map[*string]string{&e.URL: e.URLFile, &e.BaseURL: "", &e.ServerURL: "", &e.HTTPURL: ""} {
		value, err := from.Address(ctx, *address, file)
		*address = found("url", value, err)
	}
	if len(errs) > 0 {
		return errors.Join(errs...) // where the others would go is not known
	}
	of := func(key string, texts map[string]Text, files map[string]string, read func(text, file string) (string, error)) map[string]Text {
		out := map[string]Text{}
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			value, err := read(string(texts[name]), files[name])
			out[name] = Text(found(key+"."+name, value, err))
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if _, had := texts[name]; !had {
				value, err := read("", files[name])
				out[name] = Text(found(key+"_file."+name, value, err))
			}
		}
		return out
	}
	e.Env = of("env", e.Env, e.EnvFile, func(text, file string) (string, error) { return from.Given(ctx, text, file, e.program()) })
	e.Headers = of("headers", e.Headers, e.HeadersFile, func(text, file string) (string, error) {
		value, _, err := from.Sent(ctx, text, file, e.address())
		return value, err
	})
	value, _, err := from.Sent(ctx, string(e.ClientSecret), e.ClientSecretFile, e.address())
	e.ClientSecret = Text(found("client_secret", value, err))
	return errors.Join(errs...)
}

// stamp tells one state of a file from another. The zero value is no file.
type stamp struct {
	changed time.Time
	size    int64
}

func stampOf(file string) stamp {
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// watch starts the servers, and again what has changed each time that the file
// has, until ctx ends.
func (set *Set) watch(ctx context.Context) {
	defer set.end()
	last := stampOf(set.options.File)
	set.reload(ctx)
	ticker := time.NewTicker(set.options.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-set.other:
			set.reload(ctx)
		}
		if now := stampOf(set.options.File); now != last {
			last = now
			set.reload(ctx)
		}
	}
}

// reload reads the file and applies it. One that is broken changes nothing.
func (set *Set) reload(ctx context.Context) {
	configs := make(map[string]Config)
	set.mu.Lock()
	ours := set.ours
	set.mu.Unlock()
	maps.Copy(configs, ours)
	more, problems, err := CheckFile(ctx, set.options.File, set.options.Secrets)
	if err != nil {
		set.log.Error("file of mcp servers is broken; the servers stay as they were", "file", set.options.File, "err", err)
		running := make(map[string]error)
		for _, s := range set.list(nil) {
			if _, set := ours[s.name]; !set {
				running[s.name] = err
			}
		}
		set.unusable(nil, err)
		set.apply(ctx, configs, running)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		set.log.Error("mcp server is left out", "file", set.options.File, "server", name, "err", problems[name])
	}
	for name, c := range more {
		if _, taken := configs[name]; taken {
			set.log.Warn("mcp server is in the settings and in the file; the settings count", "server", name, "file", set.options.File)
			continue
		}
		configs[name] = c
	}
	for name := range ours {
		delete(problems, name)
	}
	set.unusable(problems, nil)
	set.apply(ctx, configs, problems)
}
