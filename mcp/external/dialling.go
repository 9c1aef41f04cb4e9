package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// dialling owns how one server is reached: the ways to it, in the order in which
// they are tried, and the pauses between tries. It is for one goroutine.
type dialling struct {
	open  opener
	ways  []way
	pause backoff
	peer  *sdk.Client
}

// connect tries the ways in their order and returns the one that works, which
// is the first to be tried next time.
func (d *dialling) connect(ctx context.Context) (*session, way, error) {
	var errs []error
	for i, w := range d.ways {
		live, err := connect(ctx, d.open, w, d.peer)
		if err == nil {
			d.ways[0], d.ways[i] = w, d.ways[0]
			return live, w, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", w, err))
		if ctx.Err() != nil || errors.Is(err, errUnopened) {
			break
		}
	}
	return nil, way{}, errors.Join(errs...)
}

// String names a way in logs.
func (w way) String() string {
	if w.version == "" {
		return string(w.transport)
	}
	return string(w.transport) + " " + w.version
}

// backoff gives the pauses between tries: doubled each time, a fifth more or
// less so that many servers do not come back in step.
type backoff struct {
	tries int
	rand  func() float64 // 0 to 1
}

// next is the pause after one more failure.
func (b *backoff) next() time.Duration {
	pause := min(firstPause<<min(b.tries, 10), lastPause)
	b.tries++
	return time.Duration(float64(pause) * (0.8 + 0.4*b.rand()))
}
