package local

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestOddNames: whatever a file is called, it is listed with a title that can be
// said, found by that title, and opened.
func TestOddNames(t *testing.T) {
	names := []string{
		"99 Luftballons.mp3", "24K Magic.mp3", "7.mp3", "01.mp3", "...Baby One More Time.mp3", "AC⁄DC - T.N.T..mp3", "a'b\"c`d$(e).mp3", "two  spaces.mp3", "tab\tand\nline.mp3", "-rf.mp3", "C:\\music\\song.mp3", "%2e%2e.mp3",
		"🎵🎶.mp3", "÷.mp3", "\xc7\xe0\xbb\xa8\xb4\xc9.mp3", "周杰伦/\xff.flac", "ＦＵＬＬ.mp3", "Ｃａｆé.mp3", "E\u0301toile.mp3", strings.Repeat("长", 80) + ".mp3", "song.mp3.mp3", "CAPS.WAV", "空 格/ 前后 .ogg", "مرحبا.opus", "con.mp3", "a;b&c|d.mp3",
	}
	m := folder(t, names...)
	songs, err := m.Songs()
	if err != nil || len(songs) != len(names)-1 { // ...Baby is hidden, as its name begins with a dot
		t.Errorf("%d songs of %d, %v", len(songs), len(names), err)
	}
	for _, s := range songs {
		if s.Title == "" || !utf8.ValidString(s.Title) || strings.ContainsAny(s.Title, "\n\t") {
			t.Errorf("%q is called %q", s.ID, s.Title)
		}
		file, err := m.Open(s.ID)
		if err != nil {
			t.Errorf("%q: %v", s.ID, err)
			continue
		}
		if data, err := io.ReadAll(file); err != nil || string(data) != s.ID {
			t.Errorf("%q holds %q, %v", s.ID, data, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
		if foldTitle(s.Title) == "" {
			continue // nothing of it can be said
		}
		if got, err := m.Find(s.Title); err != nil || got.Title != s.Title {
			t.Errorf("%q is found as %q, %v", s.Title, got.Title, err)
		}
	}
}

// TestWalkThrough: next goes once through all songs and begins again, also when
// the song that plays is taken away meanwhile.
func TestWalkThrough(t *testing.T) {
	m := folder(t, "c.mp3", "a.mp3", "x/b.mp3", "d.wav")
	seen := make(map[string]int)
	id := "a.mp3"
	for range 8 {
		s, err := m.Next(id)
		if err != nil {
			t.Fatal(err)
		}
		seen[s.ID]++
		id = s.ID
	}
	for _, name := range []string{"a.mp3", "x/b.mp3", "c.mp3", "d.wav"} {
		if seen[name] != 2 {
			t.Errorf("%s came %d times in two rounds", name, seen[name])
		}
	}
	if err := os.Remove(filepath.Join(m.dir, "c.mp3")); err != nil {
		t.Fatal(err)
	}
	if s, err := m.Next("c.mp3"); err != nil || s.ID == "c.mp3" {
		t.Errorf("after a song that is gone: %v, %v", s, err)
	}
	if _, err := m.Open("c.mp3"); err == nil {
		t.Error("a song that is gone was opened")
	}
}

// TestVanishes: a song that is deleted, and a folder that is replaced by a link
// to elsewhere, while it plays: what was opened goes on, nothing else is opened.
func TestVanishes(t *testing.T) {
	m := folder(t, "x/a.mp3")
	file, err := m.Open("x/a.mp3")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "a.mp3"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(m.dir, "x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(m.dir, "x")); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(file); err != nil || string(data) != "x/a.mp3" {
		t.Errorf("the song that plays: %q, %v", data, err)
	}
	if leak, err := m.Open("x/a.mp3"); err == nil {
		_ = leak.Close()
		t.Error("a song outside was opened")
	}
	if songs, err := m.Songs(); err != nil || len(songs) != 0 {
		t.Errorf("songs %v, %v", songs, err)
	}
}

// TestThousands: a large folder is listed whole up to its limit, and a name is
// found in it.
func TestThousands(t *testing.T) {
	m := folder(t, "00/青花瓷.mp3", "00/track 00000.mp3")
	one := filepath.Join(m.dir, "00", "track 00000.mp3")
	for i := 1; i < maxSongs+5; i++ {
		dir := filepath.Join(m.dir, fmt.Sprintf("%02d", i%20))
		if i < 20 {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Link(one, filepath.Join(dir, fmt.Sprintf("track %05d.mp3", i))); err != nil {
			t.Fatal(err)
		}
	}
	songs, err := m.Songs()
	if err != nil || len(songs) != maxSongs {
		t.Errorf("%d songs, %v, want %d", len(songs), err, maxSongs)
	}
	for wanted, want := range map[string]string{"青花瓷": "00/青花瓷.mp3", "track 00420": "00/track 00420.mp3"} {
		if got, err := m.Find(wanted); err != nil || got.ID != want {
			t.Errorf("%s: %+v, %v", wanted, got, err)
		}
	}
}
