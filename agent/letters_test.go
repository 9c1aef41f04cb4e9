package agent

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/music"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp/router"
	"xiaozhi/prompts"
)

// letterbox is an office with a device "d" that may come and go.
type letterbox struct {
	*mail.Office
	o     Options
	q     *switched
	store *dying
	mail  mail.Options

	mu    sync.Mutex
	fates map[string][]string // by letter, with the time since it was made
}

// scale is a library with one song of 20 s, which may be fetched.
type scale struct{}

func (scale) Prepare(_ context.Context, song string) (id, title string, err error) {
	switch song {
	case "scale":
		return "scale.wav", "Scale", nil
	case "far":
		return "", "", errors.New("nobody answers")
	}
	return "", "", mail.ErrNoSong
}
func (scale) Open(string) (music.Song, error)           { return &beep{left: 20 * 16000}, nil }
func (scale) Next(string) (next, title string, e error) { return "", "", errors.New("there is one") }

type beep struct{ left int }

func (*beep) Rate() int { return 16000 }
func (b *beep) Read(pcm []int16) (int, error) {
	n := min(b.left, len(pcm))
	for i := range n {
		pcm[i] = int16(1000 * (i % 7))
	}
	if b.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
func (*beep) Close() error { return nil }

// dying is a store that answers no more once it is dead.
type dying struct {
	mail.Store
	dead atomic.Bool
}

func (d *dying) First(ctx context.Context, p mail.Pick) (mail.Letter, error) {
	if d.dead.Load() {
		return mail.Letter{}, errors.New("dead")
	}
	return d.Store.First(ctx, p)
}

func (d *dying) Change(ctx context.Context, was, now mail.Letter) (bool, error) {
	if d.dead.Load() {
		return false, errors.New("dead")
	}
	return d.Store.Change(ctx, was, now)
}

// letterScene plays a scene in fake time.
func letterScene(t *testing.T, f func(t *testing.T, p *letterbox)) {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var detectors sync.WaitGroup
		p := &letterbox{q: &switched{}, store: &dying{Store: mail.NewMemory()}, fates: map[string][]string{}}
		ids := 0
		p.mail = mail.Options{
			Store: p.store, Songs: scale{}, KeepOpen: func() time.Duration { return 30 * time.Minute },
			NewID: func() string {
				ids++
				return strconv.Itoa(ids)
			},
			Changed: func(l mail.Letter) {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.fates[l.ID] = append(p.fates[l.ID], string(l.Fate)+" "+time.Since(l.Made).Round(time.Second).String())
			},
		}
		p.Office = mail.New(t.Context(), p.mail)
		p.o = Options{
			VAD: energyVAD{&detectors}, ASR: &scriptASR{}, TTS: &toneTTS{rate: 16000}, LLM: &scriptLLM{lines: []string{"text Fine.", "end"}}, Prompts: set,
			Devices: NewDevices(), Zone: time.UTC, Quiet: p.q, Features: append(allFeatures(scale{}), p.Office),
		}
		f(t, p)
		p.Close()
		p.o.Devices.Close()
		detectors.Wait()
	})
}

func (p *letterbox) connect(t *testing.T) *visit { return connect(t, p.o, router.Options{}) }

func (p *letterbox) send(t *testing.T, l mail.Letter) mail.Letter {
	t.Helper()
	l.Device = "d"
	sent, err := p.Send(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

// is checks what has become of a letter.
func (p *letterbox) is(t *testing.T, l mail.Letter, want mail.Fate) mail.Letter {
	t.Helper()
	now, err := p.Find(t.Context(), l.ID)
	if err != nil || now.Fate != want {
		t.Errorf("%q %q: %+v %v, want %s", l.Text, l.Song, now, err, want)
	}
	return now
}

func (p *letterbox) story(l mail.Letter) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.fates[l.ID], ", ")
}

