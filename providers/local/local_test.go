package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/providers"
)

var _ providers.TTS = (*Synthesizer)(nil)

func needEspeak(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("espeak-ng")
	if err != nil {
		tb.Fatal("these tests need the Debian package espeak-ng")
	}
	return path
}

func testSynthesizer(tb testing.TB, o Options) *Synthesizer {
	tb.Helper()
	s, err := New(tb.Context(), o)
	if err != nil {
		tb.Fatal(err)
	}
	if s.english == nil || s.chinese == nil {
		tb.Fatalf("these tests need the Debian packages flite and espeak-ng; found %q", s.Found())
	}
	return s
}

// collect synthesises one text; all of it must be at one rate.
func collect(ctx context.Context, s *Synthesizer, text, lang string) (pcm []int16, rate int, err error) {
	for snd, e := range s.Synthesize(ctx, providers.TTSRequest{Text: text, Language: lang}) {
		if e != nil {
			return pcm, rate, e
		}
		if rate != 0 && rate != snd.Rate {
			return pcm, rate, fmt.Errorf("rate changed from %d to %d", rate, snd.Rate)
		}
		rate = snd.Rate
		pcm = append(pcm, snd.PCM...)
	}
	return pcm, rate, nil
}

func loudness(pcm []int16) (rms float64, peak int) {
	sum := 0.0
	for _, x := range pcm {
		sum += float64(x) * float64(x)
		peak = max(peak, int(math.Abs(float64(x))))
	}
	return 20 * math.Log10(math.Sqrt(sum/float64(len(pcm)))/32768), peak
}

func leadingSilence(pcm []int16, rate int) time.Duration {
	i := slices.IndexFunc(pcm, func(x int16) bool { return x >= quiet || x <= -quiet })
	return time.Duration(max(i, 0)) * time.Second / time.Duration(rate)
}

func TestSpeaks(t *testing.T) {
	s := testSynthesizer(t, Options{})
	for _, tc := range []struct {
		name, text, lang string
		rate             int
		least, most      float64 // seconds
	}{
		{"english", "Hello there, how are you doing today?", en, 16000, 1.2, 4},
		{"short", "OK.", en, 16000, 0.3, 1.5},
		{"chinese", "你好，今天天气怎么样？", zh, 22050, 1.2, 4},
		{"mixed", "请打开 WiFi 和音乐。", zh, 22050, 1, 4},
		{"two sentences", "I am here. You are there.", en, 16000, 1, 4},
		{"long", strings.Repeat("今天天气很好，我们出去玩。", 10), zh, 22050, 15, 50},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pcm, rate, err := collect(t.Context(), s, tc.text, tc.lang)
			if err != nil {
				t.Fatal(err)
			}
			seconds := float64(len(pcm)) / float64(rate)
			rms, peak := loudness(pcm)
			t.Logf("%.2f s, %.1f dBFS, peak %d", seconds, rms, peak)
			if rate != tc.rate || seconds < tc.least || seconds > tc.most {
				t.Errorf("%.2f s at %d Hz, want %v to %v s at %d Hz", seconds, rate, tc.least, tc.most, tc.rate)
			}
			if rms < -27 || rms > -15 || peak > ceiling {
				t.Errorf("%.1f dBFS, peak %d", rms, peak)
			}
			if lead := leadingSilence(pcm, rate); lead > 60*time.Millisecond {
				t.Errorf("%v of silence first", lead)
			}
			slices.Reverse(pcm)
			if tail := leadingSilence(pcm, rate); tail > 100*time.Millisecond {
				t.Errorf("%v of silence last", tail)
			}
		})
	}
}

func TestNothingToSay(t *testing.T) {
	s := testSynthesizer(t, Options{})
	for _, text := range []string{"", "  ", "...", "。！？", "😀", "--"} {
		if pcm, _, err := collect(t.Context(), s, text, zh); err != nil || len(pcm) != 0 {
			t.Errorf("%q: %d samples, %v", text, len(pcm), err)
		}
	}
}

func TestEveryEnglishVoice(t *testing.T) {
	for voice, traits := range fliteVoices {
		s := testSynthesizer(t, Options{EnglishVoice: voice})
		pcm, rate, err := collect(t.Context(), s, "Hello there, my friend. How are you?", en)
		if err != nil || rate != traits.rate {
			t.Fatalf("%s: %d Hz, %v", voice, rate, err)
		}
		if rms, peak := loudness(pcm); rms < -24 || rms > -17 || peak > ceiling {
			t.Errorf("%s: %.1f dBFS, peak %d", voice, rms, peak)
		}
	}
}

func TestWaysToSpeakEnglish(t *testing.T) {
	needEspeak(t)
	flite, err := exec.LookPath("flite")
	if err != nil {
		t.Fatal("this test needs the Debian package flite")
	}
	for want, path := range map[int]string{16000: flite, 22050: "no-such-program"} {
		s := testSynthesizer(t, Options{FlitePath: path})
		pcm, rate, err := collect(t.Context(), s, "Good morning.", en)
		if err != nil || rate != want || len(pcm) < rate/3 {
			t.Errorf("%s: %d samples at %d Hz, %v", path, len(pcm), rate, err)
		}
	}
}

