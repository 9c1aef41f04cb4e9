package app

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/contact/watch"
	"xiaozhi/internal/devicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

// contacts checks the contact of the strict device.
type contacts struct {
	*harness
	ctx context.Context
}

// wants checks the step to look at and the first causes.
func (c contacts) wants(open string, causes ...string) contact.Contact {
	c.t.Helper()
	time.Sleep(time.Millisecond) // what goes on at this moment
	got, _ := c.app.seen.devices.Log.Get(speakerMAC, contact.Around{})
	var ids []string
	for _, why := range got.Causes {
		ids = append(ids, strings.TrimPrefix(why.ID, "contact/"))
	}
	if got.Open != open || len(ids) < len(causes) || strings.Join(ids[:len(causes)], " ") != strings.Join(causes, " ") {
		c.t.Errorf("the open step is %q with %q, want %q with %q", got.Open, ids, open, causes)
	}
	return got
}

// TestTwelveSteps drives the strict device so that each step of its contact is missing once, and then comes.
func TestTwelveSteps(t *testing.T) {
	does := script{
		asr: []providertest.Hearing{{}, {Text: "one", Language: "en"}, {Text: "two", Language: "en"}, {Text: "three", Language: "en"}},
		llm: []providertest.Step{providertest.Fail(&providers.Error{Provider: "fake", Kind: providers.Unauthorized, Err: errors.New("no credit")}), providertest.Say("It is ten o'clock in the morning, and all is well in the house.")},
		tts: []providertest.Speech{{Length: 2 * time.Second}},
		replace: func(h *harness, o *agent.Options) {
			h.app.cfg.Auth.Pairing = "ask"
		},
	}
	inMemory(t, does, func(ctx context.Context, t *testing.T, h *harness) {
		c := contacts{h, ctx}
		flash := &devicetest.Flash{}
		o := devicetest.Options{DeviceID: speakerMAC, Flash: flash, HTTPClient: h.web(), Mode: devicetest.Auto}
		c.wants("ota", "ota-once")
		if _, err := devicetest.Provision(ctx, "http://[fd00::10]:8000/xiaozhi/ota/", o); err == nil {
			t.Error("a device can use an IPv6 address")
		}
		c.wants("answer", "answer-ipv6", "answer-public")
		p, err := devicetest.Provision(ctx, otaURL, o)
		if err != nil {
			t.Fatal(err)
		}
		c.wants("activation", "activation-code")
		if lines := h.app.seen.callers(); len(lines) != 2 || !strings.Contains(lines[0], "192.168.1.40  "+speakerMAC) {
			t.Errorf("%q", lines)
		}
		time.Sleep(time.Minute)
		c.wants("activation", "activation-stopped", "activation-code")
		polls := 0
		o.HTTPClient = h.web()
		o.Waiting = devicetest.PollsOnce
		p, err = devicetest.Boot(ctx, otaURL, o, func(code string) {
			if polls++; polls == 2 {
				if got := c.wants("socket", "activation-code"); got.Code != code {
					t.Errorf("the code is %s, it says %s", got.Code, code)
				}
				if _, err := h.app.book.Accept(ctx, code, "test"); err != nil {
					t.Error(err)
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		got := c.wants("socket", "socket-wake", "socket-port", "socket-mqtt")
		if raw, _ := json.Marshal(got); got.Host != "192.0.2.10:8000" || got.Board == "" || !got.Known || strings.Contains(string(raw), p.Token) {
			t.Errorf("%s", raw)
		}
		o.Token = p.Token
		c.talks(o)
	})
}

// talks has the device connect and talk, each time one step further.
func (c contacts) talks(o devicetest.Options) {
	t, ctx := c.t, c.ctx
	t.Helper()
	foreign := o
	foreign.ClientID, foreign.NoMCP = "another", true
	c.dial(ctx, foreign).Close()
	time.Sleep(time.Second)
	if stranger := c.app.seen.devices.Log.List()[0]; !strings.HasPrefix(stranger.Device, speakerMAC+"~") {
		t.Errorf("the newest contact is %+v", stranger)
	}
	c.dial(ctx, o).Close() // it has shown its token once
	time.Sleep(time.Second)
	bare := o
	bare.Token, bare.Flash, bare.NoMCP = "a-wrong-token-of-sorts", nil, true
	c.dial(ctx, bare).Close()
	c.wants("token", "refused-token", "token-restart")
	time.Sleep(time.Second)
	mute := o
	mute.Hello = json.RawMessage(`{"type":"nothing"}`)
	short, cancel := context.WithTimeout(ctx, 20*time.Second)
	c.fails(short, mute)
	cancel()
	c.wants("hello", "hello-late", "hello-other")
	mute = o
	mute.Quirks.MuteMCP = true
	d := c.dial(ctx, mute)
	c.wants("tools", "tools-waiting", "tools-busy")
	time.Sleep(16 * time.Second)
	c.wants("tools", "tools-again")
	d.Close()
	o.NoMCP = true
	d = c.dial(ctx, o)
	c.wants("sound", "sound-listen")
	if err := d.ListenStart(devicetest.Auto); err != nil {
		t.Fatal(err)
	}
	c.wants("sound", "sound-muted")
	c.do(d.Silence(ctx, time.Second))
	c.wants("voice", "voice-silent")
	c.do(d.Say(ctx, speech(time.Second)))
	c.wants("words", "words-waiting")
	c.do(d.Silence(ctx, 2*time.Second))
	c.wants("words", "words-empty", "words-test")
	c.reply(d)
	c.utter(d)
	c.reply(d)
	c.wants("reply", "reply-error")
	c.utter(d)
	c.wants("played", "played-waiting")
	c.reply(d)
	if got := c.wants(""); got.Complete.IsZero() {
		t.Errorf("%+v", got)
	}
	c.utter(d)
	d.CloseTCP()
	time.Sleep(time.Second)
	c.wants("played", "played-gone", "gone-power")
}

func (c contacts) do(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// utter says something, and waits until it is over for the server.
func (c contacts) utter(d *devicetest.Device) {
	c.t.Helper()
	c.do(d.WaitState(c.ctx, devicetest.Listening))
	c.do(d.Say(c.ctx, speech(time.Second)))
	c.do(d.Silence(c.ctx, time.Second))
}

// reply waits for a reply to its end.
func (c contacts) reply(d *devicetest.Device) {
	c.t.Helper()
	_, err := d.WaitReply(c.ctx)
	c.do(err)
	time.Sleep(time.Second)
}

// fails connects a device whose hello is none.
func (c contacts) fails(ctx context.Context, o devicetest.Options) {
	c.t.Helper()
	near, far := net.Pipe()
	c.ln.come <- atHome{far}
	o.URL, o.NetConn = "ws://memory/xiaozhi/v1/", near
	if _, err := devicetest.Dial(ctx, o); err == nil {
		c.t.Error("it was answered")
	}
}

// TestTwoListenersAreMetered: while a device changes its mode, two listeners measure its sound (with -race).
func TestTwoListenersAreMetered(t *testing.T) {
	t.Parallel()
	devices := watch.Devices{Log: contact.New(time.Now)}
	meter := devices.Talk("d", func() bool { return false }).Options(agent.Options{}).Meter
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for range 100 {
				meter(make([]int16, 320))
			}
		})
	}
	both.Wait()
}
