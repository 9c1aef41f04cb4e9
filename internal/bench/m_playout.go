package bench

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"xiaozhi/internal/devicetest"
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
	if err := c.ask(ctx); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, 2*r.long.length+answerLimit)
	defer cancel()
	reply, err := c.replied(limited, asked)
	if err != nil {
		return nil, err
	}
	figures := r.judgeLong(reply, c.frames.all(), c.packet, sentences)
	stops := []*devicetest.Reply{reply}
	r.stubs.Set(Plan{Sound: 700 * time.Millisecond})
	for range r.long.short {
		asked := time.Now()
		if err := c.ask(ctx); err != nil {
			return figures, err
		}
		short, err := c.repliedSoon(ctx, asked)
		if err != nil {
			return figures, err
		}
		stops = append(stops, short)
	}
	return append(figures, stopAccuracy(stops)), nil
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
	var subtitles []time.Time
	for _, s := range reply.Sentences {
		subtitles = append(subtitles, s.At)
	}
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
