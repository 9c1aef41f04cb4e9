package music

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/turn"
	"xiaozhi/internal/text"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

// library has songs of two seconds.
type library struct{ closed []string }

func (l *library) Open(id string) (Song, error) { return &tone{l, id, 2 * 16000}, nil }
func (l *library) Next(id string) (next, title string, err error) {
	if id == "last" {
		return "", "", errors.New("no more")
	}
	return "last", "The last", nil
}

type tone struct {
	of   *library
	id   string
	left int
}

func (t *tone) Rate() int    { return 16000 }
func (t *tone) Close() error { t.of.closed = append(t.of.closed, t.id); return nil }
func (t *tone) Read(pcm []int16) (int, error) {
	n := min(len(pcm), t.left)
	if t.left -= n; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// host keeps what is announced.
type host struct {
	feature.Host
	waiting []feature.Announcement
	steps   []turn.Event
	texts   *prompts.Set
	quiet   bool
}

func (h *host) Env() feature.Env {
	return feature.Env{Texts: h.texts, Log: slog.New(slog.DiscardHandler)}
}
func (h *host) Lang() text.Lang   { return text.English }
func (h *host) Step(e turn.Event) { h.steps = append(h.steps, e) }
func (h *host) Withdraw(uint64)   { h.waiting = nil }
func (h *host) Quiet() bool       { return h.quiet }
func (h *host) Announce(a feature.Announcement) (uint64, error) {
	h.waiting = append(h.waiting, a)
	return 1, nil
}

// plays takes the one announcement that waits, and plays so much of it.
func (h *host) plays(t *testing.T, pieces int) feature.Announcement {
	t.Helper()
	if len(h.waiting) != 1 {
		t.Fatalf("%d announcements wait", len(h.waiting))
	}
	a := h.waiting[0]
	h.waiting = nil
	for range a.Sound() {
		if pieces--; pieces == 0 {
			break
		}
	}
	return a
}

// TestPlayer: a song that is cut goes on where it was heard, the next one follows, and
// the button ends it.
func TestPlayer(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	h, l := &host{texts: set}, &library{}
	p, ok := Feature{l}.Attach(h, nil).(*player)
	if !ok {
		t.Fatal("another instance")
	}
	from := feature.Caller{Lang: text.English}
	if did, err := p.handle(from, mcp.MusicArgs{Action: mcp.MusicPause}); err != nil || did.Say == "" || p.Lasts() {
		t.Errorf("nothing plays: %+v, %v", did, err)
	}
	if did, err := p.handle(from, mcp.MusicArgs{Action: mcp.MusicPlay, Song: "first", Title: "The first"}); err != nil || did.Say == "" {
		t.Fatalf("%+v, %v", did, err)
	}
	a := h.plays(t, 10) // a second
	if !a.Background || a.Resumes || a.Title != "♪ The first" || !p.Lasts() {
		t.Errorf("%+v", a)
	}
	a.Done(feature.Told{Played: 400 * time.Millisecond, Cause: turn.ErrPaused})
	if got := len(p.now.rerun); got != 16000*6/10 {
		t.Errorf("%d samples are played again, want 0.6 s", got)
	}
	a = h.plays(t, -1)
	if !a.Resumes || p.now.read != 2*16000 {
		t.Errorf("%+v after %d samples", a, p.now.read)
	}
	a.Done(feature.Told{Whole: true, Cause: turn.ErrDone})
	a = h.plays(t, 1)
	if a.Title != "♪ The last" || !slices.Equal(l.closed, []string{"first"}) {
		t.Errorf("%s follows, %q are closed", a.Title, l.closed)
	}
	p.End() // while it plays
	if p.Lasts() || len(l.closed) != 1 {
		t.Errorf("a song that is read is closed: %q", l.closed)
	}
	a.Done(feature.Told{Cause: turn.ErrAborted})
	if len(h.waiting) != 0 || !slices.Equal(l.closed, []string{"first", "last"}) {
		t.Errorf("%d wait, %q are closed", len(h.waiting), l.closed)
	}
}

// TestQuietMusic: in quiet mode a program plays nothing, and does not end what a person listens to.
func TestQuietMusic(t *testing.T) {
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{texts: set, quiet: true}
	p, _ := Feature{&library{}}.Attach(h, nil).(*player)
	play := func(from feature.Caller) error {
		_, err := p.handle(from, mcp.MusicArgs{Action: mcp.MusicPlay, Song: "first"})
		return err
	}
	if err := play(feature.Caller{}); !errors.Is(err, feature.ErrQuiet) || p.Lasts() {
		t.Errorf("a program: %v", err)
	}
	for _, from := range []feature.Caller{{Turn: 1}, {Hand: true}} {
		if err := play(from); err != nil || !h.plays(t, 1).Asked {
			t.Errorf("%+v: %v", from, err)
		}
	}
	if err := play(feature.Caller{}); !errors.Is(err, feature.ErrQuiet) || !p.Lasts() {
		t.Errorf("a program, while a song plays: %v", err)
	}
	h.quiet = false
	if err := play(feature.Caller{}); err != nil || h.plays(t, 1).Asked {
		t.Errorf("a program, later: %v", err)
	}
}

func TestPlayerWithoutLibrary(t *testing.T) {
	p := &player{Host: &host{}}
	if _, err := p.handle(feature.Caller{}, mcp.MusicArgs{Action: mcp.MusicPlay, Song: "x"}); err == nil || p.Lasts() {
		t.Errorf("it plays, %v", err)
	}
}

// TestSilentSong: while nothing comes of a song, who plays it is asked again and again whether it is still wanted.
func TestSilentSong(t *testing.T) {
	c := &current{song: silent{}}
	asked := 0
	for sound, err := range c.sounds() {
		if len(sound.PCM) > 0 || sound.Rate != 16000 || err != nil {
			t.Errorf("%+v, %v", sound, err)
		}
		if asked++; asked == 3 {
			break
		}
	}
	if asked != 3 {
		t.Errorf("asked %d times", asked)
	}
}

// silent is a song that gives nothing.
type silent struct{ Song }

func (silent) Rate() int                 { return 16000 }
func (silent) Read([]int16) (int, error) { return 0, nil }
