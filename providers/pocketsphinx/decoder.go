package pocketsphinx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/providers/thread"
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
	model     model
	thread    *thread.Thread // searches
	dictation *searcher
	grammar   *searcher
	low, high *frontEnd // for low voices and for high ones
	grammars  []string  // texts of the compiled grammars, latest last; each is its own search's name

	onset []int16     // the sound of the first frames while they are being gathered; nil: they were
	raw   []cepstrum  // heard, but not searched yet
	known int         // those of raw that are in the mean already
	clean []cepstrum  // raw without its mean
	now   past        // of the utterance that goes on
	open  []*searcher // those with an open C utterance
}

// past holds what was found in an utterance up to a pause. Another one that begins
// with the same sound goes on from there.
type past struct {
	mean   cepstralMean
	level  level
	high   bool       // it is a high voice
	frames []cepstrum // those that were searched, as long as it may be a phrase
	long   bool       // there were more of them
	words  []segment  // of dictation
}

// maxPhraseFrames is the length of an utterance that may be a phrase although
// there is a pause in it, 6 s in frames of 10 ms.
const maxPhraseFrames = 600

// loading lets one decoder be loaded at a time in the whole process: while a front end is made, the C library keeps
// in a variable of its own how far frequencies are to be moved.
var loading sync.Mutex

// newDecoder loads the model twice: with the language model and without it.
// It takes about 0.4 s and cannot be interrupted.
func newDecoder(lib *library, m model, log *slog.Logger) (_ *decoder, err error) {
	loading.Lock()
	defer loading.Unlock()
	from, before := time.Now(), resident()
	d := &decoder{log: log, model: m}
	defer func() {
		if err != nil {
			d.close()
			return
		}
		log.Info("decoder loaded", "took", time.Since(from).Round(time.Millisecond), "memory_mib", max(0, resident()-before)>>20)
	}()
	if d.thread, err = thread.New(); err != nil {
		return nil, err
	}
	if d.dictation, err = newSearcher(lib, d.thread, m.dictationArgs(), latticeShift); err != nil {
		return nil, err
	}
	if d.grammar, err = newSearcher(lib, d.thread, m.grammarArgs(), 0); err != nil {
		return nil, err
	}
	if d.low, err = newFrontEnd(lib, m.features); err != nil {
		return nil, err
	}
	// The library takes the same distance as the last time for no change and then moves nothing, so another one comes first.
	other, err := newFrontEnd(lib, m.warped("1"))
	if err != nil {
		return nil, err
	}
	other.close()
	if d.high, err = newFrontEnd(lib, m.warped(highWarp)); err != nil {
		return nil, err
	}
	return d, nil
}

// resident is the memory of this process in bytes; 0 where Linux does not tell.
func resident() int {
	raw, _ := os.ReadFile("/proc/self/statm")
	var size, pages int
	if _, err := fmt.Sscan(string(raw), &size, &pages); err != nil {
		return 0
	}
	return pages * os.Getpagesize()
}

// begin starts an utterance in which the phrases are likely. One that goes on
// from a past hears only what comes after it; nil is none.
func (d *decoder) begin(phrases []string, from *past) error {
	d.raw, d.known = d.raw[:0], 0
	if from == nil {
		d.onset, d.now = make([]int16, 0, sampleRate), past{mean: newCepstralMean()}
	} else {
		d.onset, d.now = nil, *from
		d.now.frames = slices.Clone(from.frames)
	}
	d.front().begin()
	if err := d.dictation.begin(mainSearch); err != nil {
		return err
	}
	d.open = append(d.open, d.dictation)
	if d.now.long {
		return nil
	}
	if name := d.useGrammar(phrases); name != "" {
		if err := d.grammar.begin(name); err != nil {
			return err
		}
		d.open = append(d.open, d.grammar)
		return d.grammar.feed(d.now.frames, func() bool { return false })
	}
	return nil
}

// front is the front end for the voice that is heard.
func (d *decoder) front() *frontEnd {
	if d.now.high {
		return d.high
	}
	return d.low
}

// hear takes PCM of the utterance.
func (d *decoder) hear(pcm []int16, stop func() bool) error {
	d.raw = d.front().add(d.raw, pcm)
	if d.onset != nil {
		d.onset = append(d.onset, pcm...)
		if len(d.raw)-voiceIn(d.raw) < meanHold {
			return nil
		}
		d.meet()
	}
	return d.search(stop)
}

// meet decides by the first frames what kind of voice it is and what their mean is. Of the
// quiet before the voice it leaves only the end.
func (d *decoder) meet() {
	if d.now.high = pitchOf(d.onset) >= highPitch; d.now.high {
		d.high.begin()
		d.raw = d.high.add(d.raw[:0], d.onset)
	}
	d.onset = nil
	d.raw = slices.Delete(d.raw, 0, max(0, voiceIn(d.raw)-quietBefore))
	d.now.mean.hear(d.raw...)
	d.known = len(d.raw)
}

// search takes the mean off the frames that were heard and searches them.
func (d *decoder) search(stop func() bool) error {
	d.clean = d.clean[:0]
	for i, f := range d.raw {
		if i >= d.known {
			d.now.mean.hear(f)
		}
		d.now.level.hear(f)
		d.clean = d.now.mean.remove(d.clean, f)
	}
	d.raw, d.known = d.raw[:0], 0
	if d.now.long = d.now.long || len(d.now.frames)+len(d.clean) > maxPhraseFrames; !d.now.long {
		d.now.frames = append(d.now.frames, d.clean...)
	}
	for _, s := range d.open {
		if err := s.feed(d.clean, stop); err != nil {
			return err
		}
	}
	return nil
}

// partial returns the text that dictation has found so far.
func (d *decoder) partial() string {
	return strings.TrimSpace(textOf(d.now.words) + " " + d.dictation.best())
}

// end completes the open C utterances.
func (d *decoder) end() {
	for _, s := range d.open {
		s.end()
	}
	d.open = d.open[:0]
}

// finish completes the utterance and gives what was found. Stopped, it found nothing.
func (d *decoder) finish(stop func() bool) (measurement, error) {
	if d.onset != nil {
		d.meet()
	}
	d.raw = d.front().end(d.raw)
	err := d.search(stop)
	matched := slices.Contains(d.open, d.grammar)
	d.end()
	if err != nil || stop() {
		return measurement{}, err
	}
	d.now.words = slices.Concat(d.now.words, d.dictation.segments())
	m := measurement{dictation: d.now.words, motion: motionOf(d.now.frames)}
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
	for _, f := range []*frontEnd{d.low, d.high} {
		if f != nil {
			f.close()
		}
	}
	for _, s := range []*searcher{d.grammar, d.dictation} {
		if s != nil {
			s.close()
		}
	}
	if d.thread != nil {
		d.thread.Close()
	}
}
