package router

import (
	"slices"

	"xiaozhi/internal/lru"
)

// Limits of a Journal.
const (
	journalDepth   = 64   // records of one device
	journalDevices = 1024 // devices; the one without a call for longest makes room
)

// Journal keeps the last calls of each device. Its methods may be called at the
// same time.
type Journal struct{ calls *lru.Cache[string, []Record] }

// NewJournal makes an empty journal.
func NewJournal() *Journal { return &Journal{lru.New[string, []Record](journalDevices, 0)} }

// Add notes a call of a device.
func (j *Journal) Add(deviceID string, r Record) {
	j.calls.Update(deviceID, func(records []Record) ([]Record, int) {
		records = append(records, r)
		if over := len(records) - journalDepth; over > 0 {
			records = slices.Clone(records[over:])
		}
		return records, 0
	})
}

// Calls returns the last calls of a device, the oldest first. The caller owns the slice.
func (j *Journal) Calls(deviceID string) []Record {
	records, _ := j.calls.Peek(deviceID)
	return slices.Clone(records)
}
