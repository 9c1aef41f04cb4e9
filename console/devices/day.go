package devices

import "time"

// Hour counts the turns of a device in an hour.
type Hour struct {
	At     time.Time // it began, in the zone of the server
	Turns  int
	Failed int // of Turns
}

// Clock formats the beginning of the hour.
func (h Hour) Clock() string { return h.At.Format("15:04") }

// day draws the turns of the last hours: a column for each hour, of turns above a line, and of those that failed below it.
type day []Hour

// Measures of the drawing.
const (
	dayLine   = 34 // height above the line
	dayBelow  = 14
	dayColumn = 10
)

// mark is a column of the drawing.
type mark struct{ X, Y, Height, Below int }

// Turns counts all.
func (d day) Turns() (n int) {
	for _, h := range d {
		n += h.Turns
	}
	return n
}

// Failed counts those that failed.
func (d day) Failed() (n int) {
	for _, h := range d {
		n += h.Failed
	}
	return n
}

// Zone is the offset of the clock from UTC.
func (d day) Zone() string { return d[len(d)-1].At.Format("-07:00") }

// Width of the drawing.
func (d day) Width() int { return len(d) * dayColumn }

// Marks are the columns, as high as the most turns of an hour allow.
func (d day) Marks() (all []mark) {
	most := 1
	for _, h := range d {
		most = max(most, h.Turns)
	}
	share := func(n, of int) int { return (n*of + most - 1) / most }
	for i, h := range d {
		m := mark{X: i*dayColumn + 1, Height: share(h.Turns, dayLine-4), Below: share(h.Failed, dayBelow-4)}
		if m.Height > 0 {
			m.Height += 4
		}
		if m.Below > 0 {
			m.Below += 4
		}
		m.Y = dayLine - m.Height
		all = append(all, m)
	}
	return all
}
