// Package stream plays sound from addresses: files and endless streams by HTTP (MP3, Ogg Opus, FLAC, WAV), playlists (M3U, PLS),
// and what other servers keep under a URI. It is built for strangers: whatever an address leads to, memory and waiting are bounded,
// link-local addresses are never asked, and no public address leads into the network at home.
package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/track"
	"xiaozhi/internal/outbound"
)

// Rate of the sound that a [Stream] gives, in Hz.
const Rate = 24000

const (
	blockSamples = Rate / 10 // 100 ms
	blocksAhead  = 20        // decoded and not read yet
	maxEntries   = 50        // of a playlist
	maxDepth     = 3         // playlists that lead to playlists
)

// Resources reads what other people's servers keep. ReadResource may be called at the same time.
type Resources interface {
	// ReadResource returns the MIME type and the content of what a server keeps under a URI.
	ReadResource(ctx context.Context, server, uri string) (mime string, content []byte, err error)
}

// Options configure an [Opener]. The zero value works.
type Options struct {
	Resources Resources     // nil: addresses of mcp:// cannot be played
	Timeout   time.Duration // until a server answers; 0: 10 s
	Stall     time.Duration // in which something must come while it is wanted; 0: 15 s
	Backoff   time.Duration // before a connection that broke is made again, then twice as long; 0: 1 s
	Retries   int           // connections in a row that give nothing; 0: 5
	Hold      time.Duration // for which an endless stream waits for one who pauses, before it is let go of; 0: 20 s
	Log       *slog.Logger  // nil: discarded
}

// Opener opens streams. Its methods may be called at the same time.
type Opener struct {
	options    Options
	home, wide *http.Client // may ask addresses at home; only public ones
}

// NewOpener makes an opener.
func NewOpener(o Options) *Opener {
	o.Timeout, o.Stall, o.Backoff = cmp.Or(o.Timeout, 10*time.Second), cmp.Or(o.Stall, 15*time.Second), cmp.Or(o.Backoff, time.Second)
	o.Retries, o.Hold = cmp.Or(o.Retries, 5), cmp.Or(o.Hold, 20*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Opener{options: o, home: client(o, true), wide: client(o, false)}
}

// Errors of addresses and of what they lead to.
var (
	ErrAddress  = errors.New("the address is none of http, https or mcp://SERVER/URI")
	ErrPublic   = errors.New("the address is not one of the Internet")
	ErrKind     = errors.New("the sound is of a kind that cannot be played")
	ErrPlaylist = errors.New("the playlist cannot be read")
	ErrStalled  = errors.New("nothing came any more")
)

// StatusError says that a server answered with another status than 200.
type StatusError = outbound.StatusError

// Check asks for what is at an address, and reads so much of it that it is known to be sound. own says that the owner of this
// server has set the address, which may then be one at home.
func (o *Opener) Check(ctx context.Context, address string, own bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	entries, err := o.resolve(ctx, address, o.scope(address, own), 0)
	if err != nil {
		return err
	}
	for i := range entries {
		var b *body
		if b, err = o.connect(ctx, &entries[i]); err != nil {
			continue
		}
		_, err = open(b)
		if b.Close(); err == nil {
			return nil
		}
	}
	return err
}

// Open begins to get what is at an address. It does not wait. ctx ends the stream as Close does.
func (o *Opener) Open(ctx context.Context, address string, own bool) *Stream {
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{opener: o, blocks: make(chan block, blocksAhead), cancel: cancel}
	s.done.Go(func() {
		defer close(s.blocks)
		if err := s.run(ctx, address, own); err != nil && ctx.Err() == nil {
			o.options.Log.Info("a stream of sound ends", "err", err)
			s.put(ctx, block{err: err}, false)
		}
	})
	return s
}

// block is a piece of sound, or why there is no more.
type block struct {
	pcm []int16
	err error
}

// Stream is sound that comes over the network, as mono samples at [Rate]. Rate and Read are for one goroutine; Close may be
// called by another.
type Stream struct {
	opener *Opener
	blocks chan block // 2 s at most; closed when nothing follows
	cancel context.CancelFunc
	done   sync.WaitGroup

	left []int16 // of the last block; of the one who reads
	end  error   // of the one who reads
}

// patience is how long Read waits before it gives nothing, so that who plays can look whether that is still wanted.
const patience = 100 * time.Millisecond

// Rate returns [Rate].
func (s *Stream) Rate() int { return Rate }

// Read puts samples into pcm. It gives none, and no error, while nothing comes; io.EOF at the end.
func (s *Stream) Read(pcm []int16) (int, error) {
	if s.end != nil {
		return 0, s.end
	}
	if len(s.left) == 0 {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case b, ok := <-s.blocks:
			switch {
			case !ok:
				s.end = io.EOF
			case b.err != nil:
				s.end = b.err
			}
			if s.end != nil {
				return 0, s.end
			}
			s.left = b.pcm
		case <-timer.C:
			return 0, nil
		}
	}
	n := copy(pcm, s.left)
	s.left = s.left[n:]
	return n, nil
}

