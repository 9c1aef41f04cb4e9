package file

import (
	"errors"
	"fmt"
	"io"

	"github.com/hajimehoshi/go-mp3"
)

// MP3Reader reads the sound of an MP3 file while it comes. It is for one goroutine.
type MP3Reader struct {
	in      watchedReader
	decoder *mp3.Decoder // gives 16 bit, always two channels
	raw     []byte
	held    int // bytes in raw of a sample that is not whole yet
}

// NewMP3Reader reads the first frame. An ID3 tag in front is gone over, but its
// claimed length is held in memory: skip it first in files that are not trusted.
func NewMP3Reader(r io.Reader) (m *MP3Reader, err error) {
	defer recoverAs(&err, "mp3")
	m = &MP3Reader{in: watchedReader{r: r}, raw: make([]byte, 4608)}
	if m.decoder, err = mp3.NewDecoder(&m.in); err != nil {
		return nil, fmt.Errorf("open mp3: %w", short(err))
	}
	return m, nil
}

// Rate returns the rate of the samples in Hz.
func (m *MP3Reader) Rate() int { return m.decoder.SampleRate() }

// Read decodes into pcm: mono samples, the mean of both channels, or an error;
// io.EOF at the end. It may give no sample and no error.
func (m *MP3Reader) Read(pcm []int16) (n int, err error) {
	defer recoverAs(&err, "mp3")
	got, err := m.decoder.Read(m.raw[m.held:min(len(m.raw), 4*len(pcm))])
	got += m.held
	n = got / 4
	mono(pcm, m.raw[:4*n], 2, 16, false)
	m.held = copy(m.raw, m.raw[4*n:got])
	switch {
	case err != nil && m.in.err != nil: // the decoder takes a reader that fails for the end
		err = fmt.Errorf("read mp3: %w", m.in.err)
	case err != nil && !errors.Is(err, io.EOF):
		err = fmt.Errorf("decode mp3: %w", err)
	}
	return n, err
}

// watchedReader remembers why reading ended, unless it was the end. It hides that
// a file can seek: the decoder would read such a one to its end first.
type watchedReader struct {
	r   io.Reader
	err error
}

// Read reads.
func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		w.err = err
	}
	return n, err
}

// recoverAs turns a panic of a decoder over broken bytes into an error.
func recoverAs(err *error, kind string) {
	if broken := recover(); broken != nil {
		*err = fmt.Errorf("decode %s: the file is broken: %v", kind, broken)
	}
}

// short turns a plain end where more should come into [io.ErrUnexpectedEOF].
func short(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
