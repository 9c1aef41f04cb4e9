package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/devicetest"
)

const (
	burst      = 300 * time.Millisecond // in which a reply builds up its lead; jitter and lead count afterwards (M4, M5)
	queueLimit = 40                     // packets that a device holds (docs/protocol.md 4.3)
)

// longReply is M4 to M7: a long reply of many sentences, each 300 ms late from
// the voice while the text is far ahead, and some short ones.
func longReply(ctx context.Context, r *rig) ([]Figure, error) {
	sentences := int(math.Ceil(float64(r.long.length) / float64(r.long.sentence)))
	r.stubs.Set(Plan{TTS: 300 * time.Millisecond, Sound: r.long.sentence, Replies: []string{story(sentences)}})
	c, err := r.dial(ctx, devicetest.Options{Mode: devicetest.Manual, NoMCP: true})
	if err != nil {
		return nil, err
	}
	asked := time.Now()
	if err := c.ask(ctx, aStory); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, 2*r.long.length+answerLimit)
	defer cancel()
	reply, err := c.replied(limited, asked)
	if err != nil {
		return nil, err
	}
	figures := r.judgeLong(reply, c.frames.all(), c.packet, sentences)
	r.stubs.Set(Plan{Sound: 700 * time.Millisecond})
	short, err := times(r.long.short, func() (*devicetest.Reply, error) {
		asked := time.Now()
		if err := c.ask(ctx, aStory); err != nil {
			return nil, err
		}
		return c.repliedSoon(ctx, asked)
	})
	if err != nil {
		return figures, err
	}
	return append(figures, stopAccuracy(append(short, reply))), nil
}

// story is a text of n sentences, none of which can be taken for two.
func story(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "This is sentence number %d of a rather long story. ", i+1)
	}
	return b.String()
}

func (r *rig) judgeLong(reply *devicetest.Reply, arrivals []time.Time, packet time.Duration, sentences int) []Figure {
	p := play(arrivals, packet)
	n := len(arrivals)
	leads := describe(ms(p.slack))
	slack := Figure{Metric: "M4", What: "lead at the receiver", Unit: "ms", N: len(p.slack), Numbers: leads, Goals: []Goal{least(Min, 120), most(Max, 600)}}
	figures := []Figure{
		single("M4", fmt.Sprintf("underruns in %v", r.long.length), "", n, float64(p.underruns), most(Value, 0)),
		single("M4", fmt.Sprintf("overflows in %v", r.long.length), "", n, float64(max(p.overflows, reply.Dropped)), most(Value, 0)),
		slack,
		sampled("M5", "jitter, 1 session", ms(p.jitter), most(P50, 1), most(P99, 5), most(Max, 20)).asJitter(),
	}
	subtitles := mapped(reply.Sentences, func(s devicetest.Sentence) time.Time { return s.At })
	gaps := seams(arrivals, subtitles, packet)
	if len(gaps) == 0 {
		return append(figures, unmeasured("M6", "seam between sentences", "the reply came with fewer than two subtitles"))
	}
	seam := sampled("M6", "seam between sentences, voice 300 ms late", ms(gaps), most(Max, 0))
	if len(gaps) != sentences-1 {
		seam = seam.noted("%d sentences were asked for", sentences)
	}
	return append(figures, seam)
}

// stopAccuracy is M7: tts stop less the end of play-out on the model clock.
func stopAccuracy(replies []*devicetest.Reply) Figure {
	var off []time.Duration
	for _, reply := range replies {
		if !reply.Cut && !reply.PlayedOut.IsZero() && !reply.Stopped.IsZero() {
			off = append(off, reply.Stopped.Sub(reply.PlayedOut))
		}
	}
	return sampled("M7", "tts stop after play-out", ms(off), least(Min, 0), most(Max, 120))
}

// playout is the arrivals of one reply's packets on the model clock: packet i plays at t0 + i packets, where t0 is
// the first arrival. A packet that comes after its play time is an underrun, and the clock starts anew with it.
type playout struct {
	slack     []time.Duration // play time less arrival, of each packet behind the burst
	underruns int
	overflows int             // packets that met a full queue
	jitter    []time.Duration // |distance of two arrivals - packet|, behind the burst
	ends      time.Time       // when the last packet has been played
}

// play puts arrivals, in order, of packets of one length on the model clock.
func play(arrivals []time.Time, packet time.Duration) playout {
	var p playout
	if len(arrivals) == 0 {
		return p
	}
	settled := arrivals[0].Add(burst)
	p.ends = arrivals[0]
	for i, at := range arrivals {
		slack := p.ends.Sub(at)
		if i > 0 && slack < 0 {
			p.underruns++
			p.ends, settled = at, at.Add(burst)
		}
		if slack > queueLimit*packet {
			p.overflows++
			continue
		}
		p.ends = p.ends.Add(packet)
		if at.Before(settled) {
			continue
		}
		p.slack = append(p.slack, slack)
		p.jitter = append(p.jitter, (at.Sub(arrivals[i-1]) - packet).Abs())
	}
	return p
}

// seams are the gaps that a listener hears between the sentences of a reply: for each sentence after the first, how
// long the speaker was silent before its first packet came. Sentences are the arrivals of their subtitles.
func seams(arrivals, sentences []time.Time, packet time.Duration) []time.Duration {
	var gaps []time.Duration
	if len(arrivals) == 0 || len(sentences) == 0 {
		return nil
	}
	next := 1
	ends := arrivals[0]
	for i, at := range arrivals {
		if i > 0 && next < len(sentences) && !at.Before(sentences[next]) {
			gaps = append(gaps, max(0, at.Sub(ends)))
			next++
		}
		if ends.Before(at) {
			ends = at
		}
		ends = ends.Add(packet)
	}
	return gaps
}

// apart are the distances of neighbours from a packet's length, for arrivals in the middle of a reply.
func apart(arrivals []time.Time, packet time.Duration) []time.Duration {
	var out []time.Duration
	for i := 1; i < len(arrivals); i++ {
		out = append(out, (arrivals[i].Sub(arrivals[i-1]) - packet).Abs())
	}
	return out
}

// cut holds the times of one abort as the device saw them.
type cut struct {
	aborted, stopped time.Time   // abort written, tts stop read
	frames           []time.Time // arrivals
}

// last is from the abort to the last packet that came before the tts stop; 0 if none came.
func (c cut) last() time.Duration {
	var last time.Duration
	for _, at := range c.frames {
		if at.After(c.aborted) && !at.After(c.stopped) {
			last = at.Sub(c.aborted)
		}
	}
	return last
}

// after counts the packets behind the tts stop.
func (c cut) after() int {
	return len(c.frames) - len(slices.DeleteFunc(slices.Clone(c.frames), c.stopped.Before))
}
