package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/contact"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// TestDoctorTicksOff (J12): the twelve steps of a speaker tick off on a page that was open before it called. Each of them is missing
// once: the page stands there, with what that is likely due to, until the speaker goes on, and is never loaded anew. The command
// says the same.
func TestDoctorTicksOff(t *testing.T) {
	journey(t, deskByNight, func(t *testing.T, l look) {
		s, owner := onJourney(t)
		ctx := limit(t)
		o := devicetest.Options{
			DeviceID: deviceOfLook(12, l), ClientID: "own", Flash: &devicetest.Flash{}, Tools: devicetest.NewBoard().Tools(),
			Mode: devicetest.Manual, Waiting: devicetest.PollsOnce,
		}
		o.Limits.MaxPause, o.Limits.Tolerance = 100*time.Millisecond, 5*time.Second
		v := contactPage{l.visit(t, s, owner, "doctor/"+o.DeviceID)}
		v.Await(`document.querySelector("[data-live-switch]").textContent === document.body.dataset.live`)
		v.Text(`window.__same = "the page that was opened"`)
		v.pairs(ctx, &o)
		v.talks(ctx, v.connects(ctx, o))
		v.asks(ctx, o.DeviceID, "another speaker, or this one erased", "")
		v.Await(`document.querySelector("#steps > section li a")?.textContent.startsWith("` + o.DeviceID + `~")`)
		v.reads("checkup/also")
		if page := v.Text(`window.__same ?? "another one"`); page != "the page that was opened" {
			t.Errorf("it ends on %s", page)
		}
		v.done()
	})
}

// TestDoctorPhone: a link for phones ticks on the page when somebody opens it.
func TestDoctorPhone(t *testing.T) {
	t.Parallel()
	tab := console(t, loopback, "/console/doctor?lang=en", talkTime)
	tab.Click(`button[value="phone"]`)
	tab.Await(`document.getElementById('phone-address')?.textContent.includes('/console/phone/')`)
	opens(limit(t), t, consoleServer.use(t).base()+tab.Text(`new URL(document.getElementById('phone-address').textContent).pathname`))
	tab.Await(`document.querySelector('#phone .note')?.textContent.includes('opened on this machine itself')`)
	tab.Clean()
}

// contactPage is the page of a speaker's first contact, and who looks at it.
type contactPage struct{ *visitor }

// stands waits until the page stands at a step: all before it are ticked, and what it is likely due to that it has not come is said,
// in this order. A step that went wrong says first why.
func (v contactPage) stands(at contact.Step, state contact.State, says ...string) {
	v.t.Helper()
	var want []string
	for _, step := range contact.Steps() {
		is := contact.Missing
		switch {
		case step < at:
			is = contact.Reached
		case step == at:
			is = state
		}
		want = append(want, v.words("checkup/state-"+is.String()))
	}
	v.Await(fmt.Sprintf(`(() => {
		const steps = [...document.querySelectorAll("#steps ol > li")], open = document.querySelector("#steps [aria-current=step]");
		window.__stands = steps.map((e) => e.querySelector(".state").textContent).join();
		window.__says = [...open?.querySelectorAll("div > p.small:not(.muted):not(:has(a)), ul > li") ?? []].map((e) => e.textContent).join("\n");
		return steps.indexOf(open) === %d && __stands === %q && __says === %q;
	})()`, at, strings.Join(want, ","), strings.Join(says, "\n")))
}

// pairs goes through the steps of asking where to connect and of being accepted, up to what the speaker is told then.
func (v contactPage) pairs(ctx context.Context, o *devicetest.Options) {
	v.t.Helper()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(v.s.base(), "http://"))
	v.stands(contact.Asked, contact.Missing, v.words("contact/ota-once"), v.words("contact/ota-address"), v.words("contact/ota-port", port),
		v.words("contact/ota-https"), v.words("contact/ota-wifi"), v.words("contact/ota-firewall"))
	v.reads("checkup/never")
	v.reads("checkup/screen-means-code")

	lost := "[fd00::8]:" + port
	v.asks(ctx, o.DeviceID, o.ClientID, lost)
	v.stands(contact.Answered, contact.Failed, v.words("contact/answer-ipv6", lost), v.words("contact/answer-public", lost))
	v.asks(ctx, o.DeviceID, o.ClientID, "127.0.0.1:"+port)
	v.Await(`/^[0-9]{6}$/.test(document.querySelector("#steps .tag.num")?.textContent)`)
	waits := v.words("contact/activation-code", v.Text(`document.querySelector("#steps .tag.num").textContent`))
	v.stands(contact.Polled, contact.Missing, waits)

	times := 0
	p, err := devicetest.Boot(ctx, v.s.ota, *o, func(code string) {
		if times++; times != 2 { // it has not polled yet, or was accepted and does not know that yet
			return
		}
		v.stands(contact.Connecting, contact.Missing, waits)
		v.s.accepted(v.t)(code)
	})
	if err != nil {
		v.t.Fatal(err)
	}
	o.URL, o.Token = p.URL, p.Token
	v.stands(contact.Connecting, contact.Missing, v.words("contact/socket-wake"), v.words("contact/socket-port", "127.0.0.1:"+port), v.words("contact/socket-mqtt"))
}

