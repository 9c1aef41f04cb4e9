package iflytek

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/iflytek"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/recognition"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

var tone = servicetest.Samples(servicetest.Speech(strings.Repeat("a", 26), 16000))

// section is a section for a fake.
func section(s *servicetest.Server, role service.Role, model string) service.Section {
	return service.Section{
		Name: "xf", Key: servicetest.Key, ID: servicetest.ID, Secret: servicetest.Secret, BaseURL: s.URL(), Models: map[service.Role]string{role: model},
		Timeouts: service.Timeouts{Connect: 2 * time.Second, First: 900 * time.Millisecond, Next: 900 * time.Millisecond},
	}
}

func open(t *testing.T, s service.Section) providers.ASR {
	t.Helper()
	a, err := Kind().ASR(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// hear has sound recognised, and returns how many partial texts came before the final one.
func hear(ctx context.Context, t *testing.T, a providers.ASR, pcm []int16) (partials int, final providers.Transcript, err error) {
	t.Helper()
	stream, err := a.Open(ctx, providers.ASRRequest{Rate: 16000, Language: "zh-CN"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.Write(pcm), stream.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	for tr, err := range stream.Transcripts() {
		if err != nil || tr.Final {
			return partials, tr, err
		}
		partials++
	}
	t.Fatal("nothing came")
	return 0, providers.Transcript{}, nil
}

// waits says why faults that only take time are tried with one of the services.
const waits = "it waits on the same socket as the other service"

func TestRecogniserContract(t *testing.T) {
	for _, model := range []string{spark, iat} {
		t.Run(model, func(t *testing.T) {
			skip := map[servicetest.Fault]string{
				servicetest.WrongVoice: "a recogniser has none",
				servicetest.Ends:       "the fake hears the same words in each session: see TestSessionsThatTheServiceEnds",
			}
			if model == iat {
				skip[servicetest.Silent], skip[servicetest.Huge] = waits, waits
			}
			providertest.TestRecogniserContract(t, providertest.Case{
				Kind: Kind(), Fake: fake.New,
				Section: func(s *service.Section) {
					s.Models = map[service.Role]string{service.ASR: model}
					s.Settings = map[string]any{"pace": 20} // the fake does not mind, and the test need not wait
				},
				Kinds: map[servicetest.Fault][]providers.Kind{servicetest.NoMoney: {providers.Unauthorized}},
				Skip:  skip,
				Causes: map[servicetest.Fault][]transport.Cause{ // its codes say no more
					servicetest.NoMoney: {transport.CauseLicence}, servicetest.WrongModel: {transport.CauseRequest},
				},
			})
		})
	}
}

// The service ends its sessions at a pause of its own choice: what is said after that
// goes into another one.
func TestSessionsThatTheServiceEnds(t *testing.T) {
	s := fake.New(t)
	s.Fail(servicetest.Ends)
	_, tr, err := hear(t.Context(), t, open(t, section(s, service.ASR, spark)), tone)
	if err != nil || len(tr.Text) <= len(servicetest.Words)/2 || s.Conns() < 2 {
		t.Errorf("heard %+v in %d sessions, %v", tr, s.Conns(), err)
	}
}

// A session takes a minute at most: what is longer goes on in another one.
func TestSessionsAreNotTooLong(t *testing.T) {
	s := fake.New(t)
	c, err := newClient(section(s, service.ASR, iat), iatAddress)
	if err != nil {
		t.Fatal(err)
	}
	e := &ears{client: c, accent: "mandarin"}
	a := recognition.New(recognition.Options{Account: c.dialer.Account(), Dial: e.dial, Frame: soundFrame, Pace: 2, Longest: 600 * time.Millisecond})
	_, tr, err := hear(t.Context(), t, a, tone)
	if err != nil || s.Conns() != 2 || len(tr.Text) <= len(servicetest.Words) {
		t.Errorf("heard %+v in %d sessions, %v", tr, s.Conns(), err)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"code":0,"data":{"status":2,"result":{"sn":1,"ws":[{"cw":[{"w":"a"}]}]}}}`))
	f.Add([]byte(`{"header":{"code":0,"status":2},"payload":{"result":{"text":"e30="},"audio":{"audio":"AAA=","status":2}}}`))
	f.Fuzz(func(_ *testing.T, message []byte) {
		p := pieces{}
		for _, parse := range []func([]byte) (answer, error){parseClassic, parseLarge} {
			if a, err := parse(message); err == nil && a.result != nil {
				p.add(*a.result)
			}
		}
		p.text()
	})
}
