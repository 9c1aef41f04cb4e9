package waterfall

import (
	"unicode/utf8"

	"xiaozhi/internal/timeline"
)

// The picture, in its own units, which are pixels at its natural size.
const (
	width    = 960.0
	nameAt   = 104.0 // names of bars; those of lanes are left of it
	plotAt   = 232.0
	plotEnd  = 948.0
	rowHigh  = 26.0
	barHigh  = 14.0
	bodySize = 12.0
	gap      = 6.0
)

const (
	breakAt   = 0.68 // of the plot is for the wait, if what comes after is long
	leastTick = 66.0 // between two numbers of the axis
	before    = 0.4  // of the wait, at most, is shown of what was before zero
)

// span works out the axis.
func (c *chart) span() {
	wait, heard := c.mark(timeline.MarkFrame)
	var earliest, latest int64
	for i := range c.bars {
		earliest, latest = min(earliest, c.bars[i].from), max(latest, c.bars[i].to)
	}
	if !heard {
		wait = latest
	}
	c.middle = max(wait+wait/8, 40)
	c.end = max(latest, c.middle)
	room := max(int64(before*float64(c.middle)), 1)
	c.begin = max(earliest, -room)
	c.begin = min(c.begin, -c.middle/40)
	if c.broken = -1; c.end-c.middle > (c.middle-c.begin)/2 {
		c.broken = plotAt + breakAt*(plotEnd-plotAt)
	} else {
		c.middle = c.end
	}
}

// x places a time. What was before the axis begins is at its beginning.
func (c *chart) x(ms int64) float64 {
	ms = max(c.begin, min(ms, c.end))
	to := plotEnd
	if c.broken >= 0 {
		to = c.broken
		if ms > c.middle {
			return to + float64(ms-c.middle)/float64(c.end-c.middle)*(plotEnd-to)
		}
	}
	return plotAt + float64(ms-c.begin)/float64(c.middle-c.begin)*(to-plotAt)
}

// tick is a number of the axis.
type tick struct {
	at    float64
	ms    int64
	label string
}

// ticks returns the numbers of the axis.
func (c *chart) ticks() (all []tick) {
	to := plotEnd
	if c.broken >= 0 {
		to = c.broken
	}
	per := (to - plotAt) / float64(c.middle-c.begin)
	step := nice(leastTick / per)
	for ms := int64(0); ms <= c.middle; ms += step {
		if x := c.x(ms); c.broken < 0 || x < to-leastTick/2 || ms == 0 {
			all = append(all, tick{x, ms, tickLabel(ms)})
		}
	}
	for ms := -step; ms >= c.begin; ms -= step {
		all = append(all, tick{c.x(ms), ms, tickLabel(ms)})
	}
	if c.broken < 0 {
		return all
	}
	per = (plotEnd - to) / float64(c.end-c.middle)
	step = nice(leastTick / per)
	for ms := (c.middle/step + 1) * step; ms <= c.end; ms += step {
		if x := c.x(ms); x > to+leastTick/2 {
			all = append(all, tick{x, ms, tickLabel(ms)})
		}
	}
	return all
}

// nice returns the next step of 1, 2 or 5 times a power of ten.
func nice(least float64) int64 {
	for step := int64(10); ; step *= 10 {
		for _, n := range []int64{1, 2, 5} {
			if float64(n*step) >= least {
				return n * step
			}
		}
	}
}

func tickLabel(ms int64) string {
	switch {
	case ms == 0:
		return "0"
	case ms%1000 == 0:
		return millis(ms / 1000)[:len(millis(ms/1000))-len(" ms")] + " s"
	}
	return millis(ms)
}

// textWidth is about how wide a text is, a little more rather than less.
func textWidth(s string, size float64) (w float64) {
	for _, r := range s {
		switch {
		case r >= 0x2E80:
			w += 1
		case r == ' ' || r == '.' || r == ',' || r == 'i' || r == 'l' || r == 'I' || r == ':':
			w += 0.34
		case r >= 'A' && r <= 'Z', r == 'm', r == 'w', r == '—':
			w += 0.76
		default:
			w += 0.6
		}
	}
	return w * size
}

// fit cuts a text that is wider than there is room.
func fit(s string, size, room float64) string {
	if textWidth(s, size) <= room {
		return s
	}
	for len(s) > 0 {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
		if textWidth(s+"…", size) <= room {
			return s + "…"
		}
	}
	return ""
}
