package bench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"regexp"
	"sync/atomic"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/internal/openaitest"
)

// Trouble is a fault that a stub shows in place of its work.
type Trouble string

// The troubles.
const (
	Healthy Trouble = ""
	Failing Trouble = "failing" // answers 503 at once
	Hanging Trouble = "hanging" // never answers
)

// Plan sets the behaviour of the stub providers. The zero value answers at once: a
// transcript, a reply of one short sentence, 300 ms of speech for it.
type Plan struct {
	ASR, LLM, TTS time.Duration // until the transcript, the first delta, the first sound
	Heard         string        // the transcript; empty: what the recording says
	Replies       []string      // what the model says, one after the other, again and again
	Rate          float64       // deltas in a second; 0: all at once
	Sound         time.Duration // of each sentence; 0: 300 ms; below 0: it goes on for an hour
	Rest          time.Duration // between two parts of 100 ms of sound; 0: all at once
	Trouble       Trouble
	Log           bool // requests are kept, for Requests
}

const (
	replyRate    = 24000                  // Hz of what the stub voice says
	phraseSound  = 300 * time.Millisecond // of each phrase that a server renders at its start
	recorded     = "he was not an ill disposed young man"
	defaultReply = "This is one whole sentence."
	defaultSound = 300 * time.Millisecond
	endless      = time.Hour
	soundPart    = replyRate * 2 / 10 // bytes of 100 ms
	soundBlock   = 10 * soundPart     // of parts of sound that nobody delays
	logLimit     = 4096               // requests that are kept
)

// Stubs are the stub providers, on one address that speaks the OpenAI format.
type Stubs struct {
	*openaitest.Server
	sound string // PCM of the recording at replyRate, said again and again
	plan  atomic.Pointer[Plan]
	turns atomic.Int64
}

// StartStubs starts them on an address; empty: a free port of 127.0.0.1.
func StartStubs(address string) (*Stubs, error) {
	pcm, err := speech().pcm(replyRate)
	if err != nil {
		return nil, err
	}
	sound, err := binary.Append(nil, binary.LittleEndian, pcm)
	if err != nil {
		return nil, err
	}
	server, err := openaitest.Listen(address)
	if err != nil {
		return nil, err
	}
	s := &Stubs{Server: server, sound: string(sound)}
	s.Set(Plan{})
	server.Handle(openaitest.Transcribe, func(*openaitest.Request) openaitest.Reply { return s.plan.Load().transcript() })
	server.Handle(openaitest.Chat, s.chat)
	server.Handle(openaitest.Speak, s.speak)
	return s, nil
}

// Set changes the behaviour of the stubs and forgets the requests so far.
func (s *Stubs) Set(p Plan) {
	if len(p.Replies) == 0 {
		p.Replies = []string{defaultReply}
	}
	s.plan.Store(&p)
	if p.Log {
		s.Keep(logLimit)
	} else {
		s.Keep(0)
	}
}

// What settle waits for: that the voice was asked for nothing for so long, and how long it waits for that.
const (
	settled     = 500 * time.Millisecond
	settleLimit = 20 * time.Second
)

// settle waits until a server that has just started asks the voice for nothing more: what it renders ahead belongs to
// no turn. A server that never rests is measured all the same.
func (s *Stubs) settle(ctx context.Context) error {
	began := time.Now()
	for last := began; time.Since(last) < settled && time.Since(began) < settleLimit; {
		if err := pause(ctx, pollEvery); err != nil {
			return err
		}
		for _, q := range s.Requests(openaitest.Speak) {
			select {
			case <-q.Ended():
				if at := q.EndedAt(); at.After(last) {
					last = at
				}
			default:
				last = time.Now()
			}
		}
	}
	return nil
}

func (s *Stubs) chat(*openaitest.Request) openaitest.Reply {
	p := s.plan.Load()
	n := s.turns.Add(1) - 1
	return p.chat(p.Replies[int(n)%len(p.Replies)])
}

func (s *Stubs) speak(r *openaitest.Request) openaitest.Reply {
	asked, _ := r.JSON()["response_format"].(string)
	return s.plan.Load().speech(s.sound, asked == "wav")
}

// over is the trouble's reply in place of a healthy one.
func (t Trouble) over(healthy openaitest.Reply) openaitest.Reply {
	switch t {
	case Failing:
		return openaitest.Failure(http.StatusServiceUnavailable, "the stub is told to fail")
	case Hanging:
		return openaitest.Reply{Hang: true}
	default:
		return healthy
	}
}

func (p *Plan) transcript() openaitest.Reply {
	return p.Trouble.over(openaitest.JSON(http.StatusOK, fmt.Sprintf(`{"text":%q}`, cmp.Or(p.Heard, recorded))).After(p.ASR))
}

func (p *Plan) chat(reply string) openaitest.Reply {
	r := openaitest.Text(deltas(reply)...)
	if p.Rate > 0 {
		for i := range r.Pieces {
			r.Pieces[i].Delay = time.Duration(float64(time.Second) / p.Rate)
		}
		r.Pieces[0].Delay = 0
	}
	r.Pieces[0].Delay += p.LLM
	return p.Trouble.over(r)
}

// speech returns the answer of the voice: the recording over and over, for as long as
// the plan says, as bare PCM or as a WAV file. Its parts share their bytes.
func (p *Plan) speech(sound string, wav bool) openaitest.Reply {
	length, size := cmp.Or(p.Sound, defaultSound), soundPart
	if length < 0 {
		length = endless
	}
	if p.Rest == 0 {
		size = soundBlock
	}
	r := openaitest.Reply{Header: map[string]string{"Content-Type": "audio/pcm"}}
	total := int(length.Milliseconds()) * replyRate * 2 / 1000
	if wav {
		r.Header["Content-Type"] = "audio/wav"
		r.Pieces = append(r.Pieces, openaitest.Piece{Data: wavHeader(total)})
	}
	for left, at := total, 0; left > 0; {
		n := min(size, left, len(sound)-at)
		r.Pieces = append(r.Pieces, openaitest.Piece{Data: sound[at : at+n], Delay: p.Rest})
		left, at = left-n, (at+n)%len(sound)
	}
	r.Pieces[0].Delay = p.TTS
	return p.Trouble.over(r)
}

func wavHeader(size int) string {
	var b bytes.Buffer
	_ = file.WriteWAV(&b, nil, replyRate) // a buffer takes all
	header := b.Bytes()
	binary.LittleEndian.PutUint32(header[4:], uint32(len(header)-8+size))
	binary.LittleEndian.PutUint32(header[len(header)-4:], uint32(size))
	return string(header)
}

// deltaForm is that of a delta of a model: a word with the space before it, or a
// single Han character; punctuation joins what stands before it.
var deltaForm = regexp.MustCompile(`\p{Han}\p{P}*|[\s\p{Z}][^\p{Han}\s\p{Z}]*|[^\p{Han}\s\p{Z}]+`)

// deltas cuts a text as models do.
func deltas(text string) []string { return deltaForm.FindAllString(text, -1) }
