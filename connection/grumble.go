package connection

import "time"

// grumbleEvery is how often one connection may complain of its peer at most.
const grumbleEvery = time.Second

// grumbler lets one line through per grumbleEvery and counts the others, so
// that a peer cannot fill the log. It is for one goroutine.
type grumbler struct {
	last  time.Time
	since int // lines kept back since last
}

// allow says whether a line may be written now, and how many were kept back before it.
func (g *grumbler) allow(now time.Time) (suppressed int, ok bool) {
	if !g.last.IsZero() && now.Sub(g.last) < grumbleEvery {
		g.since++
		return 0, false
	}
	suppressed, g.since, g.last = g.since, 0, now
	return suppressed, true
}

// grumble warns of something the device did, once a second at most. Of the reader.
func (c *conn) grumble(msg string, args ...any) {
	suppressed, ok := c.grumbled.allow(time.Now())
	if !ok {
		return
	}
	if suppressed > 0 {
		args = append(args, "suppressed", suppressed)
	}
	c.log.Warn(msg, args...)
}