// inOrder checks that the device was told these words, each once and in their order.
func inOrder(t *testing.T, v *visit, words ...string) {
	t.Helper()
	said, at := v.box.String(), 0
	for _, w := range words {
		i := strings.Index(said, w)
		if i < at || strings.Count(said, w) != 1 {
			t.Errorf("%q is missing, there twice, or in another order:\n%s", w, said)
		}
		at = i
	}
}

// TestLetterPriorities: the urgent goes first, also before what was given to the device already, and the low last.
func TestLetterPriorities(t *testing.T) {
	letterScene(t, func(t *testing.T, p *letterbox) {
		p.send(t, mail.Letter{Text: "A low one.", Priority: mail.Low})
		p.send(t, mail.Letter{Text: "The first one."})
		p.send(t, mail.Letter{Text: "The second one."})
		v := p.connect(t) // The first one waits for a pause
		time.Sleep(500 * time.Millisecond)
		p.send(t, mail.Letter{Text: "An urgent one.", Priority: mail.Urgent})
		time.Sleep(time.Minute)
		inOrder(t, v, "sentence An urgent one.", "sentence The first one.", "sentence The second one.", "sentence A low one.")
		v.bye()
	})
}

// TestLetterNow: what is meant now cuts what is being said, whose fate says how much of it was heard.
func TestLetterNow(t *testing.T) {
	letterScene(t, func(t *testing.T, p *letterbox) {
		v := p.connect(t)
		long := p.send(t, mail.Letter{Text: "A long announcement about nothing in particular, which goes on and on."})
		time.Sleep(3 * time.Second)
		now := p.send(t, mail.Letter{Text: "Fire!", Now: true})
		time.Sleep(10 * time.Second)
		if l := p.is(t, long, mail.Heard); l.Heard == 0 || l.Heard >= l.Length() {
			t.Errorf("%d of %d were heard", l.Heard, l.Length())
		}
		p.is(t, now, mail.Heard)
		v.bye()
	})
}

// TestLetterQuietHours: in quiet hours the urgent is told, and the rest when they end.
func TestLetterQuietHours(t *testing.T) {
	letterScene(t, func(t *testing.T, p *letterbox) {
		p.q.set(true)
		v := p.connect(t)
		held, song := p.send(t, mail.Letter{Text: "Dinner is ready.", Now: true}), p.send(t, mail.Letter{Kind: mail.Play, Song: "scale"})
		smoke := p.send(t, mail.Letter{Text: "There is smoke.", Priority: mail.Urgent})
		time.Sleep(30 * time.Second)
		p.is(t, smoke, mail.Heard)
		p.is(t, held, mail.Queued)
		p.is(t, song, mail.Queued)
		p.q.set(false)
		time.Sleep(time.Minute)
		p.is(t, held, mail.Heard)
		p.is(t, song, mail.Heard)
		inOrder(t, v, "sentence There is smoke.", "sentence Dinner is ready.")
		v.bye()
	})
}

// TestLetterAtTime: a letter for a time waits for it, its channel is kept open, and a sleeping device hears it at its next contact. It
// expires after it.
func TestLetterAtTime(t *testing.T) {
	letterScene(t, func(t *testing.T, p *letterbox) {
		v := p.connect(t)
		soon := p.send(t, mail.Letter{Text: "At ten past.", At: time.Now().Add(10 * time.Minute)})
		low := p.send(t, mail.Letter{Text: "At twenty past.", At: time.Now().Add(20 * time.Minute), Priority: mail.Low})
		time.Sleep(10*time.Minute - time.Second)
		p.is(t, soon, mail.Queued)
		time.Sleep(5 * time.Second)
		p.is(t, soon, mail.Heard)
		time.Sleep(11 * time.Minute)
		if said := v.box.String(); !strings.Contains(said, "hang up: idle") { // a low one keeps no channel open
			t.Errorf("it is not idle:\n%s", said)
		}
		v.bye()
		p.is(t, low, mail.Queued)
		ends := p.send(t, mail.Letter{Text: "Never.", At: time.Now().Add(time.Hour), Ends: time.Now().Add(2 * time.Hour)})
		day := p.send(t, mail.Letter{Text: "In an hour.", At: time.Now().Add(time.Hour)})
		if day.Ends.Sub(day.At) != 24*time.Hour {
			t.Error(day.Ends)
		}
		time.Sleep(3 * time.Hour)
		if got := p.story(ends); got != "queued 0s, expired 2h0m0s" {
			t.Errorf("its fates were %s", got)
		}
		v = p.connect(t)
		time.Sleep(time.Minute)
		inOrder(t, v, "sentence In an hour.", "sentence At twenty past.")
		v.bye()
		if _, err := p.Send(t.Context(), mail.Letter{Device: "d", Text: "x", At: time.Now().Add(367 * 24 * time.Hour)}); !errors.Is(err, mail.ErrTime) {
			t.Error(err)
		}
		if _, err := p.Send(t.Context(), mail.Letter{Device: "d", Text: "x", Ends: time.Now()}); !errors.Is(err, mail.ErrTime) {
			t.Error(err)
		}
	})
}

