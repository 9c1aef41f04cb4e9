package external

import (
	"context"
	"maps"
	"os"
	"slices"
	"time"
)

// stamp tells one state of a file from another. The zero value is no file.
type stamp struct {
	changed time.Time
	size    int64
}

func stampOf(file string) stamp {
	if file == "" {
		return stamp{}
	}
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size()}
}

// watch starts the servers, and again what has changed each time that the file
// has, until ctx ends.
func (f *Fleet) watch(ctx context.Context) {
	defer f.end()
	last := stampOf(f.options.File)
	f.reload(ctx)
	ticker := time.NewTicker(f.options.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now := stampOf(f.options.File); now != last {
			last = now
			f.reload(ctx)
		}
	}
}

// reload reads the file and applies it. One that is broken changes nothing.
func (f *Fleet) reload(ctx context.Context) {
	configs := maps.Clone(f.options.Servers)
	if configs == nil {
		configs = make(map[string]Config)
	}
	if f.options.File == "" {
		f.apply(ctx, configs, nil)
		return
	}
	more, problems, err := CheckFile(f.options.File, f.options.Lookup)
	if err != nil {
		f.log.Error("file of mcp servers is broken; the servers stay as they were", "file", f.options.File, "err", err)
		f.begin(ctx, configs)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		f.log.Error("mcp server is left out", "file", f.options.File, "server", name, "err", problems[name])
	}
	for name, c := range more {
		if _, taken := configs[name]; taken {
			f.log.Warn("mcp server is in the settings and in the file; the settings count", "server", name, "file", f.options.File)
			continue
		}
		configs[name] = c
	}
	for name := range f.options.Servers {
		delete(problems, name)
	}
	f.apply(ctx, configs, problems)
}

// begin starts those of configs that do not run yet and ends none.
func (f *Fleet) begin(ctx context.Context, configs map[string]Config) {
	f.mu.Lock()
	keep := make(map[string]error, len(f.servers))
	for name := range f.servers {
		keep[name] = nil
	}
	f.mu.Unlock()
	f.apply(ctx, configs, keep)
}
