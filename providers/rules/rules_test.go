package rules

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"xiaozhi/providers"
)

// phraseTexts says the phrases of the files that ship.
func phraseTexts(tb testing.TB) func(id, lang string, args ...string) string {
	tb.Helper()
	texts := map[string]map[string]string{}
	for _, lang := range []string{"zh", "en"} {
		data, err := os.ReadFile("../../prompts/phrases." + lang + ".yaml")
		if err != nil {
			tb.Fatal(err)
		}
		var phrases map[string]string
		if err := yaml.Unmarshal(data, &phrases); err != nil {
			tb.Fatal(err)
		}
		texts[lang] = phrases
	}
	return func(id, lang string, args ...string) string {
		text, ok := texts[lang][id]
		if !ok {
			tb.Errorf("no phrase %q in %q", id, lang)
		}
		for i := 0; i+1 < len(args); i += 2 {
			if !strings.Contains(text, "{"+args[i]+"}") {
				tb.Errorf("phrase %s in %s has no {%s}", id, lang, args[i])
			}
			text = strings.ReplaceAll(text, "{"+args[i]+"}", args[i+1])
		}
		return text
	}
}

var sunday = time.Date(2026, time.November, 22, 7, 25, 0, 0, time.UTC)

func newBrain(tb testing.TB, configured bool) *Brain {
	tb.Helper()
	brains.Lock()
	defer brains.Unlock()
	b := brains.made[configured]
	if b == nil {
		b = New(Options{
			Prompts: phraseTexts(tb), Name: "Xiaozhi", Now: func() time.Time { return sunday },
			Zone: time.FixedZone("CST", 8*3600), ModelConfigured: configured,
		})
		brains.made[configured] = b
	}
	return b
}

// brains are those of newBrain, which do not change once made: compiling their
// expressions takes longer than a hundred answers.
var brains = struct {
	sync.Mutex
	made map[bool]*Brain
}{made: map[bool]*Brain{}}

const percent = `{"type":"object","properties":{"%":{"type":"integer","minimum":0,"maximum":100}},"required":["%"]}`

func numberSchema(name string) json.RawMessage {
	return json.RawMessage(strings.ReplaceAll(percent, "%", name))
}

func spec(name, description string, parameters json.RawMessage) providers.ToolSpec {
	return providers.ToolSpec{Name: name, Description: description, Parameters: parameters}
}

// deviceTools are those of a speaker with a lamp, a fan and a camera.
func deviceTools() []providers.ToolSpec {
	empty := json.RawMessage(`{"type":"object","properties":{}}`)
	return []providers.ToolSpec{
		spec("self_get_device_status", "Volume, screen, battery and network.", empty),
		spec("self_audio_speaker_set_volume", "Set the volume.", numberSchema("volume")),
		spec("self_screen_set_brightness", "Set the brightness.", numberSchema("brightness")),
		spec("self_screen_set_theme", "Light or dark.", json.RawMessage(`{"type":"object","properties":{"theme":{"type":"string"}},"required":["theme"]}`)),
		spec("self_camera_take_photo", "Take a photo and explain it.", json.RawMessage(`{"type":"object","properties":{"question":{"type":"string"}},"required":["question"]}`)),
		spec("self_lamp_turn_on", "打开灯", empty),
		spec("self_lamp_turn_off", "关闭灯", empty),
		spec("self_lamp_get_state", "Get the power state of the lamp", empty),
		spec("self_fan_set_speed", "风扇的速度", numberSchema("speed")),
		spec("self_dog_dance", "让机器狗跳舞", empty),
		spec("exit", "End the conversation.", empty),
		spec("forget_conversation", "Forgets what was said.", empty),
		spec("get_current_time", "The time.", empty),
	}
}

func ask(text, lang string, tools []providers.ToolSpec) providers.LLMRequest {
	return providers.LLMRequest{
		Messages: []providers.Message{{Role: providers.RoleSystem, Content: "x"}, {Role: providers.RoleUser, Content: text}},
		Tools:    tools, Language: lang,
	}
}

// generate runs one step.
func generate(tb testing.TB, b *Brain, req providers.LLMRequest) providers.Delta {
	tb.Helper()
	var deltas []providers.Delta
	for d, err := range b.Generate(tb.Context(), req) {
		if err != nil {
			tb.Fatal(err)
		}
		deltas = append(deltas, d)
	}
	if len(deltas) != 1 || deltas[0].Provider != "rules" {
		tb.Fatalf("want one delta of rules, got %+v", deltas)
	}
	return deltas[0]
}

// show writes a delta as "text" or "tool {arguments}".
func show(d providers.Delta) string {
	var parts []string
	if d.Text != "" {
		parts = append(parts, d.Text)
	}
	for _, c := range d.ToolCalls {
		parts = append(parts, c.Name+" "+c.Arguments)
	}
	return strings.Join(parts, " + ")
}

