package volcengine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/volcengine"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
	"xiaozhi/providers/volcframe"
)

var tone = servicetest.Samples(servicetest.Speech(strings.Repeat("a", 30), 16000))

// section is a section for a fake.
func section(s *servicetest.Server) service.Section {
	return service.Section{
		Name: "volc", Key: servicetest.Key, ID: servicetest.ID, BaseURL: s.URL(),
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
func hear(ctx context.Context, t *testing.T, a providers.ASR, pcm []int16, phrases ...string) (partials int, final providers.Transcript, err error) {
	t.Helper()
	stream, err := a.Open(ctx, providers.ASRRequest{Rate: 16000, Language: "ja-JP", Phrases: phrases})
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

func TestRecogniserContract(t *testing.T) {
	providertest.TestRecogniserContract(t, providertest.Case{
		Kind: Kind(), Fake: fake.New,
		Kinds: map[servicetest.Fault][]providers.Kind{
			servicetest.WrongModel: {providers.Unauthorized}, // a resource that was not bought
		},
		Skip: map[servicetest.Fault]string{servicetest.WrongVoice: "a recogniser has none"},
	})
}

// The new console has one key, and no app id.
func TestKeyAloneAndModes(t *testing.T) {
	for _, mode := range []string{"bigmodel", "bigmodel_async", "bigmodel_nostream"} {
		s := fake.New(t)
		sec := section(s)
		sec.ID, sec.Settings = "", map[string]any{"mode": mode}
		sec.Extra = map[string]any{"request": map[string]any{"enable_ddc": true}}
		if _, tr, err := hear(t.Context(), t, open(t, sec), tone, "lamp"); tr.Text != servicetest.Words || err != nil {
			t.Errorf("%s: %+v, %v", mode, tr, err)
		}
	}
}

func TestRequestSaysWhatWasSet(t *testing.T) {
	for mode, language := range map[string]string{"bigmodel_nostream": "ja-JP", "bigmodel_async": ""} {
		e := &ears{mode: mode, window: 3000, uid: "me", extra: map[string]any{"request": map[string]any{"enable_ddc": true}}}
		b, err := e.request(providers.ASRRequest{Rate: 16000, Language: "ja-JP", Phrases: []string{"lamp", strings.Repeat("x", maxHotwords), "fan"}})
		if err != nil {
			t.Fatal(err)
		}
		var h struct {
			hearing
			Request struct {
				hearingRequest
				DDC bool `json:"enable_ddc"`
			} `json:"request"`
		}
		if err := json.Unmarshal(b[8:], &h); err != nil {
			t.Fatal(err)
		}
		if h.Audio.Language != language || h.User.UID != "me" || !h.Request.DDC || h.Request.Model != "bigmodel" || h.Request.EndWindow != 3000 ||
			h.Request.Corpus.Context != `{"hotwords":[{"word":"lamp"},{"word":"fan"}]}` {
			t.Errorf("%s: %s", mode, b[8:])
		}
	}
}

func TestRefusedUpgrades(t *testing.T) {
	for _, test := range []struct {
		code  uint32
		words string
		want  providers.Kind
	}{
		{45000292, "quota exceeded for types: concurrency", providers.RateLimited},
		{45000292, "quota exceeded for types: audio_duration_lifetime", providers.NoCredit},
		{45000000, "speaker permission denied: get resource id: access denied", providers.Unauthorized},
		{55000000, "resource ID is mismatched with speaker related resource", providers.BadRequest},
		{45000001, "bad parameter", providers.BadRequest},
		{45000151, "bad audio", providers.BadRequest},
		{40402003, "TTSExceededTextLimit", providers.BadRequest},
		{55000031, "busy", providers.Unavailable},
		{45000081, "timeout", providers.Unavailable},
		{0, "Invalid X-Api-Key", providers.Unauthorized},
		{0, "", providers.Unavailable},
	} {
		if got := volcframe.KindOf(test.code, test.words, providers.Unavailable); got != test.want {
			t.Errorf("%d %q is %v, want %v", test.code, test.words, got, test.want)
		}
	}
}

// The mode that answers at the end only says so: nobody waits for its partial texts.
func TestModeWithoutPartialTexts(t *testing.T) {
	for mode, want := range map[string]bool{hearMode: true, wholeMode: false, oldMode: true} {
		a, err := Kind().ASR(service.Section{Name: "volc", Key: servicetest.Key, Settings: map[string]any{"mode": mode}})
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := a.(interface{ Streams() bool }); !ok || s.Streams() != want {
			t.Errorf("%s streams: want %v", mode, want)
		}
	}
}

// TestAnswersOfOtherForms: the vendor's pages say list where its service sends an object, and
// leave out the text where there are utterances.
func TestAnswersOfOtherForms(t *testing.T) {
	for in, want := range map[string]struct {
		words    string
		definite bool
	}{
		`{"result":{"text":"a","utterances":null}}`:                                              {"a", false},
		`{"result":[{"text":"a"},{"text":"b"}]}`:                                                 {"a b", false},
		`{"result":{"text":"a","utterances":[{"text":"a","definite":true}]},"audio_info":7}`:     {"a", true},
		`{"result":{"utterances":[{"text":"a","definite":true},{"text":"b","definite":false}]}}`: {"a b", false},
		`{"code":20000000,"result":{"text":"a","additions":{"x":1}}}`:                            {"a", false},
		`{"audio_info":{"duration":"12"}}`:                                                       {"", false},
		`{"result":"soon"}`:                                                                      {"", false},
		``:                                                                                       {"", false},
	} {
		words, definite, err := parseHeard([]byte(in))
		if err != nil || words != want.words || definite != want.definite {
			t.Errorf("%s: %q %v, %v", in, words, definite, err)
		}
	}
	for in, want := range map[string]providers.Kind{
		`{"code":45000001,"message":"bad parameter"}`:                         providers.BadRequest,
		`{"code":"45000292","error":"quota exceeded for types: concurrency"}`: providers.RateLimited,
		`{"error":"requested resource not granted"}`:                          providers.Unauthorized,
	} {
		_, _, err := parseHeard([]byte(in))
		if refused, ok := errors.AsType[*transport.Refusal](err); !ok || refused.Kind != want {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// TestAddressOfAPage: an address may be copied from the vendor's page, with the path of a mode.
func TestAddressOfAPage(t *testing.T) {
	for _, path := range []string{"/", "/api/v3/sauc/bigmodel", "/api/v3/sauc/bigmodel_async"} {
		s := fake.New(t)
		sec := section(s)
		sec.BaseURL = s.WS() + path
		if _, tr, err := hear(t.Context(), t, open(t, sec), tone); tr.Text != servicetest.Words || err != nil {
			t.Errorf("%s: %+v, %v", path, tr, err)
		}
	}
}
