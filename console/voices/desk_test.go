package voices

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/providers"
)

func wav(t testing.TB, rate int, d time.Duration) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := file.WriteWAV(&b, make([]int16, int(d.Seconds()*float64(rate))), rate); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// Sound of any rate comes at that of voices, what is cut off counts as far as it goes, and what is too long is not read to its end.
func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		content []byte
		want    time.Duration
		err     error
	}{
		"as voices are":  {wav(t, 16000, time.Second), time.Second, nil},
		"of a phone":     {wav(t, 48000, time.Second), time.Second, nil},
		"cut off":        {wav(t, 48000, 2*time.Second)[:96000], time.Second, nil},
		"longer":         {wav(t, 8000, 61*time.Second), 0, errLong},
		"too large":      {append(wav(t, 48000, time.Second), make([]byte, maxFile)...), 0, errLong},
		"of a wild rate": {wav(t, 96000, time.Second), 0, errSound},
		"empty":          {nil, 0, errSound},
		"none":           {[]byte("RIFF and no more"), 0, errSound},
		"broken flac":    {[]byte("fLaC\x00\x00\x00\x22"), 0, errSound},
		"broken ogg":     {[]byte("OggS\x00\x02"), 0, errSound},
	} {
		pcm, err := read(bytes.NewReader(c.content))
		if got := time.Duration(len(pcm)) * time.Second / providers.VoiceRate; !errors.Is(err, c.err) || (got-c.want).Abs() > 10*time.Millisecond {
			t.Errorf("%s: %v of sound, %v", name, got, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(wav(f, 16000, 10*time.Millisecond))
	f.Add([]byte("fLaC\x00\x00\x00\x22"))
	f.Add([]byte("OggS\x00\x02"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if pcm, err := read(bytes.NewReader(content)); err == nil && len(pcm) > 61*providers.VoiceRate {
			t.Errorf("%d samples of %d bytes", len(pcm), len(content))
		}
	})
}
