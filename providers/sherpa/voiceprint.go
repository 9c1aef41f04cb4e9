package sherpa

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa/internal/capi"
	"xiaozhi/providers/sherpa/modelfile"
)

// usualThreshold is between what models of 3D-Speaker and WeSpeaker give of one person and of two.
const usualThreshold = 0.5

// Voiceprint tells people apart offline. A print is the embedding of a voice, which whoever enrols keeps. It is safe for many
// connections at once; more voices than decoders wait for one another.
type Voiceprint struct {
	name   string
	found  string // model and library
	scale  providers.Scale
	lib    *capi.Library
	loader *loader[*capi.Extractor]
	work   sync.WaitGroup // the goroutines that compute

	mu     sync.Mutex
	closed bool
	ended  chan struct{} // closed by Close
}

// NewVoiceprint looks for the model and opens the library. The model is loaded only by Warm or by the first voice. When
// something is missing the error is a *providers.Error of kind Unavailable, and wraps a [*modelfile.Problem].
func NewVoiceprint(o Options) (*Voiceprint, error) {
	o, err := o.complete()
	if err != nil {
		return nil, &providers.Error{Provider: o.Name, Op: "open", Kind: providers.BadRequest, Err: err}
	}
	m, lib, err := open(o, service.Voiceprint)
	if err != nil {
		return nil, failed(o.Name, "open", err)
	}
	tried := &trial{try: o.Try}
	return &Voiceprint{
		name: o.Name, found: describe(m, lib), lib: lib, ended: make(chan struct{}),
		scale: providers.Scale{Model: modelName(m), Threshold: cmp.Or(o.Threshold, usualThreshold)},
		loader: newLoader(cmp.Or(o.Decoders, min(2, runtime.NumCPU())), func(ctx context.Context) (*capi.Extractor, error) {
			if err := tried.run(ctx); err != nil {
				return nil, err
			}
			x, err := lib.NewExtractor(capi.SpeakerModel{Model: m.Network, Threads: o.Threads})
			return x, refused(m.Dir, err)
		}),
	}, nil
}

// modelName is that of the network and the length of its embeddings: prints of another are of no use.
func modelName(m modelfile.Model) string {
	return strings.TrimSuffix(filepath.Base(m.Network), ".onnx") + "/" + m.Metadata["output_dim"]
}

// Name returns the provider's name in the config and in logs.
func (v *Voiceprint) Name() string { return v.name }

// Describe names the model and the library, for people.
func (v *Voiceprint) Describe() string { return v.found }

// Scale says what its scores mean: cosines of the model's embeddings.
func (v *Voiceprint) Scale() providers.Scale { return v.scale }

// Warm loads the model, so that the first voice need not wait for it. It returns when ctx ends; the loading goes on.
func (v *Voiceprint) Warm(ctx context.Context) error {
	_, err := compute(ctx, v, "load", func(*capi.Extractor) (struct{}, error) { return struct{}{}, nil })
	return err
}

// Enrol makes the print of a voice. Its data is the embedding.
func (v *Voiceprint) Enrol(ctx context.Context, id string, pcm []int16) (providers.Print, error) {
	if err := providers.CheckVoice(pcm); err != nil {
		return providers.Print{}, v.bad("enrol", err)
	}
	e, err := v.embed(ctx, "enrol", pcm)
	if err != nil {
		return providers.Print{}, err
	}
	return providers.Print{ID: id, Model: v.scale.Model, Data: encode(e)}, nil
}

// Identify compares the voice with the mean of each person's prints.
func (v *Voiceprint) Identify(ctx context.Context, pcm []int16, among []providers.Print) (match providers.VoiceMatch, err error) {
	if err := ctx.Err(); err != nil {
		return match, err
	}
	known := map[string][][]float32{}
	for _, p := range among {
		if e := decode(p.Data); p.Model == v.scale.Model && e != nil {
			known[p.Person] = append(known[p.Person], e)
		}
	}
	if len(known) == 0 {
		return match, nil
	}
	if err := providers.CheckVoice(pcm); err != nil {
		return match, v.bad("identify", err)
	}
	heard, err := v.embed(ctx, "identify", pcm)
	if err != nil {
		return match, err
	}
	best, err := v.compare(heard, known)
	if err != nil {
		return match, failed(v.name, "identify", err)
	}
	if len(best) > 0 && best[0].Score > 0 {
		match.Person, match.Score = best[0].Name, min(best[0].Score, 1)
	}
	if len(best) > 1 && match.Person != "" {
		match.Next = min(max(best[1].Score, 0), match.Score)
	}
	return match, nil
}

