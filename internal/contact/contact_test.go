package contact

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/text"
)

const speaker = "24:6f:28:aa:10:02"

// watch is a log whose time the test sets.
type watch struct {
	*Log
	t   *testing.T
	now time.Time
}

func newWatch(t *testing.T) *watch {
	w := &watch{t: t, now: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)}
	w.Log = New(func() time.Time { return w.now })
	return w
}

func (w *watch) asks(change func(a *Answer)) {
	a := Answer{Caller: Caller{Device: speaker, From: "192.168.1.40", Board: "board", Known: true}, Host: "192.168.1.2:8000", URL: "ws://192.168.1.2:8000/xiaozhi/v1/"}
	if change != nil {
		change(&a)
	}
	w.Asks(a)
}

func (w *watch) arrives(change func(a *Arrival)) {
	a := Arrival{Caller: Caller{Device: speaker, From: "192.168.1.40", Known: true}}
	if change != nil {
		change(&a)
	}
	w.Arrives(a)
}

// wants checks the open step and the first causes of it.
func (w *watch) wants(open Step, causes ...string) {
	w.t.Helper()
	c, _ := w.Get(speaker, Around{})
	var got []string
	for _, cause := range c.Causes {
		got = append(got, cause.ID)
	}
	if c.Open != open.String() || len(got) < len(causes) || !slices.Equal(got[:len(causes)], causes) {
		w.t.Errorf("open is %q with %q, want %q with %q", c.Open, got, open, causes)
	}
}

// TestCauses: what a step that is missing may be due to follows from what is known.
func TestCauses(t *testing.T) {
	w := newWatch(t)
	w.wants(Asked, "contact/ota-once")
	w.asks(func(a *Answer) { a.URL = "ws://[fd00::1]:8000/" })
	w.wants(Answered, "contact/answer-ipv6")
	w.asks(func(a *Answer) { a.URL = "ws://127.0.0.1:8000/" })
	w.wants(Answered, "contact/answer-loopback")
	w.asks(func(a *Answer) { a.Size = 5000 })
	w.wants(Answered, "contact/answer-long")
	w.arrives(nil) // it could reach it after all
	w.wants(Hello)
	w.asks(func(a *Answer) { a.Refusal = Denied })
	w.wants(Polled, "contact/refused-denied")
	if h := w.Heads()[0]; h.Why.ID != "contact/refused-denied" || !h.Refused.Equal(w.now) {
		t.Errorf("%+v", h)
	}
	w.asks(func(a *Answer) { a.Code = "482913" })
	if h := w.Heads()[0]; h.Why.ID != "" {
		t.Errorf("%+v", h)
	}
	w.wants(Polled, "contact/activation-code")
	w.now = w.now.Add(time.Minute)
	w.wants(Polled, "contact/activation-stopped", "contact/activation-code")
	w.Polls(Poll{Caller{Device: speaker, From: "192.168.1.40"}, true})
	w.wants(Connecting, "contact/activation-code")
	w.asks(func(a *Answer) { a.Code = "482913" }) // firmware asks anew every ten polls
	w.wants(Connecting, "contact/activation-code")
	if c, _ := w.Get(speaker, Around{}); len(c.Causes) != 1 {
		t.Errorf("it asks for no socket before it is accepted, and that may be due to %+v", c.Causes)
	}
	w.Polls(Poll{Caller{Device: speaker, From: "192.168.1.40"}, false})
	w.wants(Connecting, "contact/socket-wake")
	w.asks(nil) // for its token
	w.wants(Connecting, "contact/socket-wake")
	if c, _ := w.Get(speaker, Around{}); c.Steps[Polled].State != Reached || c.Steps[Polled].Note.ID != "contact/note-accepted" || c.Code != "" {
		t.Errorf("it was accepted just now: %+v", c.Steps[Polled])
	}
	w.now = w.now.Add(time.Hour)
	w.asks(nil)
	if c, _ := w.Get(speaker, Around{}); c.Steps[Polled].State != Unneeded {
		t.Errorf("it was switched on again, and need not be accepted: %+v", c.Steps[Polled])
	}
	w.asks(func(a *Answer) { a.URL = "wss://speakers.example/xiaozhi/v1/" })
	w.wants(Connecting, "contact/socket-elsewhere", "contact/socket-wake", "contact/socket-certificate")
	if c, _ := w.Get(speaker, Around{PrivateCertificate: true, NoUpgrade: true}); c.Causes[1].ID != "contact/socket-private" || c.Causes[2].ID != "contact/socket-upgrade" {
		t.Errorf("%+v", c.Causes)
	}
	w.arrives(func(a *Arrival) { a.Refusal = NoUpgrade })
	w.wants(Connecting, "contact/refused-upgrade", "contact/socket-upgrade")
	w.arrives(func(a *Arrival) { a.Refusal = Stranger })
	w.wants(Token, "contact/refused-stranger", "contact/token-erased")
	w.arrives(nil)
	w.Leaves(End{Device: speaker, NoWord: true})
	w.wants(Hello, "contact/hello-late", "contact/hello-other")
	w.arrives(nil)
	w.Leaves(End{Device: speaker, Why: Quoted("gone")})
	w.wants(Hello, "contact/hello-gone", "contact/hello-other")
	w.arrives(nil)
	w.now = w.now.Add(10 * time.Second)
	w.Leaves(End{Device: speaker, Why: Quoted("gone")})
	w.wants(Hello, "contact/hello-late", "contact/hello-other")
	w.arrives(func(a *Arrival) { a.Serial = 7 })
	w.arrives(func(a *Arrival) { a.Serial = 8 })
	w.Leaves(End{Device: speaker, Serial: 7, Why: Quoted("another connection of the same device")})
	w.wants(Hello, "contact/hello-other")
	w.Leaves(End{Device: speaker, Serial: 8, Why: Quoted("gone")})
	w.wants(Hello, "contact/hello-gone")
}

