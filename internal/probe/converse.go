package probe

import (
	"context"
	"fmt"
	"time"

	"xiaozhi/audio"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// Utterance is sound at 16 kHz, and what is said in it.
type Utterance struct {
	Said string
	PCM  []int16
}

// Conversed holds what came of an utterance that was said to a service which hears and speaks by itself.
type Conversed struct {
	First  time.Duration // from the end of the utterance to the first sound of the answer; 0: there was none
	Total  time.Duration // from there to the end of the answer
	Length time.Duration // of its sound
	Heard  string        // what the service says it has heard
	Wrong  float64       // the part of its signs that are wrong
	Text   string        // of the answer
	Called bool          // it called the tool
	Usage  providers.Usage
}

// Converse says utterances to a service in one talk, as fast as they are spoken, and gives it the tool's result where it
// calls the tool.
func Converse(ctx context.Context, d providers.Duplex, q Question, all ...Utterance) ([]Conversed, error) {
	talk, err := d.Open(ctx, providers.DuplexRequest{
		Instructions: "You are a voice assistant. Answer in one short sentence. Use the tools.", Tools: []providers.ToolSpec{q.Tool}, Language: q.Language,
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = talk.Close() }() // the talk is over
	var out []Conversed
	for _, u := range all {
		if err := play(ctx, talk, u.PCM); err != nil {
			return out, err
		}
		c, err := answer(ctx, talk, q)
		if err != nil {
			return out, err
		}
		c.Wrong = wrong(c.Heard, u.Said)
		out = append(out, c)
	}
	return out, nil
}

// play says sound in a talk as fast as it is spoken.
func play(ctx context.Context, talk providers.DuplexSession, pcm []int16) error {
	tick := time.NewTicker(frame)
	defer tick.Stop()
	n := audio.Recognition.Rate * int(frame/time.Millisecond) / 1000
	for at := 0; at < len(pcm); at += n {
		if err := talk.Write(pcm[at:min(at+n, len(pcm))]); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// answer takes the answer to what was said, with those to the results of the tool.
func answer(ctx context.Context, talk providers.DuplexSession, q Question) (c Conversed, err error) {
	begun := time.Now()
	var results []providers.ToolResult
	for range steps {
		calls := results[:0:0]
		for d, failed := range talk.Respond(ctx, results) {
			if failed != nil {
				return c, failed
			}
			if d.Heard != "" {
				c.Heard = d.Heard
			}
			if n := len(d.Sound.PCM); n > 0 {
				if c.First == 0 {
					c.First = time.Since(begun)
				}
				c.Length += time.Duration(n) * time.Second / time.Duration(d.Sound.Rate)
			}
			c.Text += d.Text
			c.Usage.Prompt += d.Usage.Prompt
			c.Usage.Cached += d.Usage.Cached
			c.Usage.Completion += d.Usage.Completion
			for _, call := range d.ToolCalls {
				calls = append(calls, providers.ToolResult{ID: call.ID, Name: call.Name, Output: q.Result})
			}
		}
		c.Total = time.Since(begun)
		if len(calls) == 0 {
			return c, nil
		}
		c.Called, results = true, calls
	}
	return c, fmt.Errorf("it called the tool %d times and gave no answer", steps)
}

// wrong returns the part of the signs of heard words that are wrong.
func wrong(heard, said string) float64 {
	want := []rune(text.Bare(said))
	if len(want) == 0 {
		return 0
	}
	return min(float64(text.Edits(text.Bare(heard), text.Bare(said)))/float64(len(want)), 1)
}
