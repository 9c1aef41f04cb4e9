package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/probe"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/store"
)

const (
	maxVoices   = 9   // side by side
	maxSentence = 300 // characters
	voicesTime  = 2 * time.Minute
	voiceTime   = 30 * time.Second // of one
	clipRate    = 24000
	maxClip     = 30 * clipRate // samples of a clip, and of what a trial speaks
	keptClips   = 32            // of all people: 45 MiB at most
	keepClip    = 10 * time.Minute
)

// Voice is one of the voices that are compared.
type Voice struct {
	Service  string  `json:"service"`
	Voice    string  `json:"voice,omitempty"`    // "": the service's own choice
	Speed    float64 `json:"speed,omitempty"`    // 1 is normal; 0: as the settings say
	Language string  `json:"language,omitempty"` // of the sentence; "": its signs tell
}

// VoiceRow tells how a voice has said the sentence.
type VoiceRow struct {
	Voice
	First  int64           `json:"first_ms"` // to the first sound
	Total  int64           `json:"total_ms"` // to the end of it
	Length int64           `json:"length_ms"`
	Gain   float64         `json:"gain_db"` // by which it was brought to the loudness of all
	Sound  string          `json:"sound,omitempty"`
	Cost   Cost            `json:"cost"`
	Patch  json.RawMessage `json:"patch,omitempty"` // of the settings of an agent that is to have it
	Fault  string          `json:"fault,omitempty"` // why it said nothing, in both languages
	Why    error           `json:"-"`               // the same
}

// clip is a sound that can be heard for a while.
type clip struct {
	id     string
	person string
	wav    []byte
	until  time.Time
}

// clips keep sounds of trials in memory for ten minutes, for whom they were made. The oldest make room. Its methods may be called
// at the same time.
type clips struct {
	mu     sync.Mutex
	all    []clip      // the oldest first
	timer  *time.Timer // of the next that ends; nil: there is none
	closed bool
}

// keep levels a sound and keeps it; "" if there is none. gain is by how many dB it was made louder.
func (c *clips) keep(person string, pcm []int16, rate int) (id string, gain float64) {
	if len(pcm) == 0 {
		return "", 0
	}
	pcm = pcm[:min(len(pcm), maxClip)]
	meter, leveller := audio.NewMeter(rate), audio.NewLeveller(rate)
	meter.Add(pcm)
	gain = meter.Gain()
	leveller.Begin()
	leveller.Apply(pcm, gain)
	var b bytes.Buffer
	if err := file.WriteWAV(&b, pcm, rate); err != nil {
		return "", 0 // it has no sound
	}
	one := clip{store.NewID(), person, b.Bytes(), time.Now().Add(keepClip)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return "", 0
	}
	if c.all = append(c.all, one); len(c.all) > keptClips {
		c.all = slices.Delete(c.all, 0, 1)
	}
	if c.timer == nil {
		c.timer = time.AfterFunc(keepClip, c.sweep)
	}
	return one.id, math.Round(gain*10) / 10
}

// sweep lets go of what was kept long enough.
func (c *clips) sweep() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.all = slices.DeleteFunc(c.all, func(one clip) bool { return !one.until.After(now) })
	if c.timer = nil; len(c.all) > 0 && !c.closed {
		c.timer = time.AfterFunc(c.all[0].until.Sub(now), c.sweep)
	}
}

// find returns the WAV file of a sound that was made for a person.
func (c *clips) find(person, id string) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, one := range c.all {
		if one.id == id && one.person == person && time.Now().Before(one.until) {
			return one.wav, nil
		}
	}
	return nil, refuse(Missing, "lab/no-sound")
}

// close lets go of all.
func (c *clips) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all, c.closed = nil, true; c.timer != nil {
		c.timer.Stop()
	}
}

// Voices begins to have a sentence said by several voices, one after the other.
func (l *Lab) Voices(person, sentence string, all []Voice) (*Run, error) {
	sentence = strings.TrimSpace(sentence)
	if n := len([]rune(sentence)); n == 0 || n > maxSentence {
		return nil, refuse(Invalid, "lab/sentence", maxSentence)
	}
	if len(all) == 0 || len(all) > maxVoices {
		return nil, refuse(Invalid, "lab/voices", maxVoices)
	}
	for _, v := range all {
		if v.Speed != 0 && (v.Speed < 0.25 || v.Speed > 4) {
			return nil, refuse(Invalid, "lab/speed")
		}
	}
	return l.runs.Start(person, "voices", len(all), voicesTime, func(ctx context.Context, r *Run) error {
		for _, v := range all {
			row := l.speak(ctx, person, sentence, v)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.add(row, nil)
		}
		return nil
	})
}

// speak has one voice say the sentence.
func (l *Lab) speak(ctx context.Context, person, sentence string, v Voice) (row VoiceRow) {
	row.Voice = v
	ctx, stop := context.WithTimeout(ctx, voiceTime)
	defer stop()
	voice, free, err := l.o.Stage.Voice(ctx, v.Service, v.Speed)
	if err != nil {
		row.Fault, row.Why = inWords(err), err
		return row
	}
	defer free()
	lang := text.Resolve(sentence, text.TagOf(v.Language), text.Chinese)
	s, err := probe.SpeakAt(ctx, voice, providers.TTSRequest{Text: sentence, Language: string(lang), Voice: v.Voice}, clipRate)
	if err != nil {
		row.Fault, row.Why = inWords(err), err
		return row
	}
	row.First, row.Total, row.Length = max(1, s.First.Milliseconds()), max(1, s.Total.Milliseconds()), s.Length.Milliseconds()
	row.Sound, row.Gain = l.clips.keep(person, s.PCM, clipRate)
	price, ok := l.o.Prices(v.Service)
	row.Cost = Cost{Micros: int64(math.Round(price.Spoken(len([]rune(sentence))) * 1e6))}
	if !ok {
		row.Cost.Missing = v.Service
	}
	row.Patch = patchOf(v)
	return row
}

// patchOf makes the change of an agent's settings by which it speaks so. The speed is the service's own setting.
func patchOf(v Voice) json.RawMessage {
	doc, err := json.Marshal(map[string]any{"tts": []string{v.Service}, "voice": v.Voice})
	if err != nil {
		return nil // texts always have a form
	}
	return doc
}
