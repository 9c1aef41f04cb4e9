package bench

import (
	"context"
	"fmt"
	"time"
)

const (
	earsText = 300 * time.Millisecond // from the end mark to the text, for both recognisers
	earsLag  = 180 * time.Millisecond // of a streaming recogniser's words behind the voice
	earsGain = 150                    // ms by which it is to be earlier
)

// firstSound is one side of M19: from the end of speech to the first sound.
func firstSound(ctx context.Context, r *rig) ([]Figure, error) {
	r.stubs.Set(Plan{ASR: earsText, LLM: 400 * time.Millisecond, TTS: 200 * time.Millisecond})
	took, err := r.utterances(ctx)
	return []Figure{sampled("M19", "speech end to first audio", ms(took))}, err
}

// listened is M19: a recogniser that uploads after the pause beside one that streams, in the order A B B A.
func (b *bench) listened(ctx context.Context, s scenario, run int) []Figure {
	if b.o.URL != "" {
		return []Figure{unmeasured("M19", "uploading and streaming recognisers", "only of a server that the bench starts").judged()}
	}
	e, err := startEars(recorded, b.said.voiced, earsLag, earsText)
	if err != nil {
		b.failed("M19", err)
		return nil
	}
	defer e.close()
	var sides [2][]Figure
	for i, streams := range []int{0, 1, 1, 0} {
		one := scenario{names: s.names, about: s.about, run: firstSound}
		if streams == 1 {
			one.needs = settings{ears: "funasr", more: fmt.Sprintf("  funasr: {type: funasr, base_url: %q}\n", e.url())}
		}
		sides[streams] = append(sides[streams], b.one(ctx, one, 4*run+i)...)
		if ctx.Err() != nil {
			return nil
		}
	}
	x, y := combine(sides[0]), combine(sides[1])
	x.What, y.What = x.What+", uploading", y.What+", streaming"
	out := []Figure{x, y}
	up, st := samples(sides[0]), samples(sides[1])
	if len(up) > 0 && len(st) > 0 {
		f := single("M19", "streaming is earlier at p50", "ms", len(up)+len(st), quantile(up, 50)-quantile(st, 50), least(Value, earsGain))
		f.Control = worst(append(sides[0], sides[1]...))
		out = append(out, f)
	}
	return mapped(out, Figure.judged)
}
