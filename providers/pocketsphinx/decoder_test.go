package pocketsphinx

import (
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/speechtest"
)

// shared holds the decoders of all tests of this package: each takes half a
// second and 150 MB to load.
var shared = sync.OnceValues(func() (*pool, error) {
	m, err := findModel(defaultModelDir)
	if err != nil {
		return nil, err
	}
	lib, err := openLibrary(libraryFile)
	if err != nil {
		return nil, err
	}
	return newPool(lib, m, min(2, runtime.NumCPU()), slog.New(slog.NewTextHandler(&loadingLog, nil))), nil
})

// loadingLog is what the shared decoders say while they are loaded.
var loadingLog logBuffer

type logBuffer struct {
	mu sync.Mutex
	strings.Builder
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Builder.String()
}

// TestDecoderTellsItsMemory: whoever wonders where the memory went reads it in the log.
func TestDecoderTellsItsMemory(t *testing.T) {
	t.Parallel()
	borrowDecoder(t)
	told := regexp.MustCompile(`msg="decoder loaded" took=\S+ memory_mib=(\d+)`).FindStringSubmatch(loadingLog.String())
	if told == nil {
		t.Fatalf("log: %s", loadingLog.String())
	}
	if mib, err := strconv.Atoi(told[1]); err != nil || mib < 20 || mib > 500 {
		t.Errorf("%d MiB", mib)
	}
}

// borrowDecoder lends a loaded decoder to a test for as long as it runs. A test
// that runs in parallel says so first.
func borrowDecoder(tb testing.TB) *decoder {
	tb.Helper()
	p, err := shared()
	if err != nil {
		tb.Fatalf("these tests need the Debian packages libpocketsphinx3 and pocketsphinx-en-us: %v", err)
	}
	lent, err := p.acquire(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.release(lent) })
	return lent
}

