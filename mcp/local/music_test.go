package local

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// folder is a music folder with these files, each with its name in it. The
// choice among several is always the first.
func folder(t *testing.T, names ...string) *Music {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "music")
	for _, name := range names {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := NewMusic(dir)
	m.pick = func(int) int { return 0 }
	return m
}

func TestFind(t *testing.T) {
	m := folder(t, "周杰伦/青花瓷.mp3", "周杰伦/01 - 七里香.flac", "邓丽君 - 月亮代表我的心.mp3", "Beatles/Hey Jude.mp3", "Beatles/03. Let_It_Be.ogg", "Summer (live).opus", "夏天.wav", "cover.jpg", "notes.txt", "1989.mp3", "晴.mp3")
	for wanted, want := range map[string]string{
		"青花瓷": "青花瓷", "七里香": "七里香", "周杰伦的青花瓷": "青花瓷", "月亮代表我的心": "邓丽君 - 月亮代表我的心", "月亮代表": "邓丽君 - 月亮代表我的心", "邓丽君": "邓丽君 - 月亮代表我的心", "月亮代表谁的心": "邓丽君 - 月亮代表我的心",
		"hey jude": "Hey Jude", "HEY, JUDE!": "Hey Jude", "heyjude": "Hey Jude", "hey dude": "Hey Jude", "let it be": "Let It Be", "Let it be by the Beatles": "Let It Be", "beatles let it be": "Let It Be", "beatles": "Let It Be",
		"summer": "Summer (live)", "夏天": "夏天", "《夏天》": "夏天", "1989": "1989", "晴": "晴", "周杰伦": "七里香",
	} {
		if got, err := m.Find(wanted); err != nil || got.Title != want {
			t.Errorf("%s: %q, %v, want %q", wanted, got.Title, err, want)
		}
	}
	for _, wanted := range []string{"小苹果", "yesterday", "notes", "cover", "x"} {
		if got, err := m.Find(wanted); !errors.Is(err, ErrNoSong) {
			t.Errorf("%s: %q, %v, want none", wanted, got.Title, err)
		}
	}
	if got, err := m.Find("  "); err != nil || got.Title == "" {
		t.Errorf("any song: %v, %v", got, err)
	}
}

func TestSongs(t *testing.T) {
	m := folder(t, "b.mp3", "a.MP3", "x/y/c.wav", ".hidden.mp3", ".git/d.mp3", "a/b/c/d/e/f/deep.mp3", "a/b/c/d/e/f/g/deeper.mp3", "e.txt")
	songs, err := m.Songs()
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range songs {
		ids = append(ids, s.ID)
	}
	if got := strings.Join(ids, " "); got != "a.MP3 a/b/c/d/e/f/deep.mp3 b.mp3 x/y/c.wav" {
		t.Errorf("songs %s", got)
	}
	for id, want := range map[string]string{"a.MP3": "a/b/c/d/e/f/deep.mp3", "x/y/c.wav": "a.MP3", "gone.mp3": "a.MP3"} {
		if next, err := m.Next(id); err != nil || next.ID != want {
			t.Errorf("after %s: %v, %v, want %s", id, next.ID, err, want)
		}
	}
}

func TestNoFolder(t *testing.T) {
	m := NewMusic(filepath.Join(t.TempDir(), "gone"))
	if songs, err := m.Songs(); err != nil || len(songs) != 0 {
		t.Errorf("%v, %v", songs, err)
	}
	for name, err := range map[string]error{"find": second(m.Find("x")), "next": second(m.Next("x")), "any": second(m.Find(""))} {
		if !errors.Is(err, ErrNoSong) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.Open("x.mp3"); err == nil {
		t.Error("a song of no folder was opened")
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewMusic(file).Songs(); err == nil {
		t.Error("a file for a folder: no error")
	}
}

func second[T any](_ T, err error) error { return err }

func TestOpen(t *testing.T) {
	m := folder(t, "a.mp3", "x/b.wav")
	for _, id := range []string{"a.mp3", "x/b.wav"} {
		file, err := m.Open(id)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(file)
		if err != nil || string(data) != id {
			t.Errorf("%s holds %q, %v", id, data, err)
		}
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestOutside: nothing outside of the folder is listed or opened.
func TestOutside(t *testing.T) {
	m := folder(t, "a.mp3", "x/b.mp3")
	secret := filepath.Join(filepath.Dir(m.dir), "secret.mp3")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	links := map[string]string{"out.mp3": secret, "up.mp3": "../secret.mp3", "outside": filepath.Dir(m.dir), "inside.mp3": "x/b.mp3", "loop.mp3": "loop.mp3"}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(m.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(m.dir, "pipe.mp3"), 0o600); err != nil {
		t.Fatal(err)
	}
	songs, err := m.Songs()
	if err != nil || fmt.Sprint(len(songs)) != "3" {
		t.Errorf("songs %v, %v, want a, inside and b", songs, err)
	}
	for _, id := range []string{
		"../secret.mp3", secret, "x/../../secret.mp3", "out.mp3", "up.mp3", "outside/secret.mp3", "loop.mp3", "pipe.mp3", "x", ".", "", "a.mp3/", "/a.mp3", "a.txt", "gone.mp3", "a.mp3\x00",
	} {
		if file, err := m.Open(id); err == nil {
			t.Errorf("%q was opened", id)
			_ = file.Close()
		}
	}
	if file, err := m.Open("inside.mp3"); err != nil {
		t.Errorf("a link inside of the folder: %v", err)
	} else {
		_ = file.Close()
	}
}

func FuzzLikeness(f *testing.F) {
	f.Add("青花瓷", "周杰伦/01 - 青花瓷.mp3")
	f.Add("hey jude", "Hey_Jude.mp3")
	f.Fuzz(func(t *testing.T, wanted, name string) {
		s := newSong(name)
		if got := likeness(foldTitle(wanted), s); got < 0 || got > 1 {
			t.Errorf("likeness(%q, %q) = %v", wanted, name, got)
		}
	})
}