// then gives a call its result and asks for the next step.
func then(req providers.LLMRequest, d providers.Delta, result string) providers.LLMRequest {
	req.Messages = append(req.Messages,
		providers.Message{Role: providers.RoleAssistant, Content: d.Text, ToolCalls: d.ToolCalls},
		providers.Message{Role: providers.RoleTool, Content: result, ToolCallID: d.ToolCalls[len(d.ToolCalls)-1].ID})
	return req
}

func TestFallbackSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		lang       string
		configured bool
		want       string
	}{
		{"en", false, "No language model is configured"},
		{"zh", false, "没有配置语言模型"},
		{"en", true, "language model is not answering"},
		{"zh", true, "语言模型现在没有回应"},
	} {
		d := generate(t, newBrain(t, c.configured), ask("tell me a story about dragons", c.lang, deviceTools()))
		if !d.Fallback || !strings.Contains(d.Text, c.want) {
			t.Errorf("%s, configured %v: %+v", c.lang, c.configured, d)
		}
	}
}

func TestNothingToAnswer(t *testing.T) {
	b := newBrain(t, false)
	for name, messages := range map[string][]providers.Message{
		"no messages":     nil,
		"no user":         {{Role: providers.RoleSystem, Content: "x"}},
		"assistant last":  {{Role: providers.RoleUser, Content: "stop"}, {Role: providers.RoleAssistant, Content: "OK"}},
		"empty text":      {{Role: providers.RoleUser}},
		"signs only":      {{Role: providers.RoleUser, Content: "?!… 。"}},
		"orphaned result": {{Role: providers.RoleTool, Content: "x", ToolCallID: "1"}},
	} {
		req := providers.LLMRequest{Messages: messages, Language: "en"}
		if d := generate(t, b, req); !d.Fallback {
			t.Errorf("%s: %+v", name, d)
		}
		if d, ok := b.Answer(req); ok {
			t.Errorf("%s: the fast path answers %+v", name, d)
		}
	}
}

func TestCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for d, err := range newBrain(t, false).Generate(ctx, ask("stop", "en", nil)) {
		n++
		if !errors.Is(err, context.Canceled) || d.Text != "" {
			t.Errorf("got %+v, %v", d, err)
		}
	}
	if n != 1 {
		t.Errorf("%d yields", n)
	}
}

func TestZeroOptionsWork(t *testing.T) {
	d := generate(t, New(Options{}), ask("who are you", "en", nil))
	if d.Text != "rules_who" {
		t.Errorf("got %q", d.Text)
	}
}

func TestPhrasesHaveTexts(t *testing.T) {
	say := phraseTexts(t)
	for _, id := range phraseIDs() {
		say(id, "zh")
		say(id, "en")
	}
}

func TestFastPath(t *testing.T) {
	b := newBrain(t, true)
	for _, c := range []struct {
		text, lang string
		tools      []providers.ToolSpec
		want       string // "" is left to the model
	}{
		{"stop", "en", nil, "OK."},
		{"停", "zh", nil, "好的。"},
		{"what time is it", "en", nil, "It is 3:25 PM."},
		{"几点了", "zh", nil, "现在是下午3点25分。"},
		{"set the volume to 30", "en", deviceTools(), `self_audio_speaker_set_volume {"volume":30}`},
		{"set the volume to 30", "en", nil, ""},
		{"亮度调到三十", "zh", deviceTools(), `self_screen_set_brightness {"brightness":30}`},
		{"next song", "en", []providers.ToolSpec{spec("music_next", "", nil)}, "music_next {}"},
		{"next song", "en", nil, ""},
		{"what is the date", "en", nil, ""},
		{"hello", "en", nil, ""},
		{"what can you do", "en", nil, ""},
		{"goodbye", "en", deviceTools(), ""},
		{"turn on the lamp", "en", deviceTools(), ""},
		{"what do you see", "en", deviceTools(), ""},
		{"what is the volume of a sphere", "en", deviceTools(), ""},
		{"tell me a story", "en", deviceTools(), ""},
	} {
		d, ok := b.Answer(ask(c.text, c.lang, c.tools))
		if got := show(d); got != c.want || ok != (c.want != "") {
			t.Errorf("%q: got %q, %v; want %q", c.text, got, ok, c.want)
		}
		if d.Fallback {
			t.Errorf("%q: an answer is marked as fallback", c.text)
		}
	}
}

func TestFastPathForeignCalls(t *testing.T) {
	b := newBrain(t, true)
	req := ask("louder", "en", deviceTools())
	d, ok := b.Answer(req)
	if !ok || show(d) != "self_get_device_status {}" {
		t.Fatalf("got %q, %v", show(d), ok)
	}
	second, ok := b.Answer(then(req, d, `{"audio_speaker":{"volume":45}}`))
	if !ok || show(second) != `self_audio_speaker_set_volume {"volume":55}` {
		t.Errorf("got %q, %v", show(second), ok)
	}
	d.ToolCalls[0].ID = "call_abc"
	if other, ok := b.Answer(then(req, d, `{"audio_speaker":{"volume":45}}`)); ok {
		t.Errorf("it took over the model's call: %q", show(other))
	}
}

