package world

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"xiaozhi/audio/file"
	"xiaozhi/audio/stream"
	"xiaozhi/internal/config"
	"xiaozhi/internal/servicetest/radio"
	"xiaozhi/mcp/local"
)

// TestMusicLibrary: what the conversation plays from a folder in which not all
// is music: songs are decoded, what is broken is an error each time and leaves
// no file open.
func TestMusicLibrary(t *testing.T) {
	dir := t.TempDir()
	var wav bytes.Buffer
	if err := file.WriteWAV(&wav, make([]int16, 1600), 16000); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"a good.wav": wav.Bytes(), "b misnamed.mp3": wav.Bytes(), "c empty.mp3": nil, "d text.flac": []byte("this is no music, whatever it is called"), "e short.ogg": []byte("OggS"), "f cut.wav": wav.Bytes()[:30],
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m := NewLibrary(t.Context(), config.Music{Dir: dir}, "", stream.Options{})
	played := ""
	for id, title := "f cut.wav", ""; len(played) < 6; {
		var err error
		if id, title, err = m.Next(id); err != nil || title == "" {
			t.Fatalf("next: %q, %v", title, err)
		}
		song, err := m.Open(id)
		if err != nil {
			played += "-"
			continue
		}
		samples, err := 0, error(nil)
		for pcm := make([]int16, 960); err == nil; {
			var n int
			n, err = song.Read(pcm)
			samples += n
		}
		if samples != 1600 || song.Rate() != 16000 || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %d samples at %d Hz, %v", id, samples, song.Rate(), err)
		}
		if err := song.Close(); err != nil {
			t.Error(err)
		}
		played += "+"
	}
	if played != "++----" {
		t.Errorf("played %s, want the first two of six", played)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("open files cannot be counted here")
	}
	for range 50 {
		for _, id := range []string{"c empty.mp3", "d text.flac", "e short.ogg", "f cut.wav", "gone.mp3"} {
			if song, err := m.Open(id); err == nil {
				_ = song.Close()
				t.Errorf("%s was opened", id)
			}
		}
	}
	if after, err := os.ReadDir("/proc/self/fd"); err != nil || len(after) > len(open)+20 {
		t.Errorf("%d files are open, %d before", len(after), len(open))
	}
}

// TestStations: a station is played by its name, and an address that was said only if it is one of the Internet.
func TestStations(t *testing.T) {
	f := radio.New(t)
	m := NewLibrary(t.Context(), config.Music{Stations: map[string]string{"Song": f.URL() + "/song.wav", "Gone": f.URL() + "/none"}}, t.TempDir(), stream.Options{})
	if err := m.CheckStation(t.Context(), "Song"); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{"a station that is gone": m.CheckStation(t.Context(), "Gone"), "no station": m.CheckStation(t.Context(), "None"), "an address at home": m.CheckAddress(t.Context(), f.URL()+"/song.wav")} {
		if err == nil {
			t.Errorf("%s plays", name)
		}
	}
	song, err := m.Open("station:Song")
	if err != nil {
		t.Fatal(err)
	}
	samples, err := 0, error(nil)
	for pcm := make([]int16, 2400); err == nil; {
		var n int
		n, err = song.Read(pcm)
		samples += n
	}
	if seconds := float64(samples) / float64(song.Rate()); !errors.Is(err, io.EOF) || seconds < 1.9 || seconds > 2.1 {
		t.Errorf("%f s, %v", seconds, err)
	}
	if err := song.Close(); err != nil {
		t.Error(err)
	}
	if _, err := m.Open("station:None"); !errors.Is(err, local.ErrNoSong) {
		t.Error(err)
	}
	atHome, err := m.Open("url:" + f.URL() + "/song.wav")
	if err != nil {
		t.Fatal(err)
	}
	defer atHome.Close()
	for err = nil; err == nil; {
		_, err = atHome.Read(make([]int16, 100))
	}
	if !errors.Is(err, stream.ErrPublic) {
		t.Error(err)
	}
	if next, title, err := m.Next("station:Song"); err != nil || next != "station:Gone" || title != "Gone" {
		t.Errorf("%s, %s, %v", next, title, err)
	}
}