// asks asks where to connect, by the name of a host; "": that of the server.
func (v contactPage) asks(ctx context.Context, device, client, host string) {
	v.t.Helper()
	a := v.s.http(ctx, v.t, "POST /xiaozhi/ota/", `{}`, func(r *http.Request) {
		r.Host, r.Header = host, http.Header{"Device-Id": {device}, "Client-Id": {client}}
	})
	if a.status != http.StatusOK {
		v.t.Fatalf("it is answered with %d: %s", a.status, a.body)
	}
}

// connects goes through those of the connection, up to a speaker that rests.
func (v contactPage) connects(ctx context.Context, o devicetest.Options) *devicetest.Device {
	v.t.Helper()
	dialRaw(v.t, v.s, o.DeviceID, "Client-Id: "+o.ClientID, "Authorization: Bearer "+o.Token).conn.Close()
	v.stands(contact.Hello, contact.Failed, v.words("contact/hello-gone", v.words("contact/end-left")), v.words("contact/hello-other"))
	lost := dialRaw(v.t, v.s, o.DeviceID, "Client-Id: "+o.ClientID)
	v.stands(contact.Token, contact.Failed, v.words("contact/refused-token"), v.words("contact/token-restart"))
	lost.conn.Close()

	conn, err := net.Dial("tcp", strings.TrimPrefix(v.s.base(), "http://"))
	if err != nil {
		v.t.Fatal(err)
	}
	g := &gate{Conn: conn, pass: make(chan struct{}, 1)}
	defer g.open()
	g.pass <- struct{}{} // what asks for the connection
	o.NetConn = g
	var d *devicetest.Device
	var dialled sync.WaitGroup
	dialled.Go(func() { d, err = devicetest.Dial(ctx, o) })
	v.stands(contact.Hello, contact.Missing, v.words("contact/hello-other"))
	g.pass <- struct{}{}
	if dialled.Wait(); err != nil {
		v.t.Fatal(err)
	}
	v.t.Cleanup(d.Close)
	v.stands(contact.Tools, contact.Missing, v.words("contact/tools-waiting"), v.words("contact/tools-busy"))
	g.open()
	v.stands(contact.Sound, contact.Missing, v.words("contact/sound-listen"))
	return d
}

// gate is a connection on which each writing waits until it may pass.
type gate struct {
	net.Conn
	pass chan struct{}
	once sync.Once
}

// open lets all pass from now on.
func (g *gate) open() { g.once.Do(func() { close(g.pass) }) }

func (g *gate) Write(b []byte) (int, error) {
	<-g.pass
	return g.Conn.Write(b)
}

// talks goes through those of a talk, up to its end.
func (v contactPage) talks(ctx context.Context, d *devicetest.Device) {
	v.t.Helper()
	sounds := func(packets [][]byte) {
		v.t.Helper()
		if err := d.SendFrames(packets...); err != nil {
			v.t.Fatal(err)
		}
	}
	mark := markOf(v.look)
	thinks, speaks := hold(v.t, fmt.Sprint("This is marker ", mark)), hold(v.t, fmt.Sprint("the rest of ", mark))
	if err := d.ListenStart(devicetest.Manual); err != nil {
		v.t.Fatal(err)
	}
	v.stands(contact.Sound, contact.Missing, v.words("contact/sound-muted"))
	v.command(ctx, contact.Sound, "contact/sound-muted")
	sounds([][]byte{devicetest.Pause(60)})
	v.stands(contact.Voice, contact.Missing, v.words("contact/voice-silent", -90.0))
	if level := v.Number(`document.querySelector("#steps [aria-current=step] meter")?.value ?? 0`); level != -90 {
		v.t.Errorf("the level of silence is %v dB", level)
	}
	v.hears()
	sounds(tone(v.t, toneOf(mark), 1200*time.Millisecond))
	v.stands(contact.Words, contact.Missing, v.words("contact/words-waiting"))
	if err := d.ListenStop(); err != nil {
		v.t.Fatal(err)
	}
	v.stands(contact.Reply, contact.Missing, v.words("contact/reply-waiting"), v.words("contact/reply-test"))
	thinks()
	v.stands(contact.Played, contact.Missing, v.words("contact/played-waiting"))
	speaks()
	if r := reply(ctx, v.t, d); !strings.Contains(r.Text(), fmt.Sprint(mark)) || r.Frames == 0 {
		v.t.Errorf("it says %q in %d frames", r.Text(), r.Frames)
	}
	v.Await(`!document.querySelector("#steps [aria-current=step]")`)
	for _, step := range v.List(`[...document.querySelectorAll("#steps ol > li")].map((e) => e.querySelector(".state").textContent)`) {
		if step != v.words("checkup/state-reached") {
			v.t.Errorf("in the end a step is %q", step)
		}
	}
}