// TestTalk: the steps of a talk tick off, and the next utterance begins its own anew.
func TestTalk(t *testing.T) {
	w := newWatch(t)
	var told int
	stop := w.Follow(func(device string) { told++ })
	w.asks(nil)
	w.arrives(nil)
	w.Greets(Greeting{Device: speaker, HasMCP: true, Odd: []string{"audio_params.frame_duration"}})
	w.wants(Tools, "contact/tools-waiting", "contact/tools-busy")
	w.Lists(List{Device: speaker, Tools: 7, Pages: 2, Err: "deadline", Again: 2 * time.Second})
	w.wants(Tools, "contact/tools-again", "contact/tools-busy")
	w.Lists(List{Device: speaker, Tools: 9, Pages: 3, Whole: true})
	w.wants(Sound, "contact/sound-listen", "contact/sound-format")
	w.Listens(speaker)
	w.wants(Sound, "contact/sound-format", "contact/sound-muted")
	w.Hears(speaker)
	w.wants(Voice, "contact/voice-unread")
	for db, id := range map[float64]string{-80: "contact/voice-silent", -50: "contact/voice-quiet", -20: "contact/voice-noise"} {
		w.Sounds(Level{Device: speaker, Loud: db, Length: time.Second})
		w.wants(Voice, id)
	}
	w.Speaks(speaker)
	w.wants(Words, "contact/words-waiting")
	for said, id := range map[Said]string{
		{Device: speaker, Recognizer: "r"}: "contact/words-empty", {Device: speaker, Rejected: true}: "contact/words-language",
		{Device: speaker, Recognizer: "r", Err: "no credit"}: "contact/words-failed",
	} {
		w.Says(said)
		w.wants(Words, id)
	}
	w.Replies(speaker, 4) // "pardon?" is heard, and the words are missing all the same
	w.Ends(Turn{Device: speaker, Turn: 4, Frames: 20})
	w.wants(Words)
	w.Speaks(speaker)
	w.Says(Said{Device: speaker, Chars: 12, Recognizer: "r"})
	w.wants(Reply, "contact/reply-waiting")
	w.Ends(Turn{Device: speaker, Turn: 5, Err: "failed", Attempts: []Attempt{{Op: "think", Service: "a", Fault: "no credit"}}})
	w.wants(Reply, "contact/reply-failed")
	w.Says(Said{Device: speaker, Chars: 12, Recognizer: "r"})
	w.Replies(speaker, 6)
	w.wants(Played, "contact/played-waiting")
	w.Leaves(End{Device: speaker, Why: Quoted("device closed the connection"), Gone: true})
	w.wants(Played, "contact/played-gone", "contact/gone-wifi")
	for signal, id := range map[int]string{-82: "contact/gone-weak", -51: "contact/gone-power"} {
		w.asks(func(a *Answer) { a.Signal = signal })
		w.arrives(nil)
		w.Greets(Greeting{Device: speaker})
		w.Replies(speaker, 6)
		w.Leaves(End{Device: speaker, Why: Say("contact/end-left"), Gone: true})
		w.wants(Played, "contact/played-gone", id)
	}
	for turn, over := range []func(){
		func() { w.Leaves(End{Device: speaker, Gone: true}) },
		func() { w.Ends(Turn{Device: speaker, Turn: 101, Frames: 20, Gone: true}) },
	} { // people close pages when they have heard enough
		w.arrives(func(a *Arrival) { a.Page = true })
		w.Greets(Greeting{Device: speaker})
		w.Says(Said{Device: speaker, Chars: 12, Recognizer: "r"})
		w.Replies(speaker, uint64(100+turn))
		over()
		if c, _ := w.Get(speaker, Around{}); c.Open != "" || c.Steps[Played].State != Reached || c.Steps[Played].Note.ID != "contact/note-closed" {
			t.Errorf("a closed page: %q, %+v", c.Open, c.Steps[Played])
		}
	}
	w.arrives(nil)
	w.Greets(Greeting{Device: speaker, HasMCP: true})
	w.Lists(List{Device: speaker, Tools: 9, Pages: 3, Whole: true})
	w.Replies(speaker, 8)
	w.Ends(Turn{Device: speaker, Turn: 8, Frames: 20, Err: "no credit"})
	w.wants(Reply, "contact/reply-error")
	w.Replies(speaker, 9)
	w.Ends(Turn{Device: speaker, Turn: 9, Frames: 20, Heard: 5, Err: "no voice"})
	w.wants(Played, "contact/played-failed", "contact/reply-test")
	w.Replies(speaker, 7)
	w.Ends(Turn{Device: speaker, Turn: 7, Frames: 20, Attempts: []Attempt{{Op: "think", Service: "a", Fault: "no credit"}, {Op: "think", Service: "b", Answered: true}}})
	c, _ := w.Get(speaker, Around{})
	if c.Open != "" || c.Complete.IsZero() || c.Steps[Reply].Note.ID != "contact/reply-instead" || !strings.Contains(c.Steps[Reply].Note.In(text.English), "b has answered") {
		t.Errorf("%+v", c)
	}
	for _, s := range c.Steps {
		if strings.Contains(s.Note.In(text.English)+s.Note.In(text.Chinese)+s.Title.In(text.English), "%!") {
			t.Errorf("%s: %s", s.Step, s.Note.In(text.English))
		}
	}
	was := told
	stop()
	w.Speaks(speaker)
	if was < 20 || told != was {
		t.Errorf("told %d times, then %d", was, told)
	}
}