// compare returns the two people that an embedding is most like.
func (v *Voiceprint) compare(heard []float32, known map[string][][]float32) ([]capi.Match, error) {
	list, err := v.lib.NewSpeakers(len(heard))
	if err != nil {
		return nil, err
	}
	defer list.Free()
	for person, all := range known {
		same := slices.DeleteFunc(all, func(e []float32) bool { return len(e) != len(heard) })
		if len(same) > 0 && !list.Add(person, same) {
			return nil, errors.New("the library does not take a print")
		}
	}
	return slices.DeleteFunc(list.Best(heard, 2), func(m capi.Match) bool { return math.IsNaN(m.Score) }), nil
}

// Delete does nothing: prints are with whoever has enrolled them.
func (v *Voiceprint) Delete(ctx context.Context, _ string) error { return ctx.Err() }

var errNoVoice = errors.New("the model finds no voice in the sound")

// embed makes the embedding of a voice.
func (v *Voiceprint) embed(ctx context.Context, op string, pcm []int16) ([]float32, error) {
	samples := floats(make([]float32, 0, len(pcm)), pcm)
	return compute(ctx, v, op, func(x *capi.Extractor) ([]float32, error) {
		e, err := x.Embed(samples)
		if err == nil && (len(e) == 0 || slices.ContainsFunc(e, func(f float32) bool { return f != f })) {
			err = errNoVoice
		}
		return e, err
	})
}

// compute has the library do something, and does not wait for it after ctx has ended.
func compute[T any](ctx context.Context, v *Voiceprint, op string, do func(x *capi.Extractor) (T, error)) (got T, err error) {
	type result struct {
		got T
		err error
	}
	done := make(chan result, 1)
	v.mu.Lock()
	closed := v.closed
	if !closed {
		v.work.Go(func() {
			x, err := v.loader.acquire(ctx)
			if err != nil {
				done <- result{err: err}
				return
			}
			defer v.loader.release()
			if ctx.Err() != nil {
				return
			}
			got, err := do(x)
			done <- result{got, err}
		})
	}
	v.mu.Unlock()
	if closed {
		return got, failed(v.name, op, errClosed)
	}
	select {
	case r := <-done:
		return r.got, failed(v.name, op, r.err)
	case <-v.ended:
		return got, failed(v.name, op, errClosed)
	case <-ctx.Done():
		return got, ctx.Err()
	}
}

// Retire frees the model as soon as nobody uses it, from now on. It may be called at any time.
func (v *Voiceprint) Retire() { v.loader.retire() }

// Close ends every call with an error, waits until the library has left them, and frees the model.
func (v *Voiceprint) Close() error {
	v.mu.Lock()
	if !v.closed {
		v.closed = true
		close(v.ended)
	}
	v.mu.Unlock()
	v.work.Wait()
	v.loader.retire()
	return nil
}

func (v *Voiceprint) bad(op string, err error) error {
	return &providers.Error{Provider: v.name, Op: op, Kind: providers.BadRequest, Err: err}
}

// encode writes an embedding as bytes, the lowest first.
func encode(e []float32) []byte {
	data := make([]byte, 0, 4*len(e))
	for _, f := range e {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(f))
	}
	return data
}

// decode undoes encode; nil: it is no embedding.
func decode(data []byte) []float32 {
	if len(data) == 0 || len(data)%4 != 0 {
		return nil
	}
	e := make([]float32, len(data)/4)
	for i := range e {
		if e[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])); math.IsNaN(float64(e[i])) || math.IsInf(float64(e[i]), 0) {
			return nil
		}
	}
	return e
}
