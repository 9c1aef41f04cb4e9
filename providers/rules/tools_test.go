package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

const deviceStatus = `{"audio_speaker":{"volume":45},"screen":{"brightness":75,"theme":"dark"},"battery":{"level":80,"charging":false},"network":{"type":"wifi","ssid":"home","signal":"strong"}}`

// TestResultsBecomeSentences plays whole turns: what is said, the results of
// the tools in order, and what the brain does after the last of them.
func TestResultsBecomeSentences(t *testing.T) {
	b := newBrain(t, false)
	for _, c := range []struct {
		said, lang string
		results    []string
		want       string
	}{
		{"set the volume to 40", "en", []string{"true"}, "OK, volume 40."},
		{"音量调到40", "zh", []string{"true"}, "好的，音量40。"},
		{"set the brightness to 40", "en", []string{`{"success":true}`}, "OK, brightness 40."},
		{"set the volume to 40", "en", []string{"false"}, "That did not work."},
		{"set the volume to 40", "en", []string{"error: the device is gone"}, "That did not work: the device is gone."},
		{"set the volume to 40", "en", []string{`{"error":{"message":"no speaker"}}`}, "That did not work: no speaker."},
		{"set the volume to 40", "en", []string{`{"success":false,"message":"busy"}`}, "That did not work: busy."},
		{"音量调到40", "zh", []string{"失败：设备离线"}, "没有成功：设备离线。"},
		{"音量调到40", "zh", []string{"调用工具失败"}, "没有成功。"},
		{"set the volume to 40", "en", []string{"tool call failed: self.audio_speaker.set_volume: no answer in time"}, "That did not work: no answer in time."},
		{"set the volume to 40", "en", []string{"invalid arguments for self_audio_speaker_set_volume: volume is missing"}, "That did not work: volume is missing."},
		{"音量调到40", "zh", []string{"MCP工具调用失败: self.audio_speaker.set_volume: no answer in time"}, "没有成功。"},
		{"louder", "en", []string{deviceStatus}, setVolume("55")},
		{"louder", "en", []string{`"` + strings.ReplaceAll(deviceStatus, `"`, `\"`) + `"`}, setVolume("55")},
		{"turn the volume up by twenty", "en", []string{deviceStatus}, setVolume("65")},
		{"turn the volume down by ninety", "en", []string{deviceStatus}, setVolume("0")},
		{"音量减二十", "zh", []string{deviceStatus}, setVolume("25")},
		{"小声点", "zh", []string{deviceStatus}, setVolume("35")},
		{"louder", "en", []string{deviceStatus, "true"}, "OK, volume 55."},
		{"brighter", "en", []string{deviceStatus, "true"}, "OK, brightness 85."},
		{"louder", "en", []string{"no idea"}, "The device did not tell me."},
		{"louder", "en", []string{"error: timeout"}, "That did not work: timeout."},
		{"what is the volume", "en", []string{deviceStatus}, "The volume is 45."},
		{"亮度多少", "zh", []string{deviceStatus}, "现在亮度是75。"},
		{"亮度多少", "zh", []string{`{"audio_speaker":{"volume":45}}`}, "设备没有告诉我。"},
		{"are you charging", "en", []string{deviceStatus}, "The battery is at 80 percent."},
		{"are you charging", "en", []string{`{"battery":{"level":20,"charging":true}}`}, "The battery is at 20 percent and charging."},
		{"还有多少电", "zh", []string{deviceStatus}, "电量还有百分之80。"},
		{"还有多少电", "zh", []string{`{}`}, "设备没有告诉我。"},
		{"device status", "en", []string{deviceStatus}, "The device is fine. The volume is 45."},
		{"take a photo", "en", []string{`{"success":true,"response":"A red cup."}`}, "A red cup."},
		{"take a photo", "en", []string{"I see a cat."}, "I see a cat."},
		{"goodbye", "en", []string{"ok"}, "Goodbye."},
		{"turn on the lamp", "en", []string{"true"}, "OK, done."},
		{"打开灯", "zh", []string{"true"}, "好的，完成了。"},
		{"打开灯", "zh", []string{"false"}, "没有成功。"},
		{"get lamp state", "en", []string{`{"power":"on","level":7}`}, "level 7, power on"},
		{"get lamp state", "en", []string{"42"}, "42"},
		{"get lamp state", "en", []string{"null"}, "OK, done."},
		{"get lamp state", "en", []string{"[1,2]"}, "OK, done."},
		{"get lamp state", "en", []string{""}, "OK, done."},
	} {
		req := ask(c.said, c.lang, deviceTools())
		d := generate(t, b, req)
		for _, text := range c.results {
			if len(d.ToolCalls) == 0 {
				t.Fatalf("%q: no call: %q", c.said, show(d))
			}
			req = then(req, d, text)
			d = generate(t, b, req)
		}
		if got := show(d); got != c.want {
			t.Errorf("%q after %q: got %q, want %q", c.said, c.results, got, c.want)
		}
	}
}

