package transport

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// skewed is the difference of clocks from which signatures are refused by some service.
const skewed = time.Minute

// Clock is the time that a service goes by: ours, put right by the Date header of a
// refusal. Its zero value is our own. It may be used by any number of goroutines at once.
type Clock struct {
	ahead atomic.Int64 // nanoseconds
}

// Now returns the time as the service has it.
func (c *Clock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// Learn reads the Date of a service's answer. It says whether our idea of its clock was
// more than a minute wrong, and is right now.
func (c *Clock) Learn(h http.Header) bool {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return false
	}
	if off := date.Sub(c.Now()); off > -skewed && off < skewed {
		return false
	}
	c.ahead.Store(int64(time.Until(date)))
	return true
}

// datesKey finds in a context who wants to know of the clocks of services.
type datesKey struct{}

// WithDates returns a context in which requests tell note by how much the clock of the host that answered is ahead of
// ours, to the second. note may be called by several goroutines at the same time.
func WithDates(ctx context.Context, note func(host string, ahead time.Duration)) context.Context {
	return context.WithValue(ctx, datesKey{}, note)
}

// noteDate tells whoever wants to know of the clock of a service.
func noteDate(req *http.Request, resp *http.Response) {
	note, ok := req.Context().Value(datesKey{}).(func(string, time.Duration))
	if !ok {
		return
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		note(req.URL.Hostname(), time.Until(date).Round(time.Second))
	}
}