func kindOf(t *testing.T, err error) providers.Kind {
	t.Helper()
	e, ok := errors.AsType[*providers.Error](err)
	if !ok {
		t.Fatalf("%v is no provider error", err)
	}
	if e.Provider != "local" || e.Op != "synthesize" {
		t.Errorf("error of %s, %s", e.Provider, e.Op)
	}
	return e.Kind
}

// TestEspeakThatHangs is about the start: a program that never prints its version
// must not hold it up.
func TestEspeakThatHangs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "espeak-ng")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	s, err := New(ctx, Options{EspeakPath: file, FlitePath: "no-such-program"})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Found()) != 0 {
		t.Errorf("found %q", s.Found())
	}
}

func TestMissingEngines(t *testing.T) {
	s, err := New(t.Context(), Options{EspeakPath: "no-such-program", FlitePath: "no-such-program"})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Found()) != 0 {
		t.Errorf("found %q", s.Found())
	}
	for text, pkg := range map[string]string{"你好": "espeak-ng", "Hello.": "flite", "Hello 你好": "espeak-ng"} {
		_, _, err := collect(t.Context(), s, text, zh)
		if err == nil || kindOf(t, err) != providers.Unavailable || !strings.Contains(err.Error(), pkg) && text != "Hello 你好" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestRegions(t *testing.T) {
	s := testSynthesizer(t, Options{})
	for lang, words := range map[string]string{"zh-TW": "你好", "yue": "你好", "en-GB": "hello", "": "hello"} {
		if pcm, _, err := collect(t.Context(), s, words, lang); err != nil || len(pcm) == 0 {
			t.Errorf("%s in %q: %d samples, %v", words, lang, len(pcm), err)
		}
	}
}

func TestRefused(t *testing.T) {
	s := testSynthesizer(t, Options{})
	for _, text := range []string{strings.Repeat("好", MaxChars+1), "こんにちは", "Привет"} {
		if _, _, err := collect(t.Context(), s, text, zh); err == nil || kindOf(t, err) != providers.BadRequest {
			t.Errorf("%.10s: %v", text, err)
		}
	}
	for lang, words := range map[string]string{"ja": "明日", "de": "Guten Tag", "ru": "Привет", "zh": "こんにちは"} {
		if _, _, err := collect(t.Context(), s, words, lang); !providers.LacksLanguage(err) || kindOf(t, err) != providers.BadRequest {
			t.Errorf("%s in %s: %v", words, lang, err)
		}
	}
	if _, _, err := collect(t.Context(), s, strings.Repeat("好", MaxChars+1), zh); providers.LacksLanguage(err) {
		t.Errorf("a text that is too long: %v", err)
	}
	for _, o := range []Options{{EnglishVoice: "../x"}, {ChineseSpeed: 9}} {
		if _, err := New(t.Context(), o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestCancelled(t *testing.T) {
	s := testSynthesizer(t, Options{Log: slog.New(slog.DiscardHandler)})
	for _, tc := range []struct{ text, lang string }{
		{strings.Repeat("This is a long sentence about nothing. ", 40), en},
		{strings.Repeat("今天天气很好，我们出去玩。", 100), zh},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		pieces, last := 0, error(nil)
		for snd, err := range s.Synthesize(ctx, providers.TTSRequest{Text: tc.text, Language: tc.lang}) {
			last = err
			if err == nil && len(snd.PCM) > 0 {
				pieces++
				cancel()
			}
		}
		cancel()
		if pieces != 1 || last != context.Canceled { //nolint:errorlint // it must come unchanged
			t.Errorf("%s: %d pieces, %v", tc.lang, pieces, last)
		}
		if _, _, err := collect(ctx, s, tc.text, tc.lang); err != context.Canceled { //nolint:errorlint // as above
			t.Errorf("%s: ended before: %v", tc.lang, err)
		}
		for range s.Synthesize(t.Context(), providers.TTSRequest{Text: tc.text, Language: tc.lang}) {
			break
		}
		if pcm, _, err := collect(t.Context(), s, "OK 好", tc.lang); err != nil || len(pcm) == 0 {
			t.Errorf("%s: after a cut: %d samples, %v", tc.lang, len(pcm), err)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	a, b := testSynthesizer(t, Options{}), testSynthesizer(t, Options{EnglishVoice: "slt"})
	texts := []string{"Hello there, this is number one.", "你好，我是小智。", "打开 WiFi 和 LED 灯。", "It is 8:30 now."}
	want := map[string]int{} // about: flite mixes noise into its sound, and what is cut off as silence differs
	for _, text := range texts {
		pcm, _, err := collect(t.Context(), a, text, zh)
		if err != nil {
			t.Fatal(err)
		}
		want[text] = len(pcm)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			s, text := a, texts[i%len(texts)]
			if i%5 == 4 {
				s = b
			}
			pcm, _, err := collect(t.Context(), s, text, zh)
			if err != nil || len(pcm) == 0 || s == a && math.Abs(float64(len(pcm)-want[text])) > 0.05*float64(want[text]) {
				t.Errorf("%s: %d samples, want %d, %v", text, len(pcm), want[text], err)
			}
		})
	}
	wg.Wait()
}

// An engine whose child keeps a pipe open for a while after all of its sound
// was read has not failed.
func TestSlowPipeIsNoFailure(t *testing.T) {
	path, _ := fakeEspeak(t, needEspeak(t)+` "$@"; sleep 1 >/dev/null & exit 0`)
	pcm, _, err := collect(t.Context(), testSynthesizer(t, Options{EspeakPath: path}), "你好", zh)
	if err != nil || len(pcm) == 0 {
		t.Errorf("%d samples, %v", len(pcm), err)
	}
}

// fakeEspeak is a program that notes its arguments and its text, then does what
// the script says.
func fakeEspeak(t *testing.T, script string) (path, notes string) {
	t.Helper()
	dir := t.TempDir()
	path, notes = filepath.Join(dir, "espeak-ng"), filepath.Join(dir, "notes")
	body := "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'eSpeak NG 1.51'; exit; fi\necho \"$*\" >>" + notes + "\n" + script + "\n"
	if err := os.WriteFile(path, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	return path, notes
}

func TestOnlyThePinyinVoice(t *testing.T) {
	path, notes := fakeEspeak(t, "exec "+needEspeak(t)+` "$@"`)
	s := testSynthesizer(t, Options{EspeakPath: path})
	for _, lang := range []string{zh, en, ""} {
		for _, text := range []string{"你好", "8:30", "打开WiFi", "I like 重庆 very much indeed", "2026年", "重慶", "OK，好"} {
			if _, _, err := collect(t.Context(), s, text, lang); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	b, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) < 18 {
		t.Errorf("%d runs", len(lines))
	}
	for _, line := range lines {
		if line != "-v cmn-latn-pinyin -s 220 -b 1 --stdin --stdout" {
			t.Errorf("ran with %q", line)
		}
	}
}

func TestBrokenPrograms(t *testing.T) {
	for name, script := range map[string]string{
		"fails": "echo no voice >&2; exit 3", "silent": "exit 0", "no wav": "echo hello hello hello hello",
		"killed": "kill -9 $$",
	} {
		path, _ := fakeEspeak(t, script)
		s := testSynthesizer(t, Options{EspeakPath: path})
		_, _, err := collect(t.Context(), s, "你好", zh)
		if err == nil || kindOf(t, err) != providers.Unavailable || !strings.Contains(err.Error(), "espeak-ng") {
			t.Errorf("%s: %v", name, err)
		}
		if name == "fails" && !strings.Contains(err.Error(), "no voice") {
			t.Errorf("the program's own words are lost: %v", err)
		}
	}
}

// A hanging program and its child are killed with the context.
func TestHangingProgramIsKilled(t *testing.T) {
	path, notes := fakeEspeak(t, "sleep 300 & echo $! >\"$0.child\"; wait")
	s := testSynthesizer(t, Options{EspeakPath: path})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() {
		_, _, err := collect(ctx, s, "你好", zh)
		done <- err
	}()
	var child []byte
	for len(child) == 0 { // ends with the test's time limit
		time.Sleep(5 * time.Millisecond)
		child, _ = os.ReadFile(path + ".child") // it is not there yet
	}
	cancel()
	if err := <-done; err != context.Canceled { //nolint:errorlint // it must come unchanged
		t.Error(err)
	}
	for range 4000 { // 20 s; it is init's to reap
		stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(child)) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Errorf("child %s lives on (%s)", child, notes)
}

// benchmark times the whole of a sentence, and its first sound as first-ms.
func benchmark(b *testing.B, text, lang string) { //nolint:thelper // it is the benchmark itself
	s := testSynthesizer(b, Options{})
	if _, _, err := collect(b.Context(), s, text, lang); err != nil { // loads what is loaded once
		b.Fatal(err)
	}
	b.ReportAllocs()
	var first time.Duration
	n := 0
	for b.Loop() {
		start, heard := time.Now(), false
		for _, err := range s.Synthesize(b.Context(), providers.TTSRequest{Text: text, Language: lang}) {
			if err != nil {
				b.Fatal(err)
			}
			if !heard {
				heard = true
				first += time.Since(start)
				n++
			}
		}
	}
	b.ReportMetric(float64(first.Microseconds())/1000/float64(n), "first-ms")
}

func BenchmarkEnglish(b *testing.B) {
	benchmark(b, "Hello there, my friend. How are you doing today?", en)
}

func BenchmarkChinese(b *testing.B) {
	benchmark(b, "你好，今天天气怎么样？我们一起去吃饭吧。", zh)
}

func BenchmarkMixed(b *testing.B) { benchmark(b, "请打开 WiFi 和音乐。", zh) }

func BenchmarkPlan(b *testing.B) {
	f := testFront(b)
	b.ReportAllocs()
	for b.Loop() {
		f.plan("今天是2026年8月8日，8:30，气温23℃，请打开 WiFi。", zh)
	}
}