// TestTakesOverFromAModel: the model called a tool and then failed.
func TestTakesOverFromAModel(t *testing.T) {
	b := newBrain(t, true)
	req := ask("is it raining in Paris", "en", deviceTools())
	call := providers.Delta{ToolCalls: []providers.ToolCall{{ID: "call_9", Name: "weather", Arguments: "{broken"}}}
	for result, want := range map[string]string{
		"Light rain, 12 degrees.": "Light rain, 12 degrees.",
		"error: no network":       "That did not work: no network.",
	} {
		if d := generate(t, b, then(req, call, result)); d.Text != want || d.Fallback {
			t.Errorf("%q: got %+v", result, d)
		}
	}
}

func TestToolsAreFoundByShape(t *testing.T) {
	b := newBrain(t, false)
	empty := json.RawMessage(`{"type":"object","properties":{}}`)
	for _, c := range []struct {
		name, said string
		tools      []providers.ToolSpec
		want       string
	}{
		{"iot names", "set the volume to 20", []providers.ToolSpec{spec("Speaker_SetVolume", "", numberSchema("volume"))}, `Speaker_SetVolume {"volume":20}`},
		{"other property", "set the volume to 20", []providers.ToolSpec{spec("volume_set", "", numberSchema("percent"))}, `volume_set {"percent":20}`},
		{"only number", "set the volume to 20", []providers.ToolSpec{spec("set_volume", "", numberSchema("loudness"))}, `set_volume {"loudness":20}`},
		{"speaker before alarm", "set the volume to 20", []providers.ToolSpec{spec("alarm_set_volume", "", numberSchema("volume")), spec("speaker_set_volume", "", numberSchema("volume"))}, `speaker_set_volume {"volume":20}`},
		{"getter is no setter", "set the volume to 20", []providers.ToolSpec{spec("get_volume", "", numberSchema("volume"))}, "This device does not let me change its volume."},
		{"text is no number", "set the volume to 20", []providers.ToolSpec{spec("set_volume", "", json.RawMessage(`{"properties":{"volume":{"type":"string"}}}`))}, "This device does not let me change its volume."},
		{"wants more", "set the volume to 20", []providers.ToolSpec{spec("set_volume", "", json.RawMessage(`{"properties":{"volume":{"type":"integer"},"room":{"type":"string"}},"required":["volume","room"]}`))}, "This device does not let me change its volume."},
		{"broken schema", "set the volume to 20", []providers.ToolSpec{spec("set_volume", "", json.RawMessage(`{"properties":[`))}, "This device does not let me change its volume."},
		{"type list", "set the volume to 20", []providers.ToolSpec{spec("set_volume", "", json.RawMessage(`{"properties":{"volume":{"type":["integer","null"]}}}`))}, `set_volume {"volume":20}`},
		{"own range", "maximum volume", []providers.ToolSpec{spec("set_volume", "", json.RawMessage(`{"properties":{"volume":{"type":"integer","minimum":1,"maximum":21}}}`))}, `set_volume {"volume":21}`},
		{"no status to ask", "louder", []providers.ToolSpec{spec("set_volume", "", numberSchema("volume"))}, `set_volume {"volume":60}`},
		{"no status to ask", "quieter", []providers.ToolSpec{spec("set_volume", "", numberSchema("volume"))}, `set_volume {"volume":40}`},
		{"no status", "what is the volume", nil, "This device does not report its status."},
		{"no brightness", "brighter", nil, "This device does not let me change its brightness."},
		{"no camera", "take a photo", nil, "This device has no camera that I can use."},
		{"camera without question", "take a photo", []providers.ToolSpec{spec("camera_capture", "", empty)}, "camera_capture {}"},
		{"no exit", "goodbye", nil, "Goodbye."},
		{"stop music", "stop", []providers.ToolSpec{spec("dog_stop", "", empty), spec("music_stop", "", empty)}, "music_stop {}"},
		{"stop what moves", "stop", []providers.ToolSpec{spec("self_dog_stop", "", empty)}, "self_dog_stop {}"},
		{"next", "skip this song", []providers.ToolSpec{spec("player_next_track", "", nil)}, "player_next_track {}"},
		{"pause", "pause", []providers.ToolSpec{spec("pause_music", "", nil)}, "pause_music {}"},
		{"timer in seconds", "set a timer for five minutes", []providers.ToolSpec{spec("set_timer", "", numberSchema("seconds"))}, `set_timer {"seconds":300}`},
		{"timer in minutes", "set a ten minute timer", []providers.ToolSpec{spec("timer_start", "", numberSchema("minutes"))}, `timer_start {"minutes":10}`},
		{"timer told in words", "remind me in an hour", []providers.ToolSpec{spec("reminder", "", json.RawMessage(`{"properties":{"delay":{"type":"integer","description":"Delay in minutes"},"text":{"type":"string"}},"required":["delay","text"]}`))}, `reminder {"delay":60,"text":"remind me in an hour"}`},
		{"timer list is none", "set a timer for five minutes", []providers.ToolSpec{spec("list_timer", "", nil)}, "I cannot set timers yet."},
		{"two that fit", "turn on the lamp", []providers.ToolSpec{spec("a_lamp_turn_on", "", nil), spec("lamp_turn_on", "", nil), spec("self_lamp_turn_on", "", nil)}, ""},
		{"needs an argument", "play music", []providers.ToolSpec{spec("play_music", "", json.RawMessage(`{"properties":{"song":{"type":"string"}},"required":["song"]}`))}, ""},
		{"English description, Chinese speech", "关掉风扇", []providers.ToolSpec{spec("self_fan_turn_off", "Turn the fan off", nil), spec("self_fan_turn_on", "Turn the fan on", nil)}, "self_fan_turn_off {}"},
		{"one word of a description", "跳舞", []providers.ToolSpec{spec("dance", "让机器人跳舞。", nil), spec("walk", "让机器人走路。", nil)}, "dance {}"},
		{"a word of two descriptions", "机器人", []providers.ToolSpec{spec("dance", "让机器人跳舞。", nil), spec("walk", "让机器人走路。", nil)}, ""},
	} {
		d := generate(t, b, ask(c.said, map[bool]string{true: "zh", false: "en"}[text.Of(c.said) == text.Chinese], c.tools))
		got := show(d)
		if d.Fallback {
			got = ""
		}
		if got != c.want {
			t.Errorf("%s, %q: got %q, want %q", c.name, c.said, got, c.want)
		}
	}
}

