package app

import (
	"context"
	"log/slog"

	"xiaozhi/agent/feature/alarm"
	"xiaozhi/internal/config"
)

// reminders makes the book of all timers and reminders.
func reminders(ctx context.Context, cfg *config.Config, log *slog.Logger) *alarm.Book {
	return alarm.New(ctx, alarm.Options{Most: cfg.Reminders.PerDevice, KeepOpen: cfg.Reminders.KeepOpen, Up: uptime(), Log: log})
}
