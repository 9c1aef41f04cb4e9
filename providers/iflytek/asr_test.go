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

func TestASRContract(t *testing.T) {
	t.Parallel()
	providertest.TestASR(t, func(t *testing.T) providers.ASR { return open(t, section(fake.New(t), service.ASR, spark)) }, tone)
}

func TestASRFaults(t *testing.T) {
	t.Parallel()
	for fault, want := range map[servicetest.Fault]string{
		servicetest.None: "", servicetest.WrongKey: "unauthorized", servicetest.NoMoney: "unauthorized", servicetest.RateLimited: "rate_limited",
		servicetest.WrongModel: "bad_request", servicetest.ClockAhead: "", servicetest.Slow: "", servicetest.Odd: "", servicetest.Parts: "",
		servicetest.Late: "", servicetest.Silent: "unavailable", servicetest.Cut: "unavailable", servicetest.Closed: "unavailable",
		servicetest.Broken: "unavailable", servicetest.Huge: "any", // the text before it is taken if the message takes too long
	} {
		models := []string{spark, iat}
		if want == "unavailable" || want == "any" {
			models = models[:1] // both services fail alike
		}
		for _, model := range models {
			t.Run(fault.String()+" "+model, func(t *testing.T) {
				t.Parallel()
				s := fake.New(t)
				s.Fail(fault)
				partials, tr, err := hear(t.Context(), t, open(t, section(s, service.ASR, model)), tone)
				failed, ok := errors.AsType[*providers.Error](err)
				switch {
				case want == "" && (err != nil || partials == 0 || tr.Text != servicetest.Words || tr.Provider != "xf"):
					t.Errorf("heard %+v after %d partial texts, %v", tr, partials, err)
				case want == "any":
				case want != "" && (!ok || failed.Kind.String() != want || strings.Contains(err.Error(), servicetest.Secret) || strings.Contains(err.Error(), "signature=")):
					t.Errorf("failed with %v, want %s", err, want)
				}
			})
		}
	}
}

func TestSilenceIsNothing(t *testing.T) {
	t.Parallel()
	for _, model := range []string{spark, iat} {
		if _, tr, err := hear(t.Context(), t, open(t, section(fake.New(t), service.ASR, model)), make([]int16, 8000)); tr.Text != "" || err != nil {
			t.Errorf("of silence: %+v, %v", tr, err)
		}
	}
}

// The service ends its sessions at a pause of its own choice: what is said after that
// goes into another one.
func TestSessionsThatTheServiceEnds(t *testing.T) {
	t.Parallel()
	s := fake.New(t)
	s.Fail(servicetest.Ends)
	_, tr, err := hear(t.Context(), t, open(t, section(s, service.ASR, spark)), tone)
	if err != nil || len(tr.Text) <= len(servicetest.Words)/2 || s.Conns() < 2 {
		t.Errorf("heard %+v in %d sessions, %v", tr, s.Conns(), err)
	}
}

// A session takes a minute at most: what is longer goes on in another one.
func TestSessionsAreNotTooLong(t *testing.T) {
	t.Parallel()
	s := fake.New(t)
	c, err := newClient(section(s, service.ASR, iat), iatAddress)
	if err != nil {
		t.Fatal(err)
	}
	e := &ears{client: c, longest: 9600, accent: "mandarin"}
	a := recognition.New(recognition.Options{Account: c.dialer.Account(), Dial: e.dial, Frame: soundFrame, Pace: 2})
	_, tr, err := hear(t.Context(), t, a, tone)
	if err != nil || s.Conns() != 2 || len(tr.Text) <= len(servicetest.Words) {
		t.Errorf("heard %+v in %d sessions, %v", tr, s.Conns(), err)
	}
}

func TestCancelledWhileTheServiceIsSilent(t *testing.T) {
	t.Parallel()
	s := fake.New(t)
	s.Fail(servicetest.Silent)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, _, err := hear(ctx, t, open(t, section(s, service.ASR, spark)), tone); err != context.DeadlineExceeded || time.Since(begun) > 130*time.Millisecond { //nolint:errorlint // it must be unchanged
		t.Errorf("got %v after %v", err, time.Since(begun))
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
