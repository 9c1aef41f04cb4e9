package sound

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"time"

	"xiaozhi/audio/file"
)

// wavTails are the names of what may stand behind the sound of a WAV file.
var wavTails = []string{"LIST", "fact", "cue ", "smpl", "bext", "PEAK", "JUNK", "junk", "id3 ", "ID3 "}

// playWAV plays a WAV file and checks that the sound was whole. Servers that stream do not
// know its length when they write the head: one that no sentence has is taken for none, and
// sound that goes on behind its end is played. Some begin each part with a head of its own.
func (p *Player) playWAV(in *bufio.Reader) error {
	for {
		w, err := file.NewWAVReader(in)
		if err != nil {
			return err
		}
		if second := int64(w.Rate * w.Channels * w.Bits / 8); p.most > 0 && w.Size/second > int64(p.most/time.Second) {
			w.Size = -1
		}
		if err := p.playAll(w.Rate, w.Read); err != nil {
			return err
		}
		if missing := w.Missing(); missing > 0 && !p.left {
			return fmt.Errorf("wav: %d of %d bytes are missing", missing, w.Size)
		}
		if p.left || w.Size < 0 {
			return nil
		}
		// An error here shows that no more comes: the sound was whole.
		switch head, _ := in.Peek(12); {
		case isWAV(head):
		case len(head) < 8 || slices.Contains(wavTails, string(head[:4])):
			return nil
		default:
			w.Size = -1
			return p.playAll(w.Rate, w.Read)
		}
	}
}

// isWAV reports whether bytes begin as a WAV file does.
func isWAV(head []byte) bool {
	return bytes.HasPrefix(head, []byte("RIFF")) && bytes.HasSuffix(head, []byte("WAVE"))
}
