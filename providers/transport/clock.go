package transport

import (
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
