package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/devicetest"
)

const (
	earsText = 300 * time.Millisecond // from the end mark to the text, for both recognisers
	earsLag  = 180 * time.Millisecond // of a streaming recogniser's words behind the voice
	earsGain = 150                    // ms by which it is to be earlier
	fewest   = 6                      // pairs of which the least and the most hold the median in 95 of 100 cases
)

// listened is M19: a recogniser that uploads after the pause beside one that streams. Both are members of one server, for
// two devices: what makes one of them late makes the other so, too.
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
	pairs := b.o.Size.amounts().auto.devices
	one := scenario{names: s.names, about: s.about, run: compareEars, needs: settings{
		more: fmt.Sprintf("  funasr: {type: funasr, base_url: %q}\n", e.url()), last: agentsOf(pairs),
	}}
	out := b.one(ctx, one, run)
	if len(out) > 0 && e.asked.Load() == 0 {
		b.failed("M19", errNoEars)
		return nil
	}
	return out
}

// streamsID is the id of the device of a pair whose recogniser streams.
func streamsID(pair int) string { return fmt.Sprintf("24:6f:28:c0:00:%02x", pair) }

// agentsOf are the settings that give one device of each pair a recogniser that streams.
func agentsOf(pairs int) string {
	var out strings.Builder
	out.WriteString("agents: {streams: {asr: [funasr]}}\ndevices:\n")
	for i := range pairs {
		fmt.Fprintf(&out, "  %q: {agent: streams}\n", streamsID(i))
	}
	return out.String()
}

// compareEars lets the two devices of each pair be spoken to one after the other, first one of them and then the other.
func compareEars(ctx context.Context, r *rig) ([]Figure, error) {
	r.stubs.Set(Plan{ASR: earsText, LLM: 400 * time.Millisecond, TTS: 200 * time.Millisecond})
	packets := slices.Concat(r.said.packets, pauses(5*time.Second))
	parts, err := together(r.auto.devices, max(r.auto.devices, 1), func(i int) ([][2]time.Duration, error) {
		var pair [2]*client
		for side, id := range [2]string{"", streamsID(i)} {
			c, err := r.dial(ctx, devicetest.Options{DeviceID: id, OpenListen: true, NoMCP: true})
			if err != nil {
				return nil, err
			}
			pair[side] = c
		}
		turn := 0
		return times(r.auto.turns, func() (took [2]time.Duration, err error) {
			turn++
			for k := range pair {
				side := (k + turn + i) % 2
				took[side], err = pair[side].utterance(ctx, packets, r.said.voiced)
				if err != nil {
					return took, err
				}
			}
			return took, nil
		})
	})
	return judgeEars(slices.Concat(parts...)), err
}

// judgeEars makes the figures of the pairs of utterances, of each the one that was uploaded first.
func judgeEars(pairs [][2]time.Duration) []Figure {
	side := func(n int) []float64 {
		return mapped(pairs, func(p [2]time.Duration) float64 { return milliseconds(p[n]) })
	}
	out := []Figure{sampled("M19", "speech end to first audio, uploading", side(0)), sampled("M19", "speech end to first audio, streaming", side(1))}
	if len(pairs) == 0 {
		return out
	}
	earlier := mapped(pairs, func(p [2]time.Duration) float64 { return milliseconds(p[0] - p[1]) })
	low, high := medianWithin(earlier)
	gain := single("M19", "streaming is earlier, median of pairs", "ms", len(pairs), median(earlier), least(Value, earsGain))
	if len(earlier) < fewest {
		return append(out, gain.noted("%.0f to %.0f ms: too few for an interval", low, high))
	}
	gain = gain.noted("95 %%: %.0f to %.0f ms", low, high)
	gain.Untimed = low >= earsGain || high < earsGain // else a quieter machine might say which
	return append(out, gain)
}

// medianWithin returns the bounds between which the median of what a sample was taken of lies, in 95 of 100 cases, whatever
// its distribution: two of its values, by their ranks. Of less than six values these are the least and the most.
func medianWithin(sample []float64) (low, high float64) {
	s := slices.Sorted(slices.Values(sample))
	n := len(s)
	rank := int(math.Floor((float64(n) - 1.96*math.Sqrt(float64(n))) / 2))
	rank = min(max(rank, 1), n)
	return s[rank-1], s[n-rank]
}

// errNoEars says that a recogniser of the bench was not asked.
var errNoEars = errors.New("the recogniser that streams was not asked")
