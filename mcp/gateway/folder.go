package gateway

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// folderPoll is how often the folder of tools is looked at.
const folderPoll = time.Second

// folder is the folder of declarative tools as it was read last.
type folder struct {
	gateway *Gateway
	dir     string
	files   map[string]toolsOf
	told    string // what was said last of the folder itself
}

// toolsOf are the tools of one file.
type toolsOf struct {
	stamp string // changes when the file does
	tools []*entry
}

// followFolder reads the folder of declarative tools again when it changes.
func (g *Gateway) followFolder(ctx context.Context) {
	f := &folder{gateway: g, dir: g.options.ToolsDir, files: map[string]toolsOf{}}
	ticker := time.NewTicker(folderPoll)
	defer ticker.Stop()
	for {
		f.look()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look reads what has changed. A file that cannot be used leaves its last tools
// in place, and the log says what is wrong with it.
func (f *folder) look() {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !os.IsNotExist(err) {
		f.say("the folder of tools cannot be read", err)
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
			f.say("the folder of tools holds too many files", fmt.Errorf("only %d are read", maxToolFiles))
			break
		}
		there[e.Name()] = struct{}{}
		changed = f.read(e.Name()) || changed
	}
	for name := range f.files {
		if _, still := there[name]; !still {
			delete(f.files, name)
			changed = true
		}
	}
	if changed {
		p := &part{}
		for _, name := range slices.Sorted(maps.Keys(f.files)) {
			p.tools = append(p.tools, f.files[name].tools...)
		}
		// A request may be another one behind the same looks.
		f.gateway.registry.set(partFiles, p)
	}
}

// read reads one file, if it has changed.
func (f *folder) read(name string) (changed bool) {
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
	log := f.gateway.log.With("file", path)
	f.files[name] = toolsOf{stamp, old.tools}
	if info.Size() > maxToolFile {
		log.Warn("file of tools is too large", "size", info.Size(), "limit", maxToolFile)
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		log.Warn("file of tools cannot be read", "err", err)
		return false
	}
	tools, err := readToolFile(data, os.LookupEnv)
	if err != nil {
		log.Warn("file of tools is wrong; what it held before stays", "err", oneLine(err))
		return false
	}
	log.Info("tools read", "tools", len(tools))
	f.files[name] = toolsOf{stamp, tools}
	return true
}

// say logs what is wrong with the folder, once.
func (f *folder) say(message string, err error) {
	if text := message + err.Error(); f.told != text {
		f.told = text
		f.gateway.log.Warn(message, "dir", f.dir, "err", err)
	}
}
