// Package systemd tells the manager of services that started this program how it is: that devices can connect, that it
// stops, and, as long as its heart beats, that it lives. Where nothing waits to hear that, as in a terminal, it does
// nothing. See sd_notify(3) for what is said.
package systemd

import (
	"context"
	"log/slog"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Manager is the one that started the program. Its methods may be called at the same time; a nil one does nothing.
type Manager struct {
	log    *slog.Logger
	notify func(state string) (sent bool, err error)
	within time.Duration // it ends the program that was not heard of for so long; 0: it does not
}

// Started returns the manager that started this program, as the environment names it (NOTIFY_SOCKET, WATCHDOG_USEC).
func Started(log *slog.Logger) *Manager {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the watchdog of the service manager is not understood", "err", err)
	}
	return &Manager{log: log, notify: func(state string) (bool, error) { return daemon.SdNotify(false, state) }, within: within}
}

// Ready says that devices can connect.
func (m *Manager) Ready() { m.say(daemon.SdNotifyReady) }

// Stopping says that the program is about to end.
func (m *Manager) Stopping() { m.say(daemon.SdNotifyStopping) }

// Watch says that the program lives, twice as often as the manager wants to hear it, until ctx ends. It says so only if
// beats, the number of the program's heartbeats, has grown since it was asked last: who does not do what is due is started
// again.
func (m *Manager) Watch(ctx context.Context, beats func() uint64) {
	if m == nil || m.within <= 0 {
		return
	}
	tick := time.NewTicker(m.within / 2)
	defer tick.Stop()
	for last := beats(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := beats()
		if now == last {
			m.log.Error("no heartbeat: the service manager is not told that the server lives", "for", m.within/2)
			continue
		}
		last = now
		m.say(daemon.SdNotifyWatchdog)
	}
}

func (m *Manager) say(state string) {
	if m == nil {
		return
	}
	if _, err := m.notify(state); err != nil {
		m.log.Warn("the service manager was not told", "state", state, "err", err)
	}
}