// TestLetterAsks: a question is kept with what is said to it, also one to a device that slept, and with nothing if nothing is said. Other
// letters wait for the answer.
func TestLetterAsks(t *testing.T) {
	letterScene(t, func(t *testing.T, p *letterbox) {
		tea := p.send(t, mail.Letter{Kind: mail.Ask, Text: "How do you take your tea?"})
		next := p.send(t, mail.Letter{Text: "Dinner is ready."})
		time.Sleep(time.Hour)
		v := p.connect(t)
		time.Sleep(8 * time.Second)
		if l := p.is(t, tea, mail.Delivered); l.Heard != l.Length() {
			t.Errorf("%+v", l)
		}
		v.types(t, "with milk")
		time.Sleep(10 * time.Second)
		if l := p.is(t, tea, mail.Answered); l.Answer != "with milk" {
			t.Errorf("%+v", l)
		}
		p.is(t, next, mail.Heard)
		if said := v.box.String(); strings.Contains(said, "Fine") {
			t.Errorf("the model answers too:\n%s", said)
		}
		silent := p.send(t, mail.Letter{Kind: mail.Ask, Text: "Is anybody there?"})
		time.Sleep(time.Minute)
		if l := p.is(t, silent, mail.Heard); l.Answer != "" {
			t.Errorf("%+v", l)
		}
		v.types(t, "hello")
		time.Sleep(5 * time.Second)
		if said := v.box.String(); !strings.Contains(said, "final Fine.") {
			t.Errorf("late words are no answer:\n%s", said)
		}
		leaves := p.send(t, mail.Letter{Kind: mail.Ask, Text: "And now?"})
		time.Sleep(5 * time.Second)
		v.bye()
		p.is(t, leaves, mail.Heard)
	})
}

