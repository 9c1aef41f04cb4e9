package duplex

import (
	"cmp"
	"context"
	"errors"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// loop hands one answer to its consumer. It is for one goroutine.
type loop struct {
	*session
	a     *answer
	yield func(providers.DuplexDelta, error) bool

	left   bool // the consumer is gone
	called bool // tools
	done   bool // the answer is complete; the user's words may still come
	nearly bool // all its sound has come
	heard  string
	doubt  error // what the service has complained of
	long   time.Duration
	text   int
	usage  providers.Usage // newest
}

// run yields until the answer is complete.
func (l *loop) run(ctx context.Context) error {
	timer := time.NewTimer(l.o.First)
	defer timer.Stop()
	for !l.left {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-l.inner().Done():
			return l.over()
		case <-timer.C:
			if l.done || l.nearly {
				return nil
			}
			return cmp.Or(l.doubt, transport.ErrStalled)
		case o := <-l.a.events:
			if err := ctx.Err(); err != nil {
				return err
			}
			if o.err != nil {
				if l.done {
					return nil
				}
				return o.err
			}
			if err := l.take(o.Event); err != nil {
				return err
			}
			switch {
			case l.left || l.done && (l.heard != "" || l.called || len(l.a.results) > 0):
				return nil
			case o.Done, o.Nearly:
				timer.Reset(linger)
			case l.done, l.nearly: // words are late
			case o.Doubt != nil && l.doubt == nil:
				l.doubt = o.Doubt
				timer.Reset(min(doubt, l.o.Next))
			case !o.empty():
				l.doubt = nil
				timer.Reset(l.o.Next)
			}
		}
	}
	return nil
}

// take yields what an event says.
func (l *loop) take(e Event) error {
	l.done, l.nearly = l.done || e.Done, l.nearly || e.Nearly
	l.heard += e.More
	if e.Heard != "" {
		l.heard = e.Heard
	}
	d := providers.DuplexDelta{Text: e.Text, ToolCalls: e.Calls}
	if e.Usage != (providers.Usage{}) {
		l.usage = e.Usage
	}
	if e.Done {
		d.Usage, l.usage = l.usage, providers.Usage{}
	}
	if e.Heard+e.More != "" {
		d.Heard, d.Hearing = l.heard, e.Heard == ""
	}
	l.called = l.called || len(e.Calls) > 0
	l.long += time.Duration(len(e.PCM)) * time.Second / time.Duration(l.o.Rate)
	l.text += len(e.Text) + len(e.More)
	if l.long > mostSound || l.text > mostText {
		return errors.New("the answer does not end")
	}
	for pcm := e.PCM; ; {
		n := min(len(pcm), l.o.Rate/piece)
		if n > 0 {
			d.Sound = providers.Sound{Rate: l.o.Rate, PCM: pcm[:n]}
		}
		if !l.give(d, e.Item) {
			return nil
		}
		if pcm = pcm[n:]; len(pcm) == 0 {
			return nil
		}
		d = providers.DuplexDelta{}
	}
}

// give yields, and keeps what was said. It says whether more is wanted.
func (l *loop) give(d providers.DuplexDelta, item string) bool {
	if d.Heard == "" && d.Text == "" && len(d.Sound.PCM) == 0 && len(d.ToolCalls) == 0 && d.Usage == (providers.Usage{}) {
		return true
	}
	l.mu.Lock()
	l.talk.take(d, item)
	l.mu.Unlock()
	l.left = !l.yield(d, nil)
	return !l.left
}
