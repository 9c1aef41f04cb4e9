package capi

import (
	"runtime"
	"slices"
	"unsafe"
)

// SpeakerModel names the file of a model that makes embeddings of voices.
type SpeakerModel struct {
	Model   string
	Threads int
	Debug   bool // the library tells its settings on standard error
}

// Extractor makes embeddings of voices: lists of numbers that are alike if the voices are. Any number of voices may be
// looked at at the same time.
type Extractor struct {
	lib *Library
	e   handle
}

// NewExtractor loads a model. It takes a second or so and cannot be interrupted. It has to be freed.
func (l *Library) NewExtractor(m SpeakerModel) (*Extractor, error) {
	cfg := &extractorConfig{model: text(m.Model), threads: int32(m.Threads), debug: flag(m.Debug), provider: text("cpu")}
	e := l.extractor.create(cfg)
	runtime.KeepAlive(cfg)
	if e == 0 {
		return nil, ErrRefused
	}
	return &Extractor{l, e}, nil
}

// Free frees the extractor while it looks at nothing.
func (x *Extractor) Free() { x.lib.extractor.destroy(x.e) }

// Dim is the length of its embeddings.
func (x *Extractor) Dim() int { return int(x.lib.extractor.dim(x.e)) }

// maxDim bounds the length of an embedding: those of known models have 192 to 512 numbers.
const maxDim = 8192

// Embed returns the embedding of the voice in samples, from -1 to 1 at 16 kHz; nil where they are too short for the model.
// It takes as long as the model needs and cannot be interrupted.
func (x *Extractor) Embed(samples []float32) ([]float32, error) {
	calls, dim := &x.lib.extractor, x.Dim()
	if dim < 1 || dim > maxDim {
		return nil, ErrRefused
	}
	if len(samples) == 0 {
		return nil, nil
	}
	s := calls.stream(x.e)
	if s == 0 {
		return nil, ErrRefused
	}
	defer calls.release(s)
	calls.accept(s, sampleRate, unsafe.SliceData(samples), int32(len(samples)))
	runtime.KeepAlive(samples)
	calls.finish(s)
	if calls.ready(x.e, s) != 1 {
		return nil, nil
	}
	v := calls.compute(x.e, s)
	if v == nil {
		return nil, nil
	}
	defer calls.forget(v)
	return slices.Clone(unsafe.Slice(v, dim)), nil
}

// Speakers compares embeddings of one length with those of speakers that it knows. It is for one goroutine at a time.
type Speakers struct {
	lib *Library
	m   handle
	dim int
}

// NewSpeakers makes a list of nobody. It has to be freed.
func (l *Library) NewSpeakers(dim int) (*Speakers, error) {
	m := l.manager.create(int32(dim))
	if m == 0 {
		return nil, ErrRefused
	}
	return &Speakers{l, m, dim}, nil
}

// Free frees the list.
func (s *Speakers) Free() { s.lib.manager.destroy(s.m) }

// Add adds a speaker who is not on the list yet, with embeddings of which the library takes the mean. It reports whether it did.
func (s *Speakers) Add(name string, embeddings [][]float32) bool {
	flat := make([]float32, 0, len(embeddings)*s.dim)
	for _, e := range embeddings {
		if len(e) != s.dim {
			return false
		}
		flat = append(flat, e...)
	}
	if len(flat) == 0 || name == "" {
		return false
	}
	added := s.lib.manager.add(s.m, name, unsafe.SliceData(flat), int32(len(embeddings)))
	runtime.KeepAlive(flat)
	return added == 1
}

// Match is a speaker and how much an embedding is like theirs: a cosine.
type Match struct {
	Name  string
	Score float64
}

// anything is a threshold that every cosine reaches.
const anything = -1

// Best returns the speakers that an embedding is most like, the best first, at most n of them.
func (s *Speakers) Best(embedding []float32, n int) (best []Match) {
	if len(embedding) != s.dim {
		return nil
	}
	result := s.lib.manager.best(s.m, unsafe.SliceData(embedding), anything, int32(n))
	runtime.KeepAlive(embedding)
	if result == nil {
		return nil
	}
	defer s.lib.manager.forget(result)
	if result.matches == nil || result.count < 1 {
		return nil
	}
	for _, m := range unsafe.Slice(result.matches, min(int(result.count), n)) {
		best = append(best, Match{read(m.name), float64(m.score)})
	}
	return best
}
