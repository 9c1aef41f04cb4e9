package audio

import (
	"errors"
	"fmt"
	"io"

	"github.com/hajimehoshi/go-mp3"
)

// mp3Track decodes MP3: the library gives 16 bit, always two channels.
type mp3Track struct {
	decoder *mp3.Decoder
	raw     []byte
	held    int // bytes of a sample that is not whole yet
}

func openMP3(r io.Reader) (t trackSource, rate int, err error) {
	defer recoverMP3(&err)
	// The library would read a file that can seek to its end first.
	decoder, err := mp3.NewDecoder(struct{ io.Reader }{r})
	if err != nil {
		return nil, 0, fmt.Errorf("open mp3: %w", oggShort(err))
	}
	return &mp3Track{decoder: decoder, raw: make([]byte, 4608)}, decoder.SampleRate(), nil
}

func (m *mp3Track) read(pcm []int16) (n int, err error) {
	defer recoverMP3(&err)
	got, err := m.decoder.Read(m.raw[m.held:min(len(m.raw), 4*len(pcm))])
	got += m.held
	n = got / 4
	shape := wavShape{channels: 2, bits: 16}
	copy(pcm, shape.mono(m.raw[:got]))
	m.held = copy(m.raw, m.raw[4*n:got])
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("decode mp3: %w", err)
	}
	return n, err
}

// recoverMP3 turns the decoder's panic over broken bytes into an error.
func recoverMP3(err *error) {
	if broken := recover(); broken != nil {
		*err = fmt.Errorf("decode mp3: the file is broken: %v", broken)
	}
}