// TestLetterPlays: a song is played beside letters that are told, its fate says for how long; what is not there is refused.
func TestLetterPlays(t *testing.T) {
	letterScene(t, func(t *testing.T, p *letterbox) {
		v := p.connect(t)
		song, none := p.send(t, mail.Letter{Kind: mail.Play, Song: "scale"}), p.send(t, mail.Letter{Kind: mail.Play, Song: "nothing"})
		far := p.send(t, mail.Letter{Kind: mail.Play, Song: "far"})
		time.Sleep(10 * time.Second)
		if l := p.is(t, song, mail.Delivered); l.Text != "Scale" {
			t.Errorf("%+v", l)
		}
		said := p.send(t, mail.Letter{Text: "Dinner is ready."})
		time.Sleep(5 * time.Second)
		p.is(t, said, mail.Heard)
		time.Sleep(time.Minute)
		if l := p.is(t, song, mail.Heard); l.Heard != 20 {
			t.Errorf("%d s were heard", l.Heard)
		}
		if l := p.is(t, none, mail.Refused); l.Why != mail.NoSong {
			t.Errorf("%+v", l)
		}
		p.is(t, far, mail.Queued) // it is tried again
		time.Sleep(5 * time.Minute)
		p.is(t, far, mail.Refused)
		v.bye()
		v = p.connect(t)
		cut := p.send(t, mail.Letter{Kind: mail.Play, Song: "scale"})
		time.Sleep(13 * time.Second)
		if err := v.c.Post(wire.Abort{}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if l := p.is(t, cut, mail.Heard); l.Heard < 11 || l.Heard > 12 {
			t.Errorf("%d s were heard", l.Heard)
		}
		gone := p.send(t, mail.Letter{Kind: mail.Play, Song: "scale"})
		time.Sleep(10 * time.Second)
		v.bye()
		if l := p.is(t, gone, mail.Heard); l.Heard < 8 || l.Heard > 9 {
			t.Errorf("%d s were heard", l.Heard)
		}
	})
}

// TestLetterShortContacts: contacts that end before a word was said take no try.
func TestLetterShortContacts(t *testing.T) {
	letterScene(t, func(t *testing.T, p *letterbox) {
		l := p.send(t, mail.Letter{Text: "Dinner is ready."})
		for range 20 {
			v := p.connect(t)
			time.Sleep(500 * time.Millisecond)
			v.bye()
			if now := p.is(t, l, mail.Queued); now.Tries != 0 {
				t.Fatalf("%+v", now)
			}
		}
		v := p.connect(t)
		time.Sleep(10 * time.Second)
		v.bye()
		p.is(t, l, mail.Heard)
	})
}

// TestLetterBatch: letters that are sent together are told each once, and one key is told once, however often it is sent.
func TestLetterBatch(t *testing.T) {
	letterScene(t, func(t *testing.T, p *letterbox) {
		for range 3 {
			kept, failed, err := p.SendAll(t.Context(), []mail.Letter{{Device: "d", Text: "Good morning.", Key: "today"}, {Device: "e", Text: "Good morning.", Key: "today"}})
			if err != nil || kept[0].Batch != kept[1].Batch || kept[0].ID == kept[1].ID && failed[0] == nil {
				t.Errorf("%+v %v %v", kept, failed, err)
			}
		}
		v := p.connect(t)
		time.Sleep(time.Minute)
		inOrder(t, v, "sentence Good morning.")
		v.bye()
		all, err := p.List(t.Context(), mail.Filter{Limit: 9})
		if err != nil || len(all) != 2 {
			t.Errorf("%+v %v", all, err)
		}
	})
}

// TestLetterRestart: of what was with a device when the program was killed, what it had not begun to say is told after all, and what it
// was saying is not; what was promised is told as it was promised.
func TestLetterRestart(t *testing.T) {
	letterScene(t, func(t *testing.T, p *letterbox) {
		v := p.connect(t)
		begun := p.send(t, mail.Letter{Text: "A long announcement about nothing in particular, which goes on and on."})
		time.Sleep(3 * time.Second)
		given := p.send(t, mail.Letter{Text: "Fire!", Priority: mail.Urgent})
		job := p.send(t, mail.Letter{Text: "Nobody knows what became of the job.", Held: true})
		kept := p.send(t, mail.Letter{Text: "It runs.", Held: true})
		if err := p.Amend(kept.ID, "It is done.", ""); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		p.is(t, begun, mail.Delivered)
		p.is(t, given, mail.Delivered)

		p.store.dead.Store(true)
		again := p.mail
		again.Store = p.store.Store
		after := mail.New(t.Context(), again) // another program with the same store
		if err := after.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l := p.is(t, begun, mail.Refused); l.Why != mail.Lost {
			t.Errorf("%+v", l)
		}
		before := p.o
		before.Devices, before.Features = NewDevices(), []feature.Feature{after}
		w := connect(t, before, router.Options{})
		time.Sleep(time.Minute)
		inOrder(t, w, "sentence Fire!", "sentence Nobody knows", "sentence It is done.")
		if said := w.box.String(); strings.Contains(said, "A long") {
			t.Errorf("it is said again:\n%s", said)
		}
		p.is(t, job, mail.Heard)
		w.bye()
		v.bye()
		after.Close()
		before.Devices.Close()
	})
}
