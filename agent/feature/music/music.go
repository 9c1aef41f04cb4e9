// Package music plays the songs of a library in a conversation.
package music

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// Library opens songs. Its methods may be called at the same time.
type Library interface {
	// Open opens a song by the id that a tool gave. The caller closes it.
	Open(id string) (Song, error)
	// Next names the song that follows id, the first after the last.
	Next(id string) (next, title string, err error)
}

// Song is a stream of sound. It is for one goroutine at a time.
type Song interface {
	// Rate is in Hz.
	Rate() int
	// Read fills pcm with mono samples; io.EOF at the end, as io.Reader says. It may give none, and no error, while
	// nothing comes, and returns within a moment.
	Read(pcm []int16) (int, error)
	Close() error
}

// Feature plays, pauses and skips music. It ends with the connection.
type Feature struct{ Library Library } // nil: there is none

// Name is the name of its state, which it does not have.
func (Feature) Name() string { return "music" }

// Attach makes a player that is silent.
func (f Feature) Attach(h feature.Host, _ feature.State) feature.Instance {
	return &player{Host: h, library: f.Library}
}

type player struct {
	feature.Host

	library Library
	now     *current // nil: no music
}

func (p *player) Expects(time.Time) bool { return false } // its turns keep the channel open
func (p *player) Lasts() bool            { return p.now != nil }

func (p *player) Detach() feature.State {
	c := p.now
	p.End()
	if c != nil {
		c.tell(nil, nil) // whatever its turn has come to
	}
	return nil
}

// Play implements [feature.Player].
func (p *player) Play(id, title string, urgent bool, told func(feature.Told)) error {
	return p.play(id, title, false, urgent, told)
}

func (p *player) Handler(name string) feature.Handler {
	if name == mcp.HandlerPlayMusic {
		return p.handle
	}
	return nil
}

// End ends the music. A song that a turn still plays is closed when the turn has
// been joined.
func (p *player) End() {
	if p.now == nil {
		return
	}
	c := p.now
	p.Withdraw(c.told)
	p.now = nil
	if !c.playing {
		_ = c.song.Close() // it was only read
		c.tell(nil, nil)
	}
}

// play begins a song; asked says that a person wants it now. done is told when it is over; nil: nobody is.
func (p *player) play(id, title string, onward, asked bool, done func(feature.Told)) error {
	if p.library == nil {
		return errors.New("there is no music library")
	}
	if !asked && p.Quiet() {
		return feature.ErrQuiet
	}
	song, err := p.library.Open(id)
	if err != nil {
		return fmt.Errorf("open song: %w", err)
	}
	p.End()
	p.now = &current{song: song, id: id, title: title, onward: onward, asked: asked, done: done}
	p.announce(p.Lang())
	return nil
}

func (p *player) next() (title string, err error) {
	id, title, err := p.library.Next(p.now.id)
	if err != nil {
		return "", err
	}
	return title, p.play(id, title, p.now.onward, p.now.asked, nil)
}

// announce has the song played at the next pause.
func (p *player) announce(lang text.Lang) {
	c := p.now
	p.Withdraw(c.told) // it may be waiting already
	var err error
	c.told, err = p.Announce(feature.Announcement{
		Lang: lang, Title: "♪ " + c.title, Background: true, Resumes: c.read > 0, Asked: c.asked,
		Sound: func() iter.Seq2[providers.Sound, error] {
			c.playing = true
			return c.sounds()
		},
		Done: func(t feature.Told) { p.over(c, lang, t) },
	})
	if err != nil { // quiet mode has begun: in the background there is always a place
		p.Env().Log.Info("music ends", "why", err)
		p.End()
	}
}

// over goes on, puts the song back or ends it after a stretch of music.
func (p *player) over(c *current, lang text.Lang, t feature.Told) {
	c.playing = false
	c.heard += t.Played
	switch {
	case p.now != c: // ended while its turn was being joined
		_ = c.song.Close()
		c.tell(t.Cause, t.Err)
	case errors.Is(t.Cause, turn.ErrAborted), t.Err != nil, t.Whole && !c.onward:
		p.now = nil
		_ = c.song.Close()
		c.tell(t.Cause, t.Err)
	case !t.Whole:
		c.goBack(t.Played)
		if !c.held {
			p.announce(lang)
		}
	default:
		if _, err := p.next(); err != nil {
			p.Env().Log.Warn("music ends", "err", err)
			p.End()
		}
	}
}

