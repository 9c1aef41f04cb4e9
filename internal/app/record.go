package app

import (
	"fmt"

	"xiaozhi/agent/record"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// record has all conversations recorded into a folder; "" is none. It says so
// where people look, for what they say is kept.
func (a *App) record(dir string) error {
	if dir == "" {
		return nil
	}
	recorder, err := record.New(record.Options{Dir: dir, Log: a.log})
	if err != nil {
		return fmt.Errorf("log.record: %w / %s", err, message.In(text.Chinese, "app/cannot-record"))
	}
	a.recorder = recorder
	a.report.line("  REC  " + message.Both("app/recorded", dir))
	a.log.Warn("conversations are recorded", "folder", dir)
	return nil
}
