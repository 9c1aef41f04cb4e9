package excerpt

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/audio/file"
)

// second is a second of sound, of one value.
func second(value int16) []int16 {
	pcm := make([]int16, 16000)
	for i := range pcm {
		pcm[i] = value
	}
	return pcm
}

// count is of how many devices there is something.
func count(s *Excerpts) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// heard are the values of the seconds that can be heard of a device.
func heard(t *testing.T, s *Excerpts, device string) (all []int16) {
	t.Helper()
	wav, _, ok := s.WAV(device)
	if !ok {
		return nil
	}
	pcm, rate, err := file.ReadWAV(bytes.NewReader(wav))
	if err != nil || rate != 16000 {
		t.Fatal(rate, err)
	}
	for i := 0; i < len(pcm); i += 16000 {
		all = append(all, pcm[i])
	}
	return all
}

// TestAsked: nothing is kept that nobody has asked for; then the last fifteen seconds of what comes within five minutes are, in their
// order, and go a quarter of an hour after the last of it, or when a person deletes them.
func TestAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		s.Add("m", second(1), false)
		if s.Of("m") != (State{}) || heard(t, s, "m") != nil {
			t.Fatal("kept without being asked for")
		}
		s.Ask("m", "")
		for i := range 40 {
			part := second(int16(i))
			s.Add("m", part[:7000], false)
			s.Add("m", part[7000:], false)
			clear(part) // it is whoever's it was
		}
		if got, want := fmt.Sprint(heard(t, s, "m")), "[25 26 27 28 29 30 31 32 33 34 35 36 37 38 39]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if now := s.Of("m"); now.Length != Span || !now.Until.Equal(time.Now().Add(AskedFor)) {
			t.Errorf("%+v", now)
		}
		time.Sleep(AskedFor)
		s.Add("m", second(99), false)
		if all := heard(t, s, "m"); len(all) != 15 || all[14] != 39 || !s.Of("m").Until.IsZero() {
			t.Errorf("after the time: %v, %+v", all, s.Of("m"))
		}
		time.Sleep(KeptFor - AskedFor + time.Second)
		if s.Of("m") != (State{}) || count(s) != 0 {
			t.Error("it does not go")
		}
		s.Ask("m", "")
		s.Add("m", append(second(1), second(2)...), false)
		s.Drop("m")
		s.Add("m", second(3), false)
		if heard(t, s, "m") != nil {
			t.Error("it was deleted, and is there")
		}
	})
}

// TestRoom: sound that is kept anyway takes no one's place; who asks has that of the device which has sent nothing for longest.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New()
		for i := range most + 4 {
			s.Add(fmt.Sprint(i), second(7), true)
			time.Sleep(time.Second)
		}
		if count(s) != most || heard(t, s, "0") == nil || heard(t, s, fmt.Sprint(most)) != nil {
			t.Errorf("%d are there", count(s))
		}
		s.Add("0", second(8), true)
		s.Ask("new", "")
		s.Add("new", second(9), false)
		if count(s) != most || heard(t, s, "0") == nil || heard(t, s, "1") != nil || heard(t, s, "new") == nil {
			t.Errorf("%d are there", count(s))
		}
		time.Sleep(time.Hour)
		if count(s) != 0 {
			t.Errorf("%d stay for ever", count(s))
		}
	})
}
