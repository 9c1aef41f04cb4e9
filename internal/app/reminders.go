package app

import (
	"context"
	"log/slog"

	"xiaozhi/agent/feature/alarm"
	"xiaozhi/internal/config"
	"xiaozhi/internal/wire"
)

// reminders makes the book of all timers and reminders.
func reminders(ctx context.Context, cfg *config.Config, log *slog.Logger) *alarm.Book {
	return alarm.New(ctx, alarm.Options{Most: cfg.Reminders.PerDevice, KeepOpen: cfg.Reminders.KeepOpen, Up: uptime(), Owner: owner, Log: log})
}

// owner returns the key of a device's reminders. A stranger has none.
func owner(s wire.Session) (key string, known bool) { return s.DeviceID, !s.Unknown }