func TestToolsOffAreNotCalled(t *testing.T) {
	b := newBrain(t, false)
	for _, text := range []string{"set the volume to 30", "louder", "turn on the lamp", "take a photo", "goodbye", "stop"} {
		req := ask(text, "en", deviceTools())
		req.NoTools = true
		if d := generate(t, b, req); len(d.ToolCalls) > 0 || d.Text == "" {
			t.Errorf("%q: %q", text, show(d))
		}
	}
}

func TestCallIDsUnique(t *testing.T) {
	b := newBrain(t, false)
	req := ask("mute", "en", deviceTools())
	seen := map[string]bool{}
	for range 20 {
		d := generate(t, b, req)
		if id := d.ToolCalls[0].ID; seen[id] {
			t.Fatalf("%s is used twice", id)
		}
		seen[d.ToolCalls[0].ID] = true
		req = then(req, d, "true")
		req.Messages = append(req.Messages, providers.Message{Role: providers.RoleUser, Content: "mute"})
	}
}

func BenchmarkAnswerUnknown(b *testing.B) {
	brain := newBrain(b, true)
	req := ask("can you tell me a long story about the history of the moon", "en", deviceTools())
	b.ReportAllocs()
	for b.Loop() {
		brain.Answer(req)
	}
}

// phraseIDs lists the phrases that the brain says.
func phraseIDs() []string {
	return []string{
		phraseOK, phraseGoodbye, phraseNoLLM, phraseLLMDown, phraseWhatCanIDo, phraseTime, phraseDate, phraseVolumeSet,
		phraseVolumeIs, phraseBrightnessSet, phraseBrightnessIs, phraseNoVolume, phraseNoBrightness, phraseNotTold,
		phraseNoStatus, phraseBattery, phraseBatteryCharging, phraseStatus, phraseNoMusic, phraseTimerSet,
		phraseNoTimer, phraseTimers, phraseOneTimer, phraseTimerLeft, phraseTimerNamed, phraseTimerDue, phraseNoPhoto,
		phraseHello, phraseThanks, phraseWho, phraseDone, phraseFailed, phraseFailedPlain,
	}
}

// TestZoneOfRequest: what the time is, and what date, is told in the zone of the request.
func TestZoneOfRequest(t *testing.T) {
	b := newBrain(t, true)
	for said, want := range map[string][2]string{ // without a zone, and in New York
		"what time is it": {"It is 3:25 PM.", "It is 2:25 AM."}, "现在几点了": {"现在是下午3点25分。", "现在是凌晨2点25分。"},
	} {
		req := ask(said, languageOf(said), nil)
		for i, zone := range []*time.Location{nil, time.FixedZone("EST", -5*3600)} {
			req.Zone = zone
			if d, ok := b.Answer(req); !ok || d.Text != want[i] {
				t.Errorf("%q in %v: %q, %v, want %q", said, zone, d.Text, ok, want[i])
			}
		}
	}
}

// TestOtherLanguages: no rule for Chinese or English fires on another language; what is said is a phrase in it.
func TestOtherLanguages(t *testing.T) {
	brain := New(Options{Prompts: func(id, lang string, _ ...string) string { return id + "." + lang }})
	for lang, all := range map[string][]string{
		"ja": {"停止", "時間", "音量最大", "再見", "明日三時提醒我", "stop", "stop music"}, "de": {"stop", "halt", "pause", "volume 5", "time"},
		"es": {"stop", "no", "volume up"}, "ko": {"stop"}, "ru": {"stop"}, "vi": {"stop", "time"}, "pt-PT": {"stop"},
	} {
		for _, said := range all {
			req := ask(said, lang, nil)
			if d, ok := brain.Answer(req); ok {
				t.Errorf("%q in %s is answered by the fast path: %+v", said, lang, d)
			}
			for d, err := range brain.Generate(t.Context(), req) {
				if err != nil || d.Text != "no_llm."+lang || !d.Fallback {
					t.Errorf("%q in %s: %+v, %v", said, lang, d, err)
				}
			}
		}
	}
	req := ask("明かりをつけて", "ja", nil)
	req.Messages = append(req.Messages, providers.Message{Role: providers.RoleAssistant, ToolCalls: []providers.ToolCall{{ID: "1", Name: "self.lamp.turn_on"}}},
		providers.Message{Role: providers.RoleTool, ToolCallID: "1", Content: "true"})
	for d, err := range brain.Generate(t.Context(), req) {
		if err != nil || d.Text != "rules_done.ja" {
			t.Errorf("after a tool that a model has called: %+v, %v", d, err)
		}
	}
	for _, lang := range []string{"zh", "zh-TW", "yue", "en", "en-GB", ""} {
		if _, ok := brain.Answer(ask("stop", lang, nil)); !ok {
			t.Errorf("stop in %q is not understood", lang)
		}
	}
}
