package think

import "time"

// Budget counts a device's tool calls of one day, by UTC. It is for one goroutine
// at a time.
type Budget struct {
	day  int64
	used int
}

// Take uses one call of the day's limit. False: there is none left.
func (b *Budget) Take(now time.Time, limit int) bool {
	if day := now.Unix() / 86400; day != b.day {
		b.day, b.used = day, 0
	}
	if b.used >= limit {
		return false
	}
	b.used++
	return true
}
