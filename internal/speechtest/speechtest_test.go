package speechtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/testall"
)

func TestClipsComplete(t *testing.T) {
	testall.Arithmetic(t)
	for _, set := range []struct {
		name   string
		clips  func() ([]Clip, error)
		atMin  int
		speech bool
	}{
		{"prompts", Prompts, 40, true},
		{"commands", Commands, 30, true},
		{"others", Others, 5, true},
		{"mandarin", Mandarin, 3, true},
		{"music", Music, 5, false},
		{"noise", Noise, 5, false},
	} {
		t.Run(set.name, func(t *testing.T) {
			clips, err := set.clips()
			if err != nil {
				t.Fatal(err)
			}
			if len(clips) < set.atMin {
				t.Errorf("%d clips, want at least %d", len(clips), set.atMin)
			}
			seen := map[string]bool{}
			for _, c := range clips {
				pcm := c.PCM()
				if len(pcm) < Rate/5 || c.Duration() != time.Duration(len(pcm))*time.Second/Rate {
					t.Errorf("%s: %d samples, %v", c.Name, len(pcm), c.Duration())
				}
				if loud := slices.Max(pcm) > 1000; !loud && c.Name != "silence" && c.Name != "alsa-noise" {
					t.Errorf("%s: loudest sample %d", c.Name, slices.Max(pcm))
				}
				if (c.Text != "") != set.speech || (c.Lang != "") != set.speech {
					t.Errorf("%s: text %q, language %q", c.Name, c.Text, c.Lang)
				}
				if seen[c.Name] {
					t.Errorf("%s is there twice", c.Name)
				}
				seen[c.Name] = true
			}
		})
	}
}

func TestMissingPackageNamed(t *testing.T) {
	_, err := prompt(Clip{Name: "no-such-prompt"})
	if err == nil || !containsAll(err.Error(), "asterisk-core-sounds-en-g722", "no-such-prompt") {
		t.Errorf("error %v, want the package and the file", err)
	}
}

func TestWER(t *testing.T) {
	for _, c := range []struct {
		ref, hyp      string
		errors, words int
	}{
		{"", "", 0, 0},
		{"", "hello", 1, 0},
		{"turn it on", "", 3, 3},
		{"turn it on", "Turn it on.", 0, 3},
		{"turn it on", "turn on", 1, 3},
		{"turn it on", "please turn it on", 1, 3},
		{"turn it on", "turn that off", 2, 3},
		{"i'm sorry", "im sorry", 1, 2},
		{"a b c d", "b c d e", 2, 4},
	} {
		if e, w := WER(c.ref, c.hyp); e != c.errors || w != c.words {
			t.Errorf("WER(%q, %q) = %d, %d; want %d, %d", c.ref, c.hyp, e, w, c.errors, c.words)
		}
	}
}

func TestWAVInvalid(t *testing.T) {
	good := slices.Concat([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\x3e\x00\x00\x00\x7d\x00\x00\x02\x00\x10\x00"),
		[]byte("data\x04\x00\x00\x00\x01\x00\xff\xff"))
	pcm, err := readWAV(good, Rate)
	if err != nil || !slices.Equal(pcm, []int16{1, -1}) {
		t.Fatalf("samples %v, error %v", pcm, err)
	}
	stereo := slices.Clone(good)
	stereo[22] = 2
	for name, broken := range map[string][]byte{
		"empty": nil, "no riff": []byte("OggS00000000"), "no data": good[:36], "stereo": stereo, "cut": good[:40],
	} {
		if _, err := readWAV(broken, Rate); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := readWAV(good, 48000); err == nil {
		t.Error("wrong rate: no error")
	}
}

func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	wav, err := mandarin.ReadFile("zh/nihao.wav")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "b.wav"), wav, 0o600); err != nil {
		t.Fatal(err)
	}
	clips, err := Folder(dir)
	if err != nil || len(clips) != 1 || clips[0].Name != "b.wav" || len(clips[0].PCM()) < Rate/5 {
		t.Fatalf("%d clips, %v", len(clips), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.wav"), []byte("no sound"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(dir); err == nil || !containsAll(err.Error(), "a.wav") {
		t.Errorf("error %v, want the file", err)
	}
}
