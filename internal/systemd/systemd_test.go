package systemd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestManagerHears: what is said arrives at the socket that the environment names.
func TestManagerHears(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "20000")
	m := Started(slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan struct{})
	m.Ready()
	beats := uint64(0)
	go func() {
		defer close(done)
		m.Watch(ctx, func() uint64 { beats++; return beats })
	}()
	var heard []string
	for len(heard) < 3 {
		b := make([]byte, 100)
		n, err := socket.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		heard = append(heard, string(b[:n]))
		if len(heard) == 2 {
			stop()
			<-done
			m.Stopping()
		}
	}
	if !slices.Equal(heard[:2], []string{"READY=1", "WATCHDOG=1"}) || !slices.Contains([]string{"STOPPING=1", "WATCHDOG=1"}, heard[2]) {
		t.Errorf("heard %q", heard)
	}
}

// TestNoManager: a program that a person has started says nothing and waits for nothing.
func TestNoManager(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "")
	for _, m := range []*Manager{nil, Started(slog.New(slog.DiscardHandler))} {
		m.Ready()
		m.Watch(t.Context(), func() uint64 { panic("asked for heartbeats") })
		m.Stopping()
	}
}

// TestWatchNeedsHeartbeat: a program whose heart stands still is not said to live, and is again once it beats.
func TestWatchNeedsHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said []time.Duration
		began := time.Now()
		m := &Manager{log: slog.New(slog.DiscardHandler), within: 10 * time.Second, notify: func(string) (bool, error) {
			said = append(said, time.Since(began))
			return true, errors.New("lost") // is only logged
		}}
		ctx, stop := context.WithTimeout(t.Context(), 31*time.Second)
		defer stop()
		beats := uint64(0)
		m.Watch(ctx, func() uint64 {
			if at := time.Since(began); at < 12*time.Second || at > 22*time.Second {
				beats++
			}
			return beats
		})
		if want := []time.Duration{5 * time.Second, 10 * time.Second, 25 * time.Second, 30 * time.Second}; !slices.Equal(said, want) {
			t.Errorf("said to live at %v, want %v", said, want)
		}
	})
}
