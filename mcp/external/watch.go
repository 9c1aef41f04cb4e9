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
		}
		if now := stampOf(set.options.File); now != last {
			last = now
			set.reload(ctx)
		}
	}
}

// reload reads the file and applies it. One that is broken changes nothing.
func (set *Set) reload(ctx context.Context) {
	configs := maps.Clone(set.options.Servers)
	if configs == nil {
		configs = make(map[string]Config)
	}
	if set.options.File == "" {
		set.apply(ctx, configs, nil)
		return
	}
	more, problems, err := CheckFile(set.options.File, set.options.Lookup)
	if err != nil {
		set.log.Error("file of mcp servers is broken; the servers stay as they were", "file", set.options.File, "err", err)
		set.begin(ctx, configs)
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
	for name := range set.options.Servers {
		delete(problems, name)
	}
	set.apply(ctx, configs, problems)
}

// begin starts those of configs that do not run yet and ends none.
func (set *Set) begin(ctx context.Context, configs map[string]Config) {
	set.mu.Lock()
	keep := make(map[string]error, len(set.servers))
	for name := range set.servers {
		keep[name] = nil
	}
	set.mu.Unlock()
	set.apply(ctx, configs, keep)
}
