package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/devicetest"
	"xiaozhi/prompts"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
)

const (
	speakerMAC = "24:6f:28:aa:10:02"
	otaURL     = "http://192.0.2.10:8000/xiaozhi/ota/"
)

// inMode runs f with a server whose model repeats what it is asked.
func inMode(t *testing.T, pairing string, f func(ctx context.Context, t *testing.T, h *harness)) {
	t.Helper()
	inMemory(t, script{replace: func(h *harness, o *agent.Options) {
		h.app.cfg.Auth.Pairing = pairing
		h.llm.Answer = repeating().Answer
	}}, f)
}

// web asks the server by HTTP, from a private network.
func (h *harness) web() *http.Client {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		h.ln.come <- atHome{far}
		return near, nil
	}}
	return &http.Client{Transport: transport, Timeout: time.Minute}
}

// boot has a device ask where to connect, and then connects it.
func (h *harness) boot(ctx context.Context, o devicetest.Options, shown func(code string)) *devicetest.Device {
	h.t.Helper()
	o.HTTPClient, o.Language = h.web(), "zh-CN"
	p, err := devicetest.Boot(ctx, otaURL, o, shown)
	if err != nil || len(p.Violations) > 0 {
		h.t.Fatalf("ota: %v, %v", err, p.Violations)
	}
	o.Token, o.Mode = p.Token, devicetest.Manual
	return h.dial(ctx, o)
}

// says types something and returns the answer.
func says(ctx context.Context, t *testing.T, d *devicetest.Device, words string) string {
	t.Helper()
	if err := d.Detect(words); err != nil {
		t.Fatal(err)
	}
	r, err := d.WaitReply(ctx)
	if err != nil {
		t.Fatalf("%s: %v", words, err)
	}
	return r.Text()
}

// request is what the model was asked last, as text, and the names of its tools.
func (h *harness) request() (words string, tools []string) {
	h.t.Helper()
	asked := h.llm.Asked()
	req := asked[len(asked)-1].Request
	data, err := json.Marshal(req.Messages)
	if err != nil {
		h.t.Fatal(err)
	}
	for _, tool := range req.Tools {
		tools = append(tools, tool.Name)
	}
	return string(data), tools
}

// called calls a tool of the gateway as the owner, and returns the answer.
func (h *harness) called(tool, arguments string) string {
	h.app.gateway.SetOwner("of the owner alone")
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/api/mcp/tools/call", strings.NewReader(`{"name":"`+tool+`","arguments":`+arguments+`}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer of the owner alone")
	w := httptest.NewRecorder()
	h.app.gateway.ServeHTTP(w, r)
	return w.Body.String()
}

// TestImpostor: who says the name of a speaker, however it is spelled, gets nothing of
// what belongs to it, and does not disturb it.
func TestImpostor(t *testing.T) {
	inMode(t, "auto", func(ctx context.Context, t *testing.T, h *harness) {
		flash := &devicetest.Flash{}
		speaker := devicetest.Options{DeviceID: speakerMAC, ClientID: "7d0f4e1c-5a0e-4a66-9a5e-0c2b8a6f1d33", Flash: flash}
		d := h.boot(ctx, speaker, nil)
		says(ctx, t, d, "my name is Berta")
		if _, tools := h.request(); !slices.Contains(tools, "set_reminder") {
			t.Errorf("the speaker has no reminders: %q", tools)
		}
		for _, said := range []string{speakerMAC, "24-6F-28-AA-10-02", "246f28aa1002", "246F.28AA.1002"} {
			for _, client := range []string{"00000000-5a0e-4a66-9a5e-0c2b8a6f1d33", "another"} {
				impostor := h.boot(ctx, devicetest.Options{DeviceID: said, ClientID: client}, nil)
				says(ctx, t, impostor, "what is my name")
				words, tools := h.request()
				if strings.Contains(words, "Berta") {
					t.Errorf("%s hears of Berta: %s", said, words)
				}
				if slices.ContainsFunc(tools, func(name string) bool { return slices.Contains(knownOnly(), name) }) {
					t.Errorf("%s has reminders: %q", said, tools)
				}
				impostor.Close()

			}
		}
		if err := h.app.book.Rename(ctx, speakerMAC, "kitchen"); err != nil {
			t.Error(err)
		}
		if done := h.called("device.abort", `{"device_id":"kitchen"}`); !strings.Contains(done, `"success":true`) {
			t.Errorf("a name that it was given while connected: %s", done)
		}
		says(ctx, t, d, "what is my name")
		if words, _ := h.request(); !strings.Contains(words, "Berta") || strings.Count(words, "what is my name") != 1 {
			t.Errorf("the speaker's own talk is another: %s", words)
		}
		d.Close()
		synctest.Wait() // until the server has noticed
		pretender := h.boot(ctx, devicetest.Options{DeviceID: "kitchen", ClientID: "its own"}, nil)
		if done := h.called("device.abort", `{"device_id":"Kitchen"}`); !strings.Contains(done, `"success":false`) {
			t.Errorf("while the speaker is away, who calls itself so gets what is meant for it: %s", done)
		}
		pretender.Close()
		if err := h.app.book.Forget(ctx, "kitchen"); err != nil {
			t.Error(err)
		}
		again := h.boot(ctx, speaker, nil) // its flash has the token, which it is not told again
		says(ctx, t, again, "and now")
		if words, _ := h.request(); !strings.Contains(words, "Berta") {
			t.Errorf("the speaker is not known again: %s", words)
		}
		if list := h.app.book.List(); len(list) != 3 || list[0].Token != "used" {
			t.Errorf("%+v", list)
		}
		for _, secret := range []string{speaker.ClientID, "00000000-5a0e-4a66-9a5e-0c2b8a6f1d33", "xzd_"} {
			if strings.Contains(h.log.String(), secret) {
				t.Errorf("the log holds %s", secret)
			}
		}
	})
}

