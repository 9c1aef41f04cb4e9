package app

import (
	"fmt"

	"xiaozhi/agent/record"
)

// record has all conversations recorded into a folder; "" is none. It says so
// where people look, for what they say is kept.
func (a *App) record(dir string) error {
	if dir == "" {
		return nil
	}
	recorder, err := record.New(record.Options{Dir: dir, Log: a.log})
	if err != nil {
		return fmt.Errorf("log.record: %w / 无法录制对话", err)
	}
	a.recorder = recorder
	a.report.line(fmt.Sprintf("  REC  all that is said is recorded in %s / 所有对话（含声音）都会录在这里", dir))
	a.log.Warn("conversations are recorded", "folder", dir)
	return nil
}