// Close ends the stream, and returns when nothing of it is left.
func (s *Stream) Close() error {
	s.cancel()
	s.done.Wait()
	return nil
}

// errHeld says that nobody has read for so long that an endless stream was let go of.
var errHeld = errors.New("held for too long")

// put passes a block on, and waits while enough is ahead. errHeld: the one who reads pauses, and live sound would be old.
func (s *Stream) put(ctx context.Context, b block, live bool) error {
	var held <-chan time.Time
	if live {
		timer := time.NewTimer(s.opener.options.Hold)
		defer timer.Stop()
		held = timer.C
	}
	select {
	case s.blocks <- b:
		return nil
	case <-held:
		return errHeld
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run plays what is at an address: all entries of a playlist, one after the other.
func (s *Stream) run(ctx context.Context, address string, own bool) error {
	o := s.opener
	entries, err := o.resolve(ctx, address, o.scope(address, own), 0)
	if err != nil {
		return err
	}
	var failed error
	played := false
	for i := range entries {
		some, err := s.entry(ctx, &entries[i])
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if played = played || some; err != nil {
			o.options.Log.Debug("an entry cannot be played", "err", err)
			failed = err
		}
	}
	if played {
		return nil
	}
	return failed
}

// entry plays one address. An endless stream whose connection breaks is connected to again, until that gives nothing so many
// times in a row. played reports whether any sound came.
func (s *Stream) entry(ctx context.Context, e *entry) (played bool, err error) {
	o := s.opener.options
	endless := false
	for failures := 0; ; {
		b, err := s.opener.connect(ctx, e)
		if err == nil {
			var some bool
			endless = b.live
			some, err = s.decode(ctx, b)
			b.Close()
			if played = played || some; some {
				failures = 0
			}
		}
		switch {
		case ctx.Err() != nil:
			return played, ctx.Err()
		case errors.Is(err, errHeld):
			continue
		case !endless, errors.Is(err, ErrKind):
			return played, err
		case failures == o.Retries:
			return played, cmp.Or(err, ErrStalled)
		}
		if !sleep(ctx, o.Backoff<<failures) {
			return played, ctx.Err()
		}
		failures++
	}
}

// decode plays what comes over a connection until it ends.
func (s *Stream) decode(ctx context.Context, b *body) (some bool, err error) {
	t, err := open(b)
	if err != nil {
		return false, err
	}
	to, err := audio.NewResampler(t.Rate(), Rate)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrKind, err)
	}
	in := make([]int16, max(1, t.Rate()/10))
	var out []int16
	for {
		n, err := t.Read(in)
		out = to.Write(out, in[:n])
		for len(out) >= blockSamples || err != nil && len(out) > 0 {
			size := min(blockSamples, len(out))
			pcm := append([]int16(nil), out[:size]...)
			out = append(out[:0], out[size:]...)
			some = true
			wrong := s.put(ctx, block{pcm: pcm}, b.live)
			if errors.Is(wrong, errHeld) { // until somebody reads again
				b.Close()
				wrong = cmp.Or(s.put(ctx, block{pcm: pcm}, false), wrong)
			}
			if wrong != nil {
				return some, wrong
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return some, b.failure()
		case err != nil:
			return some, cmp.Or(b.failure(), err)
		}
	}
}

// open finds out the kind of the sound.
func open(b *body) (*track.Track, error) {
	t, err := track.Open(io.NopCloser(b))
	switch {
	case err == nil:
		return t, nil
	case b.failure() != nil:
		return nil, b.failure()
	}
	return nil, fmt.Errorf("%w: %w", ErrKind, err)
}

// sleep waits for a time; false: ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
