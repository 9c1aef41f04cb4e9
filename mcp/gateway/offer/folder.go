package offer

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/private"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/secret"
)

const folderPoll = time.Second

// folder reads a folder of declarative tools into a registry.
type folder struct {
	dir      string
	secrets  secret.Sources
	registry *catalog.Registry
	log      *slog.Logger
	files    map[string]toolsOf
	told     string // the last warning about the folder itself
}

type toolsOf struct {
	stamp string // changes when the file does
	tools []catalog.Tool
}

func newFolder(dir string, from secret.Sources, r *catalog.Registry, log *slog.Logger) *folder {
	return &folder{dir: dir, secrets: from, registry: r, log: log, files: map[string]toolsOf{}}
}

// follow reads the folder again when it changes, until ctx ends.
func (f *folder) follow(ctx context.Context) {
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
func (f *folder) look(ctx context.Context) {
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
	if changed {
		p := &catalog.Part{}
		for _, name := range slices.Sorted(maps.Keys(f.files)) {
			for _, t := range f.files[name].tools {
				if err := p.AddTool(t); err != nil { // it was checked when it was read
					f.log.Warn("tool is not offered outward", "tool", catalog.JoinName(t.Stream, t.Name), "err", err)
				}
			}
		}
		// A request may be another one behind the same looks.
		f.registry.Set(catalog.PartFiles, p)
	}
}

func (f *folder) read(ctx context.Context, name string) (changed bool) {
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

func (f *folder) warnOnce(message string, err error) {
	if text := message + err.Error(); f.told != text {
		f.told = text
		f.log.Warn(message, "dir", f.dir, "err", err)
	}
}