// hearAll sends PCM in the pieces in which it comes and gives what was found. each
// is called after every piece.
func hearAll(tb testing.TB, d *decoder, pcm []int16, phrases []string, each func()) measurement {
	tb.Helper()
	never := func() bool { return false }
	if err := d.begin(phrases, nil); err != nil {
		tb.Fatal(err)
	}
	for piece := range slices.Chunk(pcm, hearSamples) {
		if err := d.hear(piece, never); err != nil {
			tb.Fatal(err)
		}
		each()
	}
	m, err := d.finish(never)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// heardOnce holds what was found in the recordings that several tests ask about, by name: each is searched once.
var heardOnce sync.Map

// measured returns what is found in a recording in a quiet room, with the phrases of phrasesOf. The
// caller has no decoder.
func measured(tb testing.TB, c speechtest.Clip) measurement {
	tb.Helper()
	find, _ := heardOnce.LoadOrStore(c.Name, sync.OnceValue(func() measurement {
		p, err := shared()
		if err != nil {
			tb.Fatalf("these tests need the Debian packages libpocketsphinx3 and pocketsphinx-en-us: %v", err)
		}
		d, err := p.acquire(tb.Context())
		if err != nil {
			tb.Fatal(err)
		}
		defer p.release(d)
		return hearAll(tb, d, inRoom(c.PCM()), phrasesOf(tb), func() {})
	}))
	return find.(func() measurement)()
}

// promptNamed is the clip of one recording.
func promptNamed(tb testing.TB, set func() ([]speechtest.Clip, error), name string) speechtest.Clip {
	tb.Helper()
	for _, c := range clips(tb, set, 1) {
		if c.Name == name {
			return c
		}
	}
	tb.Fatalf("no recording %s", name)
	return speechtest.Clip{}
}

func TestDecoderPartialText(t *testing.T) {
	t.Parallel()
	d := borrowDecoder(t)
	c := promptNamed(t, speechtest.Prompts, "vm-enter-num-to-call")
	var parts []string
	pieces, atFirst := 0, 0
	m := hearAll(t, d, inRoom(c.PCM()), nil, func() {
		pieces++
		text := d.partial()
		if text == "" || len(parts) > 0 && text == parts[len(parts)-1] {
			return
		}
		if parts = append(parts, text); atFirst == 0 {
			atFirst = pieces
		}
	})
	if final := textOf(m.dictation); final != c.Text {
		t.Fatalf("heard %q, want %q", final, c.Text)
	}
	if len(parts) < 3 || atFirst > 3*pieces/4 {
		t.Errorf("parts %q, the first after %d of %d pieces", parts, atFirst, pieces)
	}
	if last := parts[len(parts)-1]; len(strings.Fields(last)) < len(strings.Fields(c.Text))-1 {
		t.Errorf("at the end of the sound only %q was understood", last)
	}
}

func TestDecoderStopLatency(t *testing.T) {
	t.Parallel()
	d := borrowDecoder(t)
	c := promptNamed(t, speechtest.Prompts, "vm-msgsaved")
	fresh := hearAll(t, d, inRoom(c.PCM()), []string{"stop"}, func() {})
	for _, after := range []int{0, 1, 7} {
		asked := 0
		stop := func() bool {
			asked++
			return asked > after
		}
		if err := d.begin([]string{"stop"}, nil); err != nil {
			t.Fatal(err)
		}
		if err := d.hear(inRoom(c.PCM()), stop); err != nil {
			t.Fatal(err)
		}
		// Each searcher asks before every 60 ms; one more question each ends it.
		if asked > after+2 {
			t.Errorf("stopped after %d pieces, but %d more were begun", after, asked-after-1)
		}
		m, err := d.finish(stop)
		if err != nil || m.dictation != nil || m.command != nil {
			t.Errorf("stopped, yet found %+v, %v", m, err)
		}
	}
	again := hearAll(t, d, inRoom(c.PCM()), []string{"stop"}, func() {})
	if !slices.Equal(again.dictation, fresh.dictation) || !slices.Equal(again.command, fresh.command) {
		t.Errorf("after what was broken off: %q, fresh: %q", textOf(again.dictation), textOf(fresh.dictation))
	}
}

func TestGrammarWithOddPhrases(t *testing.T) {
	t.Parallel()
	d := borrowDecoder(t)
	odd := []string{
		"", "打开灯", "turn (on", "stop; public <x> = y", "<number", "\x00\xff", "zzyzx", "[]", strings.Repeat("go ", 99),
		"self.audio_speaker.set_volume", "<number> | [a] hundred", "Goodbye!", "goodbye", "a|b|c", "'", "don't (say [it]|go)",
	}
	c := promptNamed(t, speechtest.Commands, "goodbye")
	m := hearAll(t, d, inRoom(c.PCM()), odd, func() {})
	if v := m.judge("zh"); v.text != "goodbye" || !v.grammar || v.rejected {
		t.Errorf("heard %+v", v)
	}
	m = hearAll(t, d, inRoom(c.PCM()), []string{"打开灯", "(((", "zzyzx"}, func() {})
	if m.command != nil {
		t.Errorf("phrases of which none can be said gave %q", textOf(m.command))
	}
	if len(m.dictation) == 0 {
		t.Error("they kept dictation from hearing")
	}
}

func TestGrammarsLimited(t *testing.T) {
	t.Parallel()
	d := borrowDecoder(t)
	of := func(i int) []string { return []string{fmt.Sprintf("number %d", i)} }
	for i := range 2 * maxGrammars {
		if name := d.useGrammar(of(i)); name == "" {
			t.Fatalf("grammar %d refused", i)
		}
		d.useGrammar(of(0)) // in use all the time, so never the one that goes
		if len(d.grammars) > maxGrammars {
			t.Fatalf("%d grammars kept", len(d.grammars))
		}
	}
	if d.grammars[len(d.grammars)-1] != "number 0" {
		t.Errorf("kept %q", d.grammars)
	}
	for _, i := range []int{0, 1, 2*maxGrammars - 1} { // the second one was dropped and comes back
		if err := d.begin(of(i), nil); err != nil {
			t.Errorf("grammar %d: %v", i, err)
		}
		if !slices.Contains(d.open, d.grammar) {
			t.Errorf("grammar %d is not listened for", i)
		}
		d.end()
	}
}

// TestRejection checks a small part of the README's table of rejections: what a
// user hears back depends on it.
func TestRejection(t *testing.T) {
	t.Parallel()
	for _, set := range []struct {
		name          string
		clips         func() ([]speechtest.Clip, error)
		nth, few      int
		plain, hinted int // how many may be (English) or must be (others) rejected
		english       bool
	}{
		{name: "prompts", clips: speechtest.Prompts, nth: 18, few: 1, english: true},
		{name: "other speakers", clips: speechtest.Others, nth: 4, few: 1, english: true},
		{name: "mandarin", clips: speechtest.Mandarin, nth: 1, few: 3, plain: 1, hinted: 3},
	} {
		var plain, hinted int
		for _, c := range sample(t, set.clips, set.nth, set.few) {
			m := measured(t, c)
			if set.english {
				m.command = nil
			}
			v, w := m.judge(""), m.judge("zh")
			if v.rejected {
				plain++
			}
			if w.rejected {
				hinted++
			}
			if v.rejected && !w.rejected {
				t.Errorf("%s: rejected only where English is expected", c.Name)
			}
			if !set.english && v.grammar {
				t.Errorf("%s: Chinese heard as the command %q", c.Name, v.text)
			}
			t.Logf("%s: doubt %.1f, rejected %v, with the hint %v: %q", c.Name, v.doubt, v.rejected, w.rejected, v.text)
		}
		if set.english && (plain > set.plain || hinted > set.hinted) || !set.english && (plain < set.plain || hinted < set.hinted) {
			t.Errorf("%s: %d rejected, %d with the hint; the limits are %d and %d", set.name, plain, hinted, set.plain, set.hinted)
		}
	}
}

// FuzzGrammar shows that whatever phrase is taken makes a grammar that
// the library compiles: a refused one would leave the request without commands.
func FuzzGrammar(f *testing.F) {
	d := borrowDecoder(f)
	for _, s := range []string{
		"stop", "set the volume to <number>", "(a | b) [c]", "[a] (b | (c [d]))", "<number> <number>", "30%", "it's",
		"public grammar", "null", "void", "<NULL>", "a (b|c|d|e) [f [g [h]]]", "turn on\nturn off", "self.light.set_rgb",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, phrase string) {
		text := grammarText([]string{phrase}, d.grammar.knows, d.log)
		if text == "" {
			return
		}
		if err := d.grammar.setGrammar("fuzz", text); err != nil {
			t.Fatalf("%q: %v\n%s", phrase, err, text)
		}
		if err := d.grammar.begin("fuzz"); err != nil {
			t.Fatalf("%q: %v", phrase, err)
		}
		d.grammar.end()
	})
}

// FuzzKnows asks the library's dictionary for strange words: it must answer, and
// only yes where the word is written as a phrase may write it.
func FuzzKnows(f *testing.F) {
	d := borrowDecoder(f)
	for _, s := range []string{"stop", "", "don't", "the(2)", "<s>", "</s>", "<sil>", "[NOISE]", "灯", "\x00", "a b", strings.Repeat("a", 5000)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, word string) {
		known := d.grammar.knows(word)
		if got := d.grammar.knows(word); got != known {
			t.Errorf("%q: first %v, then %v", word, known, got)
		}
		if text, err := phraseToJSGF(word, d.grammar.knows); err == nil && text == word && !strings.ContainsAny(word, " <") && !known {
			t.Errorf("%q became a phrase, but is not known", word)
		}
	})
}
