package agent

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"

	"xiaozhi/mcp"
	"xiaozhi/prompts"
	"xiaozhi/providers"
)

// Music opens the songs of a library. Its methods may be called at the same time.
type Music interface {
	// Open opens a song by the id that a tool gave. The caller closes it.
	Open(id string) (Song, error)
	// Next names the song that follows id, the first after the last.
	Next(id string) (next, title string, err error)
}

// Song is a stream of sound. It is for one goroutine at a time.
type Song interface {
	// Rate is in Hz.
	Rate() int
	// Read fills pcm with mono samples; io.EOF at the end, as io.Reader says.
	Read(pcm []int16) (int, error)
	Close() error
}

// songBlock is how much of a song is read at once, and songTail how much is
// kept to go back to where a pause began: more than what is synthesised ahead,
// resampled and sent.
const (
	songBlock = 100 * time.Millisecond
	songTail  = 5 * time.Second
)

// playing is the song of a device. The turn that plays it owns it while it
// runs, the conversation at all other times.
type playing struct {
	id, title string
	onward    bool   // the next song follows
	waits     uint64 // its announcement
	song      Song
	playing   bool // a turn plays it, or is being joined; of the conversation
	held      bool // paused until somebody says otherwise; of the conversation

	read  int64   // samples read so far
	from  int64   // where this stretch of playing began
	tail  []int16 // the last samples read
	rerun []int16 // to be played before reading on
}

// sounds gives the song from where it is.
func (p *playing) sounds() iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		rate := p.song.Rate()
		if rerun := p.rerun; len(rerun) > 0 {
			p.rerun = nil
			if !yield(providers.Sound{Rate: rate, PCM: rerun}, nil) {
				return
			}
		}
		keep := int(songTail.Seconds() * float64(rate))
		block := make([]int16, int(songBlock.Seconds()*float64(rate))) // whoever gets it takes what it needs before it asks for more
		for {
			n, err := p.song.Read(block)
			if n > 0 {
				p.read += int64(n)
				if p.tail = append(p.tail, block[:n]...); len(p.tail) > 2*keep {
					p.tail = append(p.tail[:0], p.tail[len(p.tail)-keep:]...)
				}
				if !yield(providers.Sound{Rate: rate, PCM: block[:n]}, nil) {
					return
				}
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
func (p *playing) goBack(played time.Duration) {
	at := p.from + int64(played.Seconds()*float64(p.song.Rate()))
	missed := int(min(max(p.read-at, 0), int64(len(p.tail))))
	p.rerun = append([]int16(nil), p.tail[len(p.tail)-missed:]...)
	p.from = p.read - int64(missed)
}

// endSong ends the music, and takes it out of what waits to be told. A song
// that a turn still plays is closed when the turn has been joined.
func (d *Device) endSong() {
	if d.song == nil {
		return
	}
	if !d.song.playing {
		_ = d.song.song.Close() // it was only read
	}
	d.queue.remove(func(n announcement) bool { return n.id == d.song.waits })
	d.song = nil
}

// playSong has the song played at the next pause.
func (c *Conversation) playSong(p *playing, lang text.Lang) {
	c.dev.holdSong() // it may be waiting already
	p.waits, _ = host{c}.Announce(feature.Announcement{
		Lang: lang, Title: "♪ " + p.title, Background: true, Resumes: p.read > 0,
		Sound: func() iter.Seq2[providers.Sound, error] {
			p.playing = true
			return p.sounds()
		},
		Done: func(told feature.Told) { c.songOver(p, lang, told) },
	})
}

// holdSong takes the song out of what waits to be told.
func (d *Device) holdSong() {
	d.queue.remove(func(n announcement) bool { return n.id == d.song.waits })
}

// play begins a song at the next pause.
func (c *Conversation) play(id, title string, onward bool) error {
	if c.o.Music == nil {
		return errors.New("there is no music library")
	}
	song, err := c.o.Music.Open(id)
	if err != nil {
		return fmt.Errorf("open song: %w", err)
	}
	c.dev.endSong()
	c.dev.song = &playing{id: id, title: title, onward: onward, song: song}
	c.playSong(c.dev.song, text.Lang(c.language()))
	return nil
}

// songOver goes on, puts the song back or ends it after a stretch of music.
func (c *Conversation) songOver(p *playing, lang text.Lang, told feature.Told) {
	p.playing = false
	switch {
	case c.dev.song != p: // ended while its turn was being joined
		_ = p.song.Close()
	case errors.Is(told.Cause, turn.ErrAborted), told.Err != nil:
		c.dev.endSong()
	case !told.Whole:
		p.goBack(told.Played)
		if !p.held {
			c.playSong(p, lang)
		}
	case p.onward:
		id, title, err := c.o.Music.Next(p.id)
		if err == nil {
			err = c.play(id, title, true)
		}
		if err != nil {
			c.log.Warn("music ends", "err", err)
			c.dev.endSong()
		}
	default:
		c.dev.endSong()
	}
}

// handlePlayMusic plays, stops, pauses, goes on or skips. A turn has paused the
// music by its beginning; somebody outside finds it playing.
func handlePlayMusic(c *Conversation, from feature.Caller, args any) (think.Handled, error) {
	a, err := mcp.DecodeArgs[mcp.MusicArgs](args)
	if err != nil {
		return think.Handled{}, err
	}
	say := func(id, title string) (think.Handled, error) {
		return think.Handled{Say: c.o.Prompts.Phrase(id, string(from.Lang), "title", title)}, nil
	}
	song := c.dev.song
	switch {
	case a.Action == mcp.MusicPlay && a.Song != "":
		if err := c.play(a.Song, a.Title, a.Name == ""); err != nil {
			return think.Handled{}, err
		}
		c.step(turn.StopMusic{Cause: turn.ErrPaused})
		return say(prompts.MusicPlay, a.Title)
	case song == nil:
		return say(prompts.MusicNone, "")
	}
	switch a.Action {
	case mcp.MusicStop:
		c.dev.endSong()
		c.step(turn.StopMusic{Cause: turn.ErrAborted})
		return say(prompts.OK, "")
	case mcp.MusicPause:
		song.held = true
		c.dev.holdSong()
		c.step(turn.StopMusic{Cause: turn.ErrPaused})
		return say(prompts.OK, "")
	case mcp.MusicResume, mcp.MusicPlay:
		song.held = false
		if !song.playing { // else it goes on when its turn has been joined
			c.playSong(song, from.Lang)
		}
		return say(prompts.OK, "")
	case mcp.MusicNext:
		id, title, err := c.o.Music.Next(song.id)
		if err == nil {
			err = c.play(id, title, song.onward)
		}
		if err != nil {
			return think.Handled{}, err
		}
		c.step(turn.StopMusic{Cause: turn.ErrPaused})
		return say(prompts.MusicPlay, title)
	}
	return think.Handled{}, fmt.Errorf("unknown music action %q", a.Action)
}