// TestImpostorWithClientID: who knows the Client-Id too, but has not the token, cannot
// replace the speaker while it talks.
func TestImpostorWithClientID(t *testing.T) {
	inMode(t, "open", func(ctx context.Context, t *testing.T, h *harness) {
		o := devicetest.Options{DeviceID: speakerMAC, Flash: &devicetest.Flash{}}
		d := h.boot(ctx, o, nil)
		says(ctx, t, d, "my name is Berta")
		impostor := h.boot(ctx, devicetest.Options{DeviceID: speakerMAC}, nil)
		if err := impostor.ListenStart(devicetest.Auto); err != nil {
			t.Fatal(err)
		}
		if r, err := impostor.WaitReply(ctx); err != nil || r.Text() != phrase(t, prompts.PairRefused) {
			t.Errorf("%q, %v", r.Text(), err)
		}
		<-impostor.Done()
		says(ctx, t, d, "are you there")
		own := h.boot(ctx, o, nil) // it has the token, so the half-open connection ends
		<-d.Done()
		says(ctx, t, own, "what is my name")
		if words, _ := h.request(); !strings.Contains(words, "Berta") {
			t.Errorf("%s", words)
		}
	})
}

// TestPairingAloud: a speaker that connects without being paired is told its code,
// digit by digit, and talks once a person has accepted it.
func TestPairingAloud(t *testing.T) {
	inMode(t, "ask", func(ctx context.Context, t *testing.T, h *harness) {
		o := devicetest.Options{DeviceID: speakerMAC, Flash: &devicetest.Flash{}}
		d := h.dial(ctx, devicetest.Options{DeviceID: speakerMAC, OpenListen: true})
		r, err := d.WaitReply(ctx)
		code := h.app.book.List()[0].Code
		if err != nil || r.Text() != strings.ReplaceAll(phrase(t, prompts.PairCode), "{code}", strings.Join(strings.Split(code, ""), ", ")) || r.Frames == 0 {
			t.Fatalf("%q, %v", r.Text(), err)
		}
		<-d.Done()
		if len(h.llm.Asked()) > 0 || len(h.app.outside.List()) > 0 {
			t.Error("it could do something")
		}
		codes := 0
		d = h.boot(ctx, o, func(again string) {
			if codes++; again != code {
				t.Errorf("code %s, told %s", again, code)
			}
			if codes == 3 {
				if _, err := h.app.book.Accept(ctx, code, "anna"); err != nil {
					t.Error(err)
				}
			}
		})
		if codes != 3 {
			t.Errorf("it has asked %d times", codes)
		}
		if got := says(ctx, t, d, "hello there"); got != "I heard hello there." {
			t.Errorf("%q", got)
		}
	})
}

