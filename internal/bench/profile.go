package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// profiles asks a Go server for its profiles. The zero value has none.
type profiles struct {
	url string // ends in /debug/pprof/; empty: none
	dir string // where to put them; empty: nowhere
}

func get(ctx context.Context, url string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

// take writes the processor profile of that long and then the heap's.
func (p profiles) take(ctx context.Context, name string, length time.Duration) error {
	if p.dir == "" {
		return nil
	}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	for _, q := range []struct{ ask, file string }{
		{fmt.Sprintf("profile?seconds=%d", max(1, int(length.Seconds()))), "-cpu.pprof"},
		{"heap", "-heap.pprof"},
	} {
		data, err := get(ctx, p.url+q.ask)
		if err == nil {
			err = os.WriteFile(filepath.Join(p.dir, name+q.file), data, 0o644)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// goroutines counts the server's goroutines without those of its idle
// connections to providers, which come and go by themselves.
func (p profiles) goroutines(ctx context.Context) (int, error) {
	if p.url == "" {
		return 0, errors.New("no profiles of this server")
	}
	dump, err := get(ctx, p.url+"goroutine?debug=2")
	return countGoroutines(string(dump)), err
}

func countGoroutines(dump string) int {
	n := 0
	for stack := range strings.SplitSeq(dump, "\n\n") {
		if strings.HasPrefix(strings.TrimSpace(stack), "goroutine ") && !strings.Contains(stack, "net/http.(*persistConn)") {
			n++
		}
	}
	return n
}
