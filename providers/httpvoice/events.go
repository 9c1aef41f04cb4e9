package httpvoice

import (
	"errors"
	"fmt"
	"io"

	"xiaozhi/providers/sse"
)

// Opener takes the sound out of an event and says whether it was the last.
type Opener func(event []byte) (sound []byte, last bool, err error)

// errUnfinished is the error of a stream of events that ends without its last one.
var errUnfinished = errors.New("the answer broke off")

// opened reads the sound in a stream of events.
type opened struct {
	events *sse.Reader
	open   Opener
	rest   []byte
	over   bool
}

// Read gives what has come of the sound.
func (o *opened) Read(p []byte) (int, error) {
	for len(o.rest) == 0 {
		if o.over {
			return 0, io.EOF
		}
		e, err := o.events.Next()
		if errors.Is(err, io.EOF) {
			return 0, errUnfinished
		}
		if err != nil {
			return 0, fmt.Errorf("read events: %w", err)
		}
		if string(e.Data) == sse.Done {
			o.over = true
			continue
		}
		if o.rest, o.over, err = o.open(e.Data); err != nil {
			return 0, err
		}
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}