// TestNoPairing: in mode closed, and when it was refused, a device is told so.
func TestNoPairing(t *testing.T) {
	inMode(t, "closed", func(ctx context.Context, t *testing.T, h *harness) {
		d := h.boot(ctx, devicetest.Options{DeviceID: speakerMAC}, func(string) { t.Error("a code in mode closed") })
		if err := d.ListenStart(devicetest.Auto); err != nil {
			t.Fatal(err)
		}
		if r, err := d.WaitReply(ctx); err != nil || r.Text() != phrase(t, prompts.PairClosed) {
			t.Errorf("%q, %v", r.Text(), err)
		}
		<-d.Done()
	})
	inMode(t, "open", func(ctx context.Context, t *testing.T, h *harness) {
		d := h.boot(ctx, devicetest.Options{DeviceID: speakerMAC}, nil)
		if err := h.app.book.Refuse(ctx, speakerMAC, "anna"); err != nil {
			t.Fatal(err)
		}
		<-d.Done() // at once
		d = h.boot(ctx, devicetest.Options{DeviceID: speakerMAC}, func(string) { t.Error("a code for a refused device") })
		if err := d.ListenStart(devicetest.Auto); err != nil {
			t.Fatal(err)
		}
		if r, err := d.WaitReply(ctx); err != nil || r.Text() != phrase(t, prompts.PairRefused) {
			t.Errorf("%q, %v", r.Text(), err)
		}
		<-d.Done()
	})
}

// TestForgottenSpeaker: nothing of what was said is left for the next of its name, though it
// was talking just then.
func TestForgottenSpeaker(t *testing.T) {
	inMode(t, "open", func(ctx context.Context, t *testing.T, h *harness) {
		o := devicetest.Options{DeviceID: speakerMAC}
		d := h.boot(ctx, o, nil)
		says(ctx, t, d, "my name is Berta")
		if err := h.app.book.Forget(ctx, speakerMAC); err != nil {
			t.Fatal(err)
		}
		if _, err := h.app.forget(ctx, speakerMAC); err != nil {
			t.Fatal(err)
		}
		<-d.Done()
		synctest.Wait()
		says(ctx, t, h.boot(ctx, o, nil), "what is my name")
		if words, _ := h.request(); strings.Contains(words, "Berta") {
			t.Errorf("%s", words)
		}
	})
}

// TestStrangersBudget: all that are not known together may ask the model only so often.
func TestStrangersBudget(t *testing.T) {
	model := &providertest.LLM{Answer: func(providers.LLMRequest) providertest.Step { return providertest.Say("yes") }}
	limited := newStrangers().limit(agent.Options{LLM: model, MaxDaily: 2000})
	if limited.MaxDaily != unknownCalls {
		t.Errorf("%d calls a day", limited.MaxDaily)
	}
	voiced, guests := 0, newStrangers()
	for range unknownWords + 5 {
		if guests.farewell(agent.Farewell{Words: "code"}).Words != "" {
			voiced++
		}
	}
	if voiced < unknownWords || voiced > unknownWords+1 {
		t.Errorf("%d codes were said", voiced)
	}
	failed := 0
	for range unknownRequests + 5 {
		for _, err := range limited.LLM.Generate(t.Context(), providers.LLMRequest{}) {
			if err != nil {
				failed++
			}
		}
	}
	if failed < 4 || failed > 5 || len(model.Asked()) > unknownRequests+1 {
		t.Errorf("%d refused, %d asked", failed, len(model.Asked()))
	}
}

func TestFarewellOfDevices(t *testing.T) {
	texts, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		cause  error
		phrase string
		words  string
	}{
		{fmt.Errorf("busy"), prompts.Overload, ""},
		{&identity.AwayError{Verdict: identity.MustPair}, prompts.Overload, ""}, // too many wait
		{&identity.AwayError{Verdict: identity.MustPair, Code: "048291"}, prompts.PairNeeded, "0, 4, 8, 2, 9, 1"},
		{&identity.AwayError{Verdict: identity.NoPairing}, prompts.PairClosed, ""},
		{&identity.AwayError{Verdict: identity.Denied}, prompts.PairRefused, ""},
		{&identity.AwayError{Verdict: identity.AsStranger}, prompts.PairRefused, ""},
		{&identity.AwayError{Taken: true}, prompts.PairRefused, ""},
	} {
		f := farewell(tc.cause, texts, "en")
		if f.Phrase != tc.phrase || (f.Words != "") != (tc.words != "") || !strings.Contains(f.Words, tc.words) || !errors.Is(f.Cause, tc.cause) {
			t.Errorf("%v: %+v", tc.cause, f)
		}
	}
}
