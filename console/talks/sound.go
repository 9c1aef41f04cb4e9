package talks

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/timeline"
)

// Rates at which sound is given, in Hz.
const (
	userRate  = 16000
	replyRate = 24000
)

// maxLength is how long sound may be that is decoded: it stands in memory. What is longer is given as it is kept only.
const maxLength = 10 * time.Minute

var errLong = errors.New("the sound is too long to be decoded")

// side decodes a side of a turn.
func (t *Talks) side(turn *Turn, side string, rate int) ([]int16, error) {
	rec, ok := turn.Side(side, time.Now())
	if !ok {
		return nil, fs.ErrNotExist
	}
	if rec.Length > maxLength {
		return nil, errLong
	}
	f, err := t.o.Sound.Open(rec.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decode(f, rate, int(maxLength.Seconds())*rate)
}

// decode decodes a file of Ogg Opus, up to so many samples. A packet that is broken is silence.
func decode(r io.Reader, rate, most int) (pcm []int16, err error) {
	decoder, err := audio.NewDecoder(rate)
	if err != nil {
		return nil, err
	}
	pages, buf := file.NewOggReader(bufio.NewReader(r)), make([]int16, audio.MaxFrameSamples(rate))
	for {
		packet, err := pages.Next()
		switch {
		case errors.Is(err, io.EOF):
			return pcm, nil
		case err != nil:
			return nil, err
		case file.IsOpusHeader(packet):
			continue
		}
		n, err := decoder.Decode(packet, buf)
		if err != nil {
			length, _ := audio.PacketDuration(packet) // of no packet at all: nothing
			n = min(int(length.Seconds()*float64(rate)), len(buf))
			clear(buf[:n])
		}
		if len(pcm)+n > most {
			return nil, errLong
		}
		pcm = append(pcm, buf[:n]...)
	}
}

// both mixes the sides of a turn on one clock, the user on the left: what they said ends where the utterance was taken to
// be over, and the reply begins when its first frame left, with the gaps in which the device had nothing to play. The sound
// of one side alone leaves the other channel silent.
func (t *Talks) both(turn *Turn) ([]int16, error) {
	user, err := t.side(turn, sideUser, replyRate)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	reply, other := t.side(turn, sideReply, replyRate)
	if other != nil && (err != nil || !errors.Is(other, fs.ErrNotExist)) {
		return nil, other
	}
	spans, err := timeline.ReadSpans(turn.Spans)
	if err != nil {
		spans = timeline.Spans{}
	}
	return mix(user, reply, &spans)
}

// samples counts the samples of so many milliseconds.
func samples(ms int64) int { return int(ms * replyRate / 1000) }

// mix puts both sides on one clock.
func mix(user, reply []int16, spans *timeline.Spans) ([]int16, error) {
	limit := maxLength.Milliseconds()
	over, known := spans.Marks[timeline.MarkEndpoint]
	frame, heard := spans.Marks[timeline.MarkFrame]
	over, frame = max(-limit, min(over, limit)), max(-limit, min(frame, limit))
	left := samples(over) - len(user) // where the user's side begins
	if !known {
		left = -len(user)
	}
	right := samples(frame)
	if !heard {
		right = max(0, left+len(user))
	}
	pieces := cut(reply, right, spans.Gaps)
	begin := min(left, right)
	if len(user) == 0 {
		begin = min(0, right) // the wait is heard
	}
	end := left + len(user)
	for _, p := range pieces {
		end = max(end, p.at+len(p.pcm))
	}
	if end-begin > samples(2*limit) {
		return nil, errLong
	}
	out := make([]int16, 2*(end-begin))
	for i, v := range user {
		out[2*(left-begin+i)] = v
	}
	for _, p := range pieces {
		for i, v := range p.pcm {
			out[2*(p.at-begin+i)+1] = v
		}
	}
	return out, nil
}

// piece is sound without a gap.
type piece struct {
	at  int
	pcm []int16
}

// cut cuts a reply that begins at a place where there were gaps. One that cannot be is left out.
func cut(reply []int16, at int, gaps []timeline.SpanGap) (pieces []piece) {
	from := 0
	for _, g := range gaps {
		to, until := samples(min(max(g.Played, 0), maxLength.Milliseconds())), samples(min(max(g.Until, 0), maxLength.Milliseconds()))
		if to <= from || to >= len(reply) || until < at+to-from {
			continue
		}
		pieces = append(pieces, piece{at, reply[from:to]})
		from, at = to, until
	}
	return append(pieces, piece{at, reply[from:]})
}