// hears listens to what came of a microphone: the page plays it where the sound of talks is kept.
func (v contactPage) hears() {
	v.t.Helper()
	v.reads("checkup/microphone-hear")
	v.Await(`document.querySelector("#microphone audio")`)
	v.Text(`document.querySelector("#microphone audio").preload = "auto"`)
	v.Await(`document.querySelector("#microphone audio").duration > 0.05`)
}

// command sees that the command stands at a step too.
func (v contactPage) command(ctx context.Context, at contact.Step, id string) {
	v.t.Helper()
	out, err := exec.CommandContext(ctx, binary, "doctor", deviceOfLook(12, v.look), "--server", v.s.base(), "--data", filepath.Join(v.s.dir, "data")).CombinedOutput()
	ticked := fmt.Sprintf("%2d [x] ", at)
	if open := fmt.Sprintf("%2d [ ] ", at+1); err != nil || !strings.Contains(string(out), ticked) || !strings.Contains(string(out), open) || !strings.Contains(string(out), v.words(id)) {
		v.t.Errorf("the command says (%v):\n%s\nwant %q, %q and %s", err, out, ticked, open, id)
	}
}

// The marks by which the recogniser of journeys knows the tones of speakers at the doctor.
const (
	markEN = 31
	markZH = 37
)

// markOf is that of a speaker.
func markOf(l look) int {
	if l.lang == "zh" {
		return markZH
	}
	return markEN
}

// tones understands the tones of these speakers, and everything else as hello.
func tones(r *openaitest.Request) openaitest.Reply {
	if mark := deviceOf(samplesOf(r.File), 16000); mark == markEN || mark == markZH {
		return openaitest.JSON(http.StatusOK, fmt.Sprintf(`{"text":"This is marker %d speaking"}`, mark))
	}
	return openaitest.JSON(http.StatusOK, `{"text":"hello"}`)
}

// retelling is echo, with more to tell of a tone.
func retelling(r *openaitest.Request) openaitest.Reply {
	if _, mark, ok := strings.Cut(lastWords(r), "This is marker "); ok {
		return openaitest.Text("I heard marker "+mark+". ", "That is the rest of "+mark+".")
	}
	return echo(r)
}

// briefly is a tone of 60 ms for each letter, and of half a second for what is told of a tone.
func briefly(r *openaitest.Request) openaitest.Reply {
	input, _ := r.JSON()["input"].(string)
	lasts := time.Duration(len([]rune(input))) * 60 * time.Millisecond
	if strings.HasSuffix(input, " speaking.") {
		lasts = 500 * time.Millisecond
	}
	return openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, lasts), 4800)
}

// held are words and the channels of what waits with them.
var held sync.Map

// hold lets what a model or a voice is asked wait, if it has these words, until it may go on.
func hold(t *testing.T, words string) (free func()) {
	t.Helper()
	wait := make(chan struct{})
	held.Store(words, wait)
	free = sync.OnceFunc(func() { held.Delete(words); close(wait) })
	t.Cleanup(free)
	return free
}

// holding answers as a script does, when what it is asked may go on.
func holding(script openaitest.Script) openaitest.Script {
	return func(r *openaitest.Request) openaitest.Reply {
		held.Range(func(words, wait any) bool {
			if strings.Contains(string(r.Body), words.(string)) {
				<-wait.(chan struct{})
			}
			return true
		})
		return script(r)
	}
}

// opens asks for a page as a phone does, without logging in.
func opens(ctx context.Context, t *testing.T, address string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
}