// TestBounds: made-up devices make room, known ones stay; who was forgotten is gone.
func TestBounds(t *testing.T) {
	w := newWatch(t)
	w.asks(nil)
	for i := range 2 * maxRecords {
		w.now = w.now.Add(time.Second)
		w.Asks(Answer{Caller: Caller{Device: fmt.Sprint("invented ", i), From: "10.0.0.9"}})
	}
	w.Asks(Answer{Caller: Caller{From: "10.0.0.7"}, Refusal: Nameless})
	if c, seen := w.Get(speaker, Around{}); !seen || !c.Known {
		t.Error("a known device made room")
	}
	if all := w.List(); len(all) != maxRecords || all[0].Device != "?10.0.0.7" {
		t.Errorf("%d records, the first of %s", len(all), all[0].Device)
	}
	if heads := w.Heads(); len(heads) != maxRecords || heads[0].From != "10.0.0.7" || !heads[0].Last.Equal(w.now) {
		t.Errorf("%+v", heads[0])
	}
	if some := w.Of(speaker, "nobody"); len(some) != 1 || some[0].Device != speaker || len(some[0].Steps) != len(Steps()) {
		t.Errorf("%+v", some)
	}
	if c := w.Callers(3); len(c) != 3 || c[0].From != "10.0.0.7" || c[1].Device != fmt.Sprint("invented ", 2*maxRecords-1) {
		t.Errorf("%+v", c)
	}
	w.Forget(speaker)
	if _, seen := w.Get(speaker, Around{}); seen {
		t.Error("it was not forgotten")
	}
}

// TestDump: nothing of a request that is a secret is kept, wherever it stands, and no more than 4 KiB.
func TestDump(t *testing.T) {
	body := `{"uuid":"s3cret-client","mac_address":"24:6f","nested":{"api_token":"s3cret-x"},"broken":"s3cret-client` + strings.Repeat("y", 9000)
	r := httptest.NewRequest(http.MethodPost, "/xiaozhi/ota/?device-id=24:6f&Client_Id=s3cret-query&token=s3cret-token", nil)
	r.Header = http.Header{"Client-Id": {"s3cret-client"}, "Authorization": {"Bearer s3cret-bearer"}, "User-Agent": {"board/1 s3cret-bearer2"}, "Cookie": {"xiaozhi=s3cret-session"}}
	r.Header.Set("User-Agent", "board/1")
	got := Dump(r, []byte(body))
	if strings.Contains(got, "s3cret") || len(got) > MaxRaw || !strings.Contains(got, "24:6f") || !strings.Contains(got, "User-Agent: board/1") {
		t.Errorf("%d bytes: %s", len(got), got[:600])
	}
}

// FuzzPlain: whatever a device sends is text of a bounded length, without the values of secret members.
func FuzzPlain(f *testing.F) {
	f.Add([]byte(`{"token":"abcdefgh"}`), "abcdefgh")
	f.Add([]byte("\xff{\"Token\" : \"a\\\"b"), "token")
	f.Fuzz(func(t *testing.T, body []byte, secret string) {
		got := Plain(body, secret)
		if len(got) > MaxRaw {
			t.Errorf("%d bytes", len(got))
		}
	})
}