// tell says once what was heard of a song that is over.
func (c *current) tell(cause, err error) {
	if done := c.done; done != nil {
		c.done = nil
		done(feature.Told{Played: c.heard, Cause: cause, Err: err})
	}
}

// handle plays, stops, pauses, goes on or skips. A turn has paused the music by its
// beginning; somebody outside finds it playing.
func (p *player) handle(from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.MusicArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	say := func(id, title string) (think.Handled, error) {
		return think.Handled{Say: p.Env().Texts.Phrase(id, string(from.Lang), "title", title)}, nil
	}
	asked := from.Turn != 0 || from.Hand
	if p.now != nil && asked {
		p.now.asked = true
	}
	switch {
	case a.Action == mcp.MusicPlay && a.Song != "":
		if err := p.play(a.Song, a.Title, a.Name == "", asked, nil); err != nil {
			return think.Handled{}, err
		}
		p.Step(turn.StopMusic{Cause: turn.ErrPaused})
		return say(prompts.MusicPlay, a.Title)
	case p.now == nil:
		return say(prompts.MusicNone, "")
	}
	switch a.Action {
	case mcp.MusicStop:
		p.End()
		p.Step(turn.StopMusic{Cause: turn.ErrAborted})
	case mcp.MusicPause:
		p.now.held = true
		p.Withdraw(p.now.told)
		p.Step(turn.StopMusic{Cause: turn.ErrPaused})
	case mcp.MusicResume, mcp.MusicPlay:
		if !asked && p.Quiet() {
			return think.Handled{}, feature.ErrQuiet
		}
		p.now.held = false
		if !p.now.playing { // else it goes on when its turn has been joined
			p.announce(from.Lang)
		}
	case mcp.MusicNext:
		title, err := p.next()
		if err != nil {
			return think.Handled{}, err
		}
		p.Step(turn.StopMusic{Cause: turn.ErrPaused})
		return say(prompts.MusicPlay, title)
	default:
		return think.Handled{}, fmt.Errorf("unknown music action %q", a.Action)
	}
	return say(prompts.OK, "")
}

// songBlock is how much of a song is read at once, and songTail how much is
// kept to go back to where a pause began: more than what is synthesised ahead,
// resampled and sent.
const (
	songBlock = 100 * time.Millisecond
	songTail  = 5 * time.Second
)

// current is the song that plays or is paused. The turn that plays it owns it while
// it runs, the conversation at all other times.
type current struct {
	song      Song
	id, title string
	onward    bool               // the next song follows
	told      uint64             // its announcement; of the conversation
	playing   bool               // a turn plays it, or is being joined; of the conversation
	held      bool               // paused until somebody says otherwise; of the conversation
	asked     bool               // a person wants it, at the device or by hand; of the conversation
	heard     time.Duration      // what was played of it before this stretch; of the conversation
	done      func(feature.Told) // is told when it is over; nil: nobody is. Of the conversation

	read  int64   // samples read so far
	from  int64   // where this stretch of playing began
	tail  []int16 // the last samples read
	rerun []int16 // to be played before reading on
}

// sounds yields the song from where it is.
func (c *current) sounds() iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		rate := c.song.Rate()
		if rerun := c.rerun; len(rerun) > 0 {
			c.rerun = nil
			if !yield(providers.Sound{Rate: rate, PCM: rerun}, nil) {
				return
			}
		}
		keep := int(songTail.Seconds() * float64(rate))
		block := make([]int16, int(songBlock.Seconds()*float64(rate))) // whoever gets it takes what it needs before it asks for more
		for {
			n, err := c.song.Read(block)
			c.read += int64(n)
			if c.tail = append(c.tail, block[:n]...); len(c.tail) > 2*keep {
				c.tail = append(c.tail[:0], c.tail[len(c.tail)-keep:]...)
			}
			if (n > 0 || err == nil) && !yield(providers.Sound{Rate: rate, PCM: block[:n]}, nil) { // of nothing, too: whoever plays looks whether it is still wanted
				return
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(providers.Sound{}, fmt.Errorf("read song: %w", err))
				return
			}
		}
	}
}

// goBack makes the song go on where the user's ear left it, after so much of
// this stretch was played.
func (c *current) goBack(played time.Duration) {
	at := c.from + int64(played.Seconds()*float64(c.song.Rate()))
	missed := int(min(max(c.read-at, 0), int64(len(c.tail))))
	c.rerun = slices.Clone(c.tail[len(c.tail)-missed:])
	c.from = c.read - int64(missed)
}
