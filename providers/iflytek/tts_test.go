package iflytek

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/iflytek"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

func TestVoiceContract(t *testing.T) {
	for _, model := range []string{online, oral} {
		t.Run(model, func(t *testing.T) {
			var skip map[servicetest.Fault]string
			if model == oral {
				skip = map[servicetest.Fault]string{servicetest.Silent: waits, servicetest.Huge: waits, servicetest.Slow: waits}
			}
			providertest.TestVoiceContract(t, providertest.Case{
				Causes: map[servicetest.Fault][]transport.Cause{ // its codes say no more
					servicetest.NoMoney: {transport.CauseLicence}, servicetest.WrongModel: {transport.CauseRequest},
				},
				Skip: skip,
				Kind: Kind(), Fake: fake.New,
				Section: func(s *service.Section) { s.Models = map[service.Role]string{service.TTS: model} },
				Kinds: map[servicetest.Fault][]providers.Kind{
					// One code says that a service, a voice or its quota is not there.
					servicetest.NoMoney: {providers.Unauthorized}, servicetest.WrongVoice: {providers.Unauthorized},
				},
			})
		})
	}
}

// Only some of the super-humanoid voices are asked how much they are to speak as people do.
func TestOralVoicesAreAsked(t *testing.T) {
	for voice, want := range map[string]bool{"x4_lingfeiyi_oral": true, "x5_lingxiaoxuan_flow": false} {
		b, err := json.Marshal((&speech{rate: oralRate}).oralFrame("a", voice))
		if got := strings.Contains(string(b), `"oral":{"oral_level":"mid"`); err != nil || got != want {
			t.Errorf("%s: %s", voice, b)
		}
	}
}

func TestRefusalWithoutData(t *testing.T) {
	_, err := parseClassic([]byte(`{"code":11200,"message":"licc limit","sid":"s","data":""}`))
	if r, ok := errors.AsType[*transport.Refusal](err); !ok || r.Code != "11200" {
		t.Errorf("got %v", err)
	}
}

// A voice may have another rate than was asked for, and says so.
func TestRateThatComes(t *testing.T) {
	a, err := parseLarge([]byte(`{"header":{"code":0,"status":1},"payload":{"audio":{"audio":"AAA=","sample_rate":16000,"status":1}}}`))
	if err != nil || a.rate != 16000 || len(a.sound) != 2 {
		t.Errorf("%+v, %v", a, err)
	}
	if (&speech{rate: 24000, comes: a.rate}).Rate() != 16000 {
		t.Error("the rate that was asked for is taken")
	}
}

func TestServiceOfAVoice(t *testing.T) {
	for voice, want := range map[string]bool{
		"xiaoyan": false, "aisjiuxu": false, "x_xiaoyan": false, "x5_lingxiaoxuan_flow": true, "x4_lingxiaoxuan_oral": true, "x4_lingxiaoyu_emo": true,
	} {
		if got := superhuman(voice); got != want {
			t.Errorf("%s: super-humanoid %v, want %v", voice, got, want)
		}
	}
}

func TestTextWithoutMarkup(t *testing.T) {
	if got, want := plain("a [p500]\tb\n[=zhuo2]"), "a (p500) b (=zhuo2)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSpeeds(t *testing.T) {
	for speed, want := range map[float64]int{0: 50, 1: 50, 0.5: 0, 0.1: 0, 0.75: 25, 1.5: 75, 2: 100, 9: 100} {
		if got := level(speed); got != want {
			t.Errorf("a speed of %v is %d, want %d", speed, got, want)
		}
	}
}

func TestRates(t *testing.T) {
	for _, test := range []struct {
		asked, want int
		large       bool
	}{{0, 16000, false}, {0, 24000, true}, {8000, 8000, true}, {24000, 16000, false}, {44100, 24000, true}} {
		if got := rateOf(test.asked, test.large); got != test.want {
			t.Errorf("%+v: %d Hz", test, got)
		}
	}
}

func TestModelOfRecognitionIsNoVoice(t *testing.T) {
	for model, want := range map[string]string{iat: "", spark: "", oral: oral, online: online} {
		v, err := newTTS(section(fake.New(t), service.TTS, model))
		if err != nil {
			t.Fatal(err)
		}
		if got := v.(*voices).model; got != want {
			t.Errorf("%s: %q, want %q", model, got, want)
		}
	}
}
