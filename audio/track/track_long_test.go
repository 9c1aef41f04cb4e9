package track

import (
	"bytes"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/testall"
)

// song is a file that goes on for ever: its head, then its sound again and again.
type song struct {
	head, sound []byte
	given       int
}

func (s *song) Read(p []byte) (int, error) {
	if s.given < len(s.head) {
		n := copy(p, s.head[s.given:])
		s.given += n
		return n, nil
	}
	n := copy(p, s.sound[(s.given-len(s.head))%len(s.sound):])
	s.given += n
	return n, nil
}

func (s *song) Close() error { return nil }

// longSongs are endless songs of each kind.
func longSongs(t *testing.T) map[string]*song {
	t.Helper()
	cut := func(data []byte, at int) *song {
		if at <= 0 || at >= len(data) {
			t.Fatalf("no sound after %d of %d bytes", at, len(data))
		}
		return &song{head: data[:at], sound: data[at:]}
	}
	flac, opus, mp3 := testFile(t, "tone.flac"), testFile(t, "tone.opus"), testFile(t, "tone.mp3")
	at := 4
	for last := false; !last; { // metadata blocks: a byte with the last one's bit, then a size of three
		last = flac[at]&0x80 != 0
		at += 4 + int(flac[at+1])<<16 + int(flac[at+2])<<8 + int(flac[at+3])
	}
	wav := stereoWAV(44100, 1)
	i := bytes.Index(wav, []byte("data"))
	copy(wav[i+4:], "\xff\xff\xff\xff")
	return map[string]*song{
		"flac": cut(flac, at), "opus": cut(opus, bytes.LastIndex(opus, []byte("OggS"))), "mp3": cut(mp3, 20), "wav": cut(wav, i+8),
	}
}

// held is what is in memory after so many seconds more, and what it cost.
func held(t *testing.T, track *Track, seconds int) (live, spent uint64) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	pcm := make([]int16, track.Rate()*60/1000)
	for got := 0; got < seconds*track.Rate(); {
		n, err := track.Read(pcm)
		if err != nil {
			t.Fatal(err)
		}
		got += n
	}
	runtime.ReadMemStats(&after)
	spent = after.TotalAlloc - before.TotalAlloc
	runtime.GC()
	runtime.ReadMemStats(&after)
	return after.HeapAlloc, spent
}

// TestLongSong: however long a song is, it takes the same small memory.
func TestLongSong(t *testing.T) {
	testall.Arithmetic(t)
	for name, file := range longSongs(t) {
		track, err := Open(file)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		early, _ := held(t, track, 1)
		late, spent := held(t, track, 8)
		if late > early+256<<10 {
			t.Errorf("%s: %d KiB more are held after 8 seconds more", name, (late-early)>>10)
		}
		if perSecond := spent / 8; perSecond > 3<<20 {
			t.Errorf("%s: %d KiB are spent for a second of music", name, perSecond>>10)
		}
		runtime.KeepAlive(track)
	}
}

// TestTags: pictures in front of a song are gone over, and what a broken tag
// claims to hold is not set aside.
func TestTags(t *testing.T) {
	tag := func(flags byte, size int) string {
		return "ID3\x04\x00" + string([]byte{flags, byte(size >> 21 & 0x7f), byte(size >> 14 & 0x7f), byte(size >> 7 & 0x7f), byte(size & 0x7f)})
	}
	picture := strings.Repeat("\xff\xfb\x90\x00", 100_000)
	for name, front := range map[string]string{
		"a picture": tag(0, len(picture)) + picture, "two tags": tag(0, 4) + "abcd" + tag(0, len(picture)) + picture, "with a footer": tag(0x10, 4) + "abcd3DI\x04\x00\x10\x00\x00\x00\x04", "an empty one": tag(0, 0),
	} {
		for _, file := range []string{"tone.mp3", "tone.flac", "tone.opus"} {
			plain, err := Open(io.NopCloser(bytes.NewReader(testFile(t, file))))
			if err != nil {
				t.Fatal(err)
			}
			want, _ := readTrack(t, plain, 960)
			track, err := Open(io.NopCloser(strings.NewReader(front + string(testFile(t, file)))))
			if err != nil {
				t.Errorf("%s before %s: %v", name, file, err)
				continue
			}
			if got, err := readTrack(t, track, 960); err != io.EOF || !slices.Equal(got, want) { //nolint:errorlint // the end itself
				t.Errorf("%s before %s: %d samples, %v, want %d", name, file, len(got), err, len(want))
			}
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Open(io.NopCloser(strings.NewReader(tag(0, 0xfffffff) + "short"))); err == nil {
		t.Error("a tag without its end was opened")
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("a tag that claims 256 MiB cost %d KiB", used>>10)
	}
}

// failing is a file whose disk goes away after so many bytes.
type failing struct {
	io.Reader
	closed bool
}

func (f *failing) Close() error { f.closed = true; return nil }

// TestDiskGone: a file that cannot be read any more ends with that error, after
// the sound that there was.
func TestDiskGone(t *testing.T) {
	for name, file := range longSongs(t) {
		gone := &failing{Reader: io.MultiReader(io.LimitReader(file, int64(len(file.head)+len(file.sound)/2)), brokenDisk{})}
		track, err := Open(gone)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		pcm, err := readTrack(t, track, 960)
		if len(pcm) == 0 || err == nil || err == io.EOF { //nolint:errorlint // a clean end would hide it
			t.Errorf("%s: %d samples, then %v", name, len(pcm), err)
		}
		if err := track.Close(); err != nil || !gone.closed {
			t.Errorf("%s: not closed: %v", name, err)
		}
	}
}

type brokenDisk struct{}

func (brokenDisk) Read([]byte) (int, error) { return 0, io.ErrNoProgress }

// TestOddRates: what people keep at studio rates is brought down, what is below
// speech is refused, whatever the size of what is read.
func TestOddRates(t *testing.T) {
	for rate, want := range map[int]int{8000: 8000, 11025: 11025, 44100: 44100, 48000: 48000, 88200: 44100, 96000: 48000, 192000: 48000, 384000: 48000, 6000: 0} {
		for _, room := range []int{1, 7, 960, 10000} {
			track, err := Open(io.NopCloser(bytes.NewReader(stereoWAV(rate, 0.1))))
			if (err == nil) != (want > 0) {
				t.Fatalf("%d Hz: %v", rate, err)
			}
			if err != nil {
				continue
			}
			pcm, err := readTrack(t, track, room)
			if err != io.EOF || track.Rate() != want || len(pcm) < want/10-1 || len(pcm) > want/10+1 { //nolint:errorlint // the end itself
				t.Errorf("%d Hz, %d at a time: %d samples at %d Hz, %v", rate, room, len(pcm), track.Rate(), err)
			}
		}
	}
}
