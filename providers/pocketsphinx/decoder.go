package pocketsphinx

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"slices"
	"strings"
)

// Names of searches inside the C decoders.
const (
	dictationSearch = "_default"
	alignSearch     = "align"
)

// maxGrammars is how many grammars a decoder keeps; the one unused for longest goes.
const maxGrammars = 8

// decoder recognises one utterance at a time: dictation while the sound comes
// in, then the grammar of the phrases and the judgement. It is for one
// goroutine at a time; the pool lends it.
type decoder struct {
	log       *slog.Logger
	dictation *searcher
	grammar   *searcher
	front     *frontEnd
	grammars  []string // texts of the compiled grammars, latest last; each is its own search's name

	raw     []cepstrum // the utterance so far
	clean   []cepstrum // what was fed to dictation, reused
	mean    *cepstralMean
	fed     int // of raw
	running bool
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
	if d.dictation, err = newSearcher(lib, m.dictationArgs()); err != nil {
		return nil, err
	}
	if d.grammar, err = newSearcher(lib, m.grammarArgs()); err != nil {
		return nil, err
	}
	if d.front, err = newFrontEnd(lib, d.grammar.cfg); err != nil {
		return nil, err
	}
	return d, nil
}

// begin starts an utterance.
func (d *decoder) begin() error {
	d.raw, d.fed, d.mean = d.raw[:0], 0, newCepstralMean()
	d.front.begin()
	err := d.dictation.begin(dictationSearch)
	d.running = err == nil
	return err
}

// hear takes PCM of the utterance.
func (d *decoder) hear(pcm []int16, stop func() bool) error {
	d.raw = d.front.add(d.raw, pcm)
	if len(d.raw) < meanHold {
		return nil
	}
	return d.dictate(stop)
}

// dictate feeds the frames that dictation has not had yet.
func (d *decoder) dictate(stop func() bool) error {
	d.clean = d.clean[:0]
	if d.fed == 0 {
		d.mean.hear(d.raw...)
		for _, f := range d.raw {
			d.clean = d.mean.remove(d.clean, f)
		}
	} else {
		for _, f := range d.raw[d.fed:] {
			d.mean.hear(f)
			d.clean = d.mean.remove(d.clean, f)
		}
	}
	d.fed = len(d.raw)
	return d.dictation.feed(d.clean, stop)
}

// partial is what dictation understands so far.
func (d *decoder) partial() string { return d.dictation.best() }

// abandon ends an utterance whose result nobody wants.
func (d *decoder) abandon() {
	if d.running {
		d.dictation.end()
		d.running = false
	}
}

// finish completes the utterance and measures it.
func (d *decoder) finish(phrases []string, stop func() bool) (measurement, error) {
	d.raw = d.front.end(d.raw)
	err := d.dictate(stop)
	d.abandon()
	if err != nil || stop() {
		return measurement{}, err
	}
	m := measurement{}
	m.dictation = d.dictation.segments()
	words := strings.Fields(textOf(m.dictation))
	if len(words) == 0 && len(phrases) == 0 {
		return m, nil
	}
	// The utterance is whole now, so its own mean is known.
	d.clean = d.clean[:0]
	for _, f := range d.raw {
		d.clean = d.mean.remove(d.clean, f)
	}
	if len(words) > 0 {
		if err := d.grammar.setGrammar(alignSearch, linearGrammar(words)); err == nil {
			m.aligned, err = d.grammar.once(alignSearch, d.clean, stop)
			if err != nil {
				return m, err
			}
		}
	}
	if name := d.useGrammar(phrases); name != "" {
		m.command, err = d.grammar.once(name, d.clean, stop)
	}
	return m, err
}

// grammarName is the name of the search for a grammar.
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
		d.grammar.lib.unsetSearch(d.grammar.ps, grammarName(d.grammars[0]))
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
