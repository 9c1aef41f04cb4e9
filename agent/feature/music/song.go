package music

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"xiaozhi/providers"
)

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
	onward    bool   // the next song follows
	told      uint64 // its announcement; of the conversation
	playing   bool   // a turn plays it, or is being joined; of the conversation
	held      bool   // paused until somebody says otherwise; of the conversation

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
			if n > 0 {
				c.read += int64(n)
				if c.tail = append(c.tail, block[:n]...); len(c.tail) > 2*keep {
					c.tail = append(c.tail[:0], c.tail[len(c.tail)-keep:]...)
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
func (c *current) goBack(played time.Duration) {
	at := c.from + int64(played.Seconds()*float64(c.song.Rate()))
	missed := int(min(max(c.read-at, 0), int64(len(c.tail))))
	c.rerun = slices.Clone(c.tail[len(c.tail)-missed:])
	c.from = c.read - int64(missed)
}