// iotTools are those of a device of older firmware, as package mcp makes them.
func iotTools() []providers.ToolSpec {
	none := json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	integer := func(name string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{"` + name + `":{"type":"integer","description":"0到100之间的整数"}},"required":["` + name + `"],"additionalProperties":false}`)
	}
	return []providers.ToolSpec{
		spec("self_speaker_get_volume", "当前音量值；扬声器", none), spec("self_speaker_set_volume", "设置音量；扬声器", integer("volume")),
		spec("self_screen_get_brightness", "当前亮度；屏幕", none), spec("self_screen_set_brightness", "设置亮度；屏幕", integer("brightness")),
		spec("self_battery_get_charging", "是否充电；电池", none), spec("self_battery_get_level", "当前电量；电池", none),
		spec("self_lamp_get_power", "灯是否打开；一个测试用的灯", none),
		spec("self_lamp_turn_off", "关闭灯；一个测试用的灯", none), spec("self_lamp_turn_on", "打开灯；一个测试用的灯", none),
	}
}

// TestOlderFirmware has no status to ask for: each property has a tool.
func TestOlderFirmware(t *testing.T) {
	b := newBrain(t, false)
	for _, c := range []struct {
		said, lang string
		results    []string
		want       string
	}{
		{"把音量调到五十", "zh", nil, `self_speaker_set_volume {"volume":50}`},
		{"set the volume to 40", "en", nil, `self_speaker_set_volume {"volume":40}`},
		{"louder", "en", nil, "self_speaker_get_volume {}"},
		{"louder", "en", []string{`{"volume":70}`}, `self_speaker_set_volume {"volume":80}`},
		{"小声点", "zh", []string{`{"note":"这是设备重新连接之前报告的，可能已经变化","volume":70}`}, `self_speaker_set_volume {"volume":60}`},
		{"what is the volume", "en", []string{`{"volume":70}`}, "The volume is 70."},
		{"what is the volume", "en", []string{`{"note":"unknown: the device has not reported it yet","volume":null}`}, "The device did not tell me."},
		{"亮度多少", "zh", []string{`{"brightness":75}`}, "现在亮度是75。"},
		{"还有多少电", "zh", nil, "self_battery_get_level {}"},
		{"还有多少电", "zh", []string{`{"level":80}`}, "电量还有百分之80。"},
		{"device status", "en", []string{`{"volume":45}`}, "The device is fine. The volume is 45."},
		{"打开灯", "zh", nil, "self_lamp_turn_on {}"},
		{"把灯打开", "zh", nil, "self_lamp_turn_on {}"},
		{"把灯关掉", "zh", nil, "self_lamp_turn_off {}"},
		{"turn on the lamp", "en", nil, "self_lamp_turn_on {}"},
		{"turn the light off", "en", nil, "self_lamp_turn_off {}"},
	} {
		req := ask(c.said, c.lang, iotTools())
		d := generate(t, b, req)
		for _, text := range c.results {
			req = then(req, d, text)
			d = generate(t, b, req)
		}
		if got := show(d); got != c.want {
			t.Errorf("%q after %q: got %q, want %q", c.said, c.results, got, c.want)
		}
	}
}

func TestTimerResult(t *testing.T) {
	b := newBrain(t, false)
	for said, want := range map[string]string{
		"set a timer for one minute": "OK, I will remind you in 1 minute.", "五分钟后提醒我": "好的，5分钟后提醒你。",
		"remind me in ninety seconds": "OK, I will remind you in 90 seconds.", "两小时后提醒我吃饭": "好的，2小时后提醒你。",
	} {
		lang := map[bool]string{true: "zh", false: "en"}[text.Of(said) == text.Chinese]
		req := ask(said, lang, []providers.ToolSpec{spec("set_timer", "", numberSchema("seconds"))})
		d := generate(t, b, req)
		if got := generate(t, b, then(req, d, "true")).Text; got != want {
			t.Errorf("%q: got %q", said, got)
		}
	}
}

func TestNameWords(t *testing.T) {
	for name, want := range map[string]string{
		"self_audio_speaker_set_volume": "self audio speaker set volume", "Speaker_SetVolume": "speaker set volume",
		"getHTTPStatus": "get httpstatus", "a--b": "a b", "": "", "灯_on": "灯 on",
	} {
		if got := strings.Join(nameWords(name), " "); got != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

// TestEveryPhraseIsUnderstood says each phrase of the grammar in several ways
// and expects that something follows from it.
func TestEveryPhraseIsUnderstood(t *testing.T) {
	b := newBrain(t, false)
	phrases := b.Phrases("zh", deviceTools())
	if !slices.Equal(phrases, b.Phrases("en", deviceTools())) {
		t.Error("the phrases differ by language")
	}
	for _, want := range []string{"turn on [the] lamp", "lamp turn on", "set [the] fan speed [to] <number>"} {
		if !slices.Contains(phrases, want) {
			t.Errorf("no phrase %q", want)
		}
	}
	said := 0
	for _, p := range phrases {
		for _, choice := range []int{0, 1, 2} {
			text := expand(p, choice)
			if text == "" {
				continue
			}
			said++
			if d := generate(t, b, ask(text, "en", deviceTools())); d.Fallback {
				t.Errorf("%q of %q is not understood", text, p)
			}
		}
	}
	t.Logf("%d phrases, %d sentences", len(phrases), said)
}

// expand says one sentence of a phrase: choice 0 leaves every option out and
// takes first alternatives, 1 takes all options and last alternatives, 2 takes
// options and first alternatives.
func expand(phrase string, choice int) string {
	pieces := patternPieces(phrase)
	var parse func(end string) []string
	parse = func(end string) []string {
		alternatives := [][]string{{}}
		for len(pieces) > 0 {
			p := pieces[0]
			pieces = pieces[1:]
			last := len(alternatives) - 1
			switch p {
			case end:
				if choice == 1 {
					return alternatives[last]
				}
				return alternatives[0]
			case "[":
				if inner := parse("]"); choice != 0 {
					alternatives[last] = append(alternatives[last], inner...)
				}
			case "(":
				alternatives[last] = append(alternatives[last], parse(")")...)
			case "|":
				alternatives = append(alternatives, []string{})
			case "<number>":
				alternatives[last] = append(alternatives[last], []string{"seven", "forty two", "one hundred"}[choice])
			default:
				alternatives[last] = append(alternatives[last], p)
			}
		}
		return alternatives[0]
	}
	return strings.Join(parse(""), " ")
}

func TestToolPhrases(t *testing.T) {
	for _, c := range []struct {
		tool providers.ToolSpec
		want string
	}{
		{spec("self_lamp_turn_on", "", nil), "lamp turn on|turn on [the] lamp"},
		{spec("self_audio_speaker_set_volume", "", numberSchema("volume")), ""},
		{spec("exit", "", nil), ""},
		{spec("led2_on", "", nil), ""},
		{spec("灯_on", "", nil), ""},
		{spec("dog_dance", "", nil), "dog dance|dance [the] dog"},
		{spec("self_screen_set_theme", "", json.RawMessage(`{"properties":{"theme":{"type":"string"}},"required":["theme"]}`)), ""},
		{spec("self_battery_get_level", "", nil), "battery get level|get [the] battery level"},
	} {
		if got := strings.Join(toolPhrases(readTools([]providers.ToolSpec{c.tool})[0]), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.tool.Name, got, c.want)
		}
	}
}
