package openai

import (
	"errors"
	"fmt"
	"io"

	"github.com/hajimehoshi/go-mp3"
)

// playMP3 plays an MP3 stream. A panic of the decoder over broken bytes is an error.
func playMP3(r io.Reader, p *player) (err error) {
	in := &readErr{r: r}
	decoder, err := openMP3(in)
	if err != nil {
		return err
	}
	if rate := decoder.SampleRate(); rate < minRate || rate > maxRate {
		return fmt.Errorf("mp3: %d Hz", rate)
	}
	if err := playPCM(&mp3Reader{decoder}, decoder.SampleRate(), 2, p); err != nil {
		return err
	}
	return in.err // the decoder takes a connection that broke for the end
}

// openMP3 reads the first frame.
func openMP3(r io.Reader) (d *mp3.Decoder, err error) {
	defer recoverMP3(&err)
	if d, err = mp3.NewDecoder(r); err != nil {
		return nil, fmt.Errorf("mp3: %w", short(err))
	}
	return d, nil
}

// mp3Reader gives the decoded sound: 16 bit, always two channels.
type mp3Reader struct {
	*mp3.Decoder
}

// Read decodes. Frames that cannot be decoded end the sound with an error.
func (m *mp3Reader) Read(p []byte) (n int, err error) {
	defer recoverMP3(&err)
	n, err = m.Decoder.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("mp3: %w", err)
	}
	return n, err
}

// recoverMP3 turns the decoder's panic into an error. It takes nothing else: p.play runs outside.
func recoverMP3(err *error) {
	if broken := recover(); broken != nil {
		*err = fmt.Errorf("mp3: the stream is broken: %v", broken)
	}
}

// readErr remembers why reading ended, unless it was the end.
type readErr struct {
	r   io.Reader
	err error
}

// Read reads.
func (e *readErr) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		e.err = err
	}
	return n, err
}
