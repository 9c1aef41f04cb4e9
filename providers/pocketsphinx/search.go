package pocketsphinx

import (
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"xiaozhi/providers/thread"
)

// feedFrames is the number of frames (10 ms each) in one call of the library:
// short enough for a cancel to be noticed in time.
const feedFrames = 6

// segment is one word of a result.
type segment struct {
	word      string // as in the dictionary: may be a filler, or end in (2)
	frames    int
	acoustic  int32 // log score against the best sound of each frame, 0 is best
	language  int32 // log score of the word after those before it
	posterior int32 // log probability against the other words heard there
}

// searcher is one C decoder with its loaded dictionary. It is for one goroutine
// at a time; after end it is clean for the next utterance.
type searcher struct {
	lib    *library
	thread *thread.Thread // of its decoder
	cfg    handle
	ps     handle
	shift  int // by how many bits its acoustic scores are too large
}

// latticeShift is the shift of results that come from a lattice (bestpath).
const latticeShift = 10

func newSearcher(lib *library, on *thread.Thread, args []string, shift int) (*searcher, error) {
	cfg, err := lib.config(args)
	if err != nil {
		return nil, err
	}
	ps := handle(on.Call(lib.search.open, nil, uintptr(cfg)))
	if ps == 0 {
		lib.settings.free(cfg)
		return nil, fmt.Errorf("pocketsphinx could not load its model: %s", strings.Join(args, " "))
	}
	return &searcher{lib: lib, thread: on, cfg: cfg, ps: ps, shift: shift}, nil
}

// begin starts an utterance in the named search.
func (s *searcher) begin(search string) error {
	if s.lib.search.setSearch(s.ps, search) < 0 {
		return fmt.Errorf("pocketsphinx has no search %q", search)
	}
	if s.lib.search.begin(s.ps) < 0 {
		return fmt.Errorf("pocketsphinx did not begin an utterance in %q", search)
	}
	return nil
}

// feed searches frames whose mean was removed. It calls stop before each call
// of the library and ends early when that is true.
func (s *searcher) feed(frames []cepstrum, stop func() bool) error {
	var pinned runtime.Pinner
	for len(frames) > 0 && !stop() {
		n := min(feedFrames, len(frames))
		rows := rowsOf(frames[:n])
		pinned.Pin(unsafe.SliceData(rows))
		failed := int32(s.thread.Call(s.lib.search.process, nil, uintptr(s.ps), uintptr(unsafe.Pointer(unsafe.SliceData(rows))), uintptr(n), 0, 0)) < 0
		pinned.Unpin()
		if failed {
			return fmt.Errorf("pocketsphinx failed in %d frames", n)
		}
		frames = frames[n:]
	}
	return nil
}

// end completes the utterance.
func (s *searcher) end() { s.thread.Call(s.lib.search.end, nil, uintptr(s.ps)) }

// best returns the text found so far. It may be called before end.
func (s *searcher) best() string {
	var score int32
	return cleanText(s.lib.search.best(s.ps, &score))
}

// segments lists the words of the result, fillers included.
func (s *searcher) segments() []segment {
	var out []segment
	for seg := s.lib.word.first(s.ps); seg != 0; seg = s.lib.word.next(seg) {
		var first, last, acoustic, language, backoff int32
		s.lib.word.frames(seg, &first, &last)
		posterior := s.lib.word.score(seg, &acoustic, &language, &backoff)
		out = append(out, segment{s.lib.word.text(seg), int(last - first + 1), acoustic >> s.shift, language, posterior})
	}
	return out
}

// knows reports whether the dictionary has the word.
func (s *searcher) knows(word string) bool {
	text := s.lib.search.lookup(s.ps, word)
	if text == 0 {
		return false
	}
	s.lib.search.freeText(text)
	return true
}

// setGrammar adds or replaces the named search by a JSGF grammar.
func (s *searcher) setGrammar(name, jsgf string) error {
	if s.lib.search.setGrammar(s.ps, name, jsgf) < 0 {
		return fmt.Errorf("pocketsphinx refused the grammar %q", name)
	}
	return nil
}

// dropSearch removes the named search.
func (s *searcher) dropSearch(name string) { s.lib.search.unsetSearch(s.ps, name) }

func (s *searcher) close() {
	s.lib.search.free(s.ps)
	s.lib.settings.free(s.cfg)
}

// isFiller reports whether a word of a result is silence or noise.
func isFiller(word string) bool {
	return word == "" || strings.ContainsAny(word[:1], "<[+(") || word == "SIL"
}

// isSilence reports whether a filler is silence, the beginning or the end.
func isSilence(word string) bool { return word == "" || word[0] == '<' || word == "SIL" }

// cleanText returns the words of a hypothesis without fillers and without the
// numbers of second pronunciations ("the(2)" is "the"), and joins what is one word.
func cleanText(hyp string) string {
	var words []string
	for w := range strings.FieldsSeq(hyp) {
		if !isFiller(w) {
			w, _, _ = strings.Cut(w, "(")
			words = append(words, strings.ToLower(w))
		}
	}
	return strings.Join(join(words), " ")
}

// textOf returns the words of a result without fillers.
func textOf(segments []segment) string {
	var words []string
	for _, s := range segments {
		words = append(words, s.word)
	}
	return cleanText(strings.Join(words, " "))
}
