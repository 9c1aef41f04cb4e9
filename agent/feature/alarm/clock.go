package alarm

import "time"

// clock notices that the wall clock was set.
type clock struct {
	wall time.Time // when it was looked at last, by the wall clock
	up   time.Duration
}

func (c *clock) begin(up func() time.Duration) { c.wall, c.up = time.Now().Round(0), up() }

// moved returns by how much the clock was set since it was looked at; 0: it was not.
func (c *clock) moved(up func() time.Duration) time.Duration {
	d := time.Now().Round(0).Sub(c.wall) - (up() - c.up)
	if d.Abs() < clockSet {
		return 0
	}
	return d
}
