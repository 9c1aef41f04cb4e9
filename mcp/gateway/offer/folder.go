package offer

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/internal/private"
	"xiaozhi/mcp"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/secret"
)

const folderPoll = time.Second

// Files reads a folder of declarative tools (*.yaml), again when it changes. A [Follower] drives it and offers
// its tools outward; for conversations it is an [mcp.Source]. The methods of that may be called at the same time.
type Files struct {
	dir     string
	secrets secret.Sources
	log     *slog.Logger
	taken   func(*catalog.Part) // gets the tools when they are others; nil: nobody does
	files   map[string]toolsOf
	told    string // the last warning about the folder itself

	mu     sync.Mutex
	looked bool
	tools  []HTTPTool // checked
}

type toolsOf struct {
	stamp string // changes when the file does
	tools []HTTPTool
}

// NewFiles makes what reads the folder dir; its files may refer to secrets. A nil log discards.
func NewFiles(dir string, from secret.Sources, log *slog.Logger) *Files {
	return &Files{dir: dir, secrets: from, log: cmp.Or(log, slog.New(slog.DiscardHandler)), files: map[string]toolsOf{}}
}

// follow reads the folder again when it changes, until ctx ends.
func (f *Files) follow(ctx context.Context) {
	ticker := time.NewTicker(folderPoll)
	defer ticker.Stop()
	for {
		f.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look reads what has changed. A file that cannot be used leaves its last tools
// in place, and the log says what is wrong with it.
func (f *Files) look(ctx context.Context) {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !os.IsNotExist(err) {
		f.warnOnce("the folder of tools cannot be read", err)
		return
	}
	there := map[string]struct{}{}
	changed := false
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if e.IsDir() || ext != ".yaml" && ext != ".yml" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if len(there) == maxToolFiles {
			f.warnOnce("the folder of tools holds too many files", fmt.Errorf("only %d are read", maxToolFiles))
			break
		}
		there[e.Name()] = struct{}{}
		changed = f.read(ctx, e.Name()) || changed
	}
	for name := range f.files {
		if _, still := there[name]; !still {
			delete(f.files, name)
			changed = true
		}
	}
	f.publish(changed)
}

// publish makes the tools that were read those on offer.
func (f *Files) publish(changed bool) {
	var all []HTTPTool
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		all = append(all, f.files[name].tools...)
	}
	f.mu.Lock()
	f.tools, f.looked = all, true
	f.mu.Unlock()
	if !changed || f.taken == nil {
		return
	}
	p := &catalog.Part{}
	for _, t := range all {
		if err := p.AddTool(t.outward()); err != nil { // it was checked when it was read
			f.log.Warn("tool is not offered outward", "tool", t.Name, "err", err)
		}
	}
	f.taken(p) // a request may be another one behind the same looks
}

// known returns the tools that were read.
func (f *Files) known() []HTTPTool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tools
}

// Start does nothing: the follower reads the folder.
func (f *Files) Start(context.Context) error { return nil }

// Stop does nothing.
func (f *Files) Stop() error { return nil }

// ResetConnection does nothing: the folder is looked at all the time.
func (f *Files) ResetConnection() error { return nil }

// IsReady reports whether the folder has been read.
func (f *Files) IsReady() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.looked
}

// HasTool reports whether a file holds the tool now.
func (f *Files) HasTool(name string) bool {
	return slices.ContainsFunc(f.known(), func(t HTTPTool) bool { return t.Name == name })
}

// GetAvailableTools lists the tools by file, each file's in its order. The first of a name counts.
func (f *Files) GetAvailableTools() []mcp.Tool {
	var out []mcp.Tool
	seen := map[string]bool{}
	for _, t := range f.known() {
		if !seen[t.Name] {
			seen[t.Name] = true
			out = append(out, t.inward())
		}
	}
	return out
}

// CallTool sends the request of a tool. What the other side reports is a [mcp.ToolError].
func (f *Files) CallTool(ctx context.Context, name string, arguments map[string]any) (any, error) {
	all := f.known()
	i := slices.IndexFunc(all, func(t HTTPTool) bool { return t.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("call %s: %w", name, mcp.ErrNoTool)
	}
	result, err := all[i].page.run(ctx, arguments)
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("call %s: %w", name, ctx.Err())
	}
	return nil, &mcp.ToolError{Message: err.Error()}
}

func (f *Files) read(ctx context.Context, name string) (changed bool) {
	path := filepath.Join(f.dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	stamp := fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size())
	old := f.files[name]
	if old.stamp == stamp {
		return false
	}
	log := f.log.With("file", path)
	f.files[name] = toolsOf{stamp, old.tools}
	if info.Size() > maxToolFile {
		log.Warn("file of tools is too large", "size", info.Size(), "limit", maxToolFile)
		return false
	}
	data, err := private.Read(path)
	if err != nil {
		log.Warn("file of tools cannot be read", "err", err)
		return false
	}
	tools, err := readToolFile(ctx, data, f.secrets)
	if err != nil {
		log.Warn("file of tools is wrong; what it held before stays", "err", catalog.OneLine(err))
		return false
	}
	log.Info("tools read", "tools", len(tools))
	f.files[name] = toolsOf{stamp, tools}
	return true
}

func (f *Files) warnOnce(message string, err error) {
	if text := message + err.Error(); f.told != text {
		f.told = text
		f.log.Warn(message, "dir", f.dir, "err", err)
	}
}
