package pocketsphinx

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
	"sync"
)

// mainSearch is the C library's name of the search that a decoder was loaded with.
const mainSearch = "_default"

// maxGrammars is the number of grammars that a decoder keeps; the least recently used goes.
const maxGrammars = 8

// decoder recognises one utterance at a time, by dictation and by the grammar of
// the phrases. Both search while the sound comes in and in one pass, so that
// little is left to do at its end. It is for one goroutine at a time; the pool
// lends it.
type decoder struct {
	log       *slog.Logger
	dictation *searcher
	grammar   *searcher
	front     *frontEnd
	grammars  []string // texts of the compiled grammars, latest last; each is its own search's name

	raw   []cepstrum // heard, but not searched yet
	clean []cepstrum // the same without its mean
	mean  *cepstralMean
	held  bool        // the first frames are still being gathered
	open  []*searcher // those with an open C utterance
}

// newDecoder loads the model twice: with the language model and without it.
// It takes about 0.4 s and cannot be interrupted.
func newDecoder(lib *library, m model, log *slog.Logger) (_ *decoder, err error) {
	d := &decoder{log: log}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.dictation, err = newSearcher(lib, m.dictationArgs(), latticeShift); err != nil {
		return nil, err
	}
	if d.grammar, err = newSearcher(lib, m.grammarArgs(), 0); err != nil {
		return nil, err
	}
	if d.front, err = newFrontEnd(&lib.front, d.grammar.cfg); err != nil {
		return nil, err
	}
	return d, nil
}

// begin starts an utterance in which the phrases are likely.
func (d *decoder) begin(phrases []string) error {
	d.raw, d.mean, d.held = d.raw[:0], newCepstralMean(), true
	d.front.begin()
	if err := d.dictation.begin(mainSearch); err != nil {
		return err
	}
	d.open = append(d.open, d.dictation)
	if name := d.useGrammar(phrases); name != "" {
		if err := d.grammar.begin(name); err != nil {
			return err
		}
		d.open = append(d.open, d.grammar)
	}
	return nil
}

// hear takes PCM of the utterance.
func (d *decoder) hear(pcm []int16, stop func() bool) error {
	d.raw = d.front.add(d.raw, pcm)
	if d.held && len(d.raw) < meanHold {
		return nil
	}
	return d.search(stop)
}

// search takes the mean off the frames that were heard and searches them.
func (d *decoder) search(stop func() bool) error {
	if d.held {
		d.mean.hear(d.raw...)
	}
	d.clean = d.clean[:0]
	for _, f := range d.raw {
		if !d.held {
			d.mean.hear(f)
		}
		d.clean = d.mean.remove(d.clean, f)
	}
	d.raw, d.held = d.raw[:0], false
	for _, s := range d.open {
		if err := s.feed(d.clean, stop); err != nil {
			return err
		}
	}
	return nil
}

// partial returns the text that dictation has found so far.
func (d *decoder) partial() string { return d.dictation.best() }

// end completes the open C utterances.
func (d *decoder) end() {
	for _, s := range d.open {
		s.end()
	}
	d.open = d.open[:0]
}

// finish completes the utterance and gives what was found. Stopped, it found nothing.
func (d *decoder) finish(stop func() bool) (measurement, error) {
	d.raw = d.front.end(d.raw)
	err := d.search(stop)
	matched := slices.Contains(d.open, d.grammar)
	d.end()
	if err != nil || stop() {
		return measurement{}, err
	}
	m := measurement{dictation: d.dictation.segments()}
	if matched {
		m.command = d.grammar.segments()
	}
	return m, nil
}

// grammarName returns the name of the search for a grammar.
func grammarName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "phrases " + hex.EncodeToString(sum[:8])
}

// useGrammar compiles the grammar of the phrases, or finds it compiled, and
// gives the name of its search, or "" if there is none.
func (d *decoder) useGrammar(phrases []string) string {
	if len(phrases) == 0 {
		return ""
	}
	key := strings.Join(phrases, "\n")
	if i := slices.Index(d.grammars, key); i >= 0 {
		d.grammars = append(slices.Delete(d.grammars, i, i+1), key)
		return grammarName(key)
	}
	text := grammarText(phrases, d.grammar.knows, d.log)
	if text == "" {
		return ""
	}
	name := grammarName(key)
	if err := d.grammar.setGrammar(name, text); err != nil {
		d.log.Warn("grammar not usable, dictation only", "err", err)
		return ""
	}
	if d.grammars = append(d.grammars, key); len(d.grammars) > maxGrammars {
		d.grammar.dropSearch(grammarName(d.grammars[0]))
		d.grammars = slices.Delete(d.grammars, 0, 1)
	}
	return name
}

// close frees what the C library holds.
func (d *decoder) close() {
	if d.front != nil {
		d.front.close()
	}
	for _, s := range []*searcher{d.grammar, d.dictation} {
		if s != nil {
			s.close()
		}
	}
}

// pool lends a fixed number of decoders. Callers are served first come, first
// served; the pool never grows. A decoder is loaded when it is first lent.
type pool struct {
	lib   *library
	model model
	log   *slog.Logger
	free  chan *decoder // those that are not lent, nil until it is loaded; its size is their number

	mu      sync.Mutex // of giving back
	retired bool
}

func newPool(lib *library, m model, size int, log *slog.Logger) *pool {
	p := &pool{lib: lib, model: m, log: log, free: make(chan *decoder, size)}
	for range size {
		p.free <- nil
	}
	return p
}

// acquire waits for a decoder, or for ctx. The decoder must be released.
func (p *pool) acquire(ctx context.Context) (*decoder, error) {
	select {
	case d := <-p.free:
		if d != nil {
			return d, nil
		}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	d, err := newDecoder(p.lib, p.model, p.log)
	if err != nil {
		p.free <- nil
		return nil, err
	}
	return d, nil
}

// release takes back a decoder of acquire.
func (p *pool) release(d *decoder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired {
		d.close()
		d = nil
	}
	p.free <- d // it has the room
}

// retire frees each decoder as soon as nobody has it, from now on.
func (p *pool) retire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	for range len(p.free) { // nobody puts any in meanwhile
		select {
		case d := <-p.free:
			if d != nil {
				d.close()
			}
			p.free <- nil
		default: // the rest was lent just now
		}
	}
}

// close waits until every decoder was given back, and frees them all.
func (p *pool) close() {
	for range cap(p.free) {
		if d := <-p.free; d != nil {
			d.close()
		}
	}
}
