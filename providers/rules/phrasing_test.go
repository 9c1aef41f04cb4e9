package rules

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
)

// TestAddressedByName: people put the assistant's name before or behind what
// they want, and it has the name that the config gives it.
func TestAddressedByName(t *testing.T) {
	const now, zhNow = "It is 3:25 PM.", "现在是下午3点25分。"
	for _, c := range []struct{ name, said, want string }{
		{"", "Xiaozhi, what time is it?", now},
		{"", "hey xiaozhi what time is it", now},
		{"", "hi xiao zhi, can you tell me the time please", now},
		{"", "what time is it, xiaozhi", now},
		{"", "hello xiaozhi", "🙂 Hello, I am 小智."},
		{"", "thank you xiaozhi", "🙂 You are welcome."},
		{"", "goodbye xiaozhi", "exit {}"},
		{"", "小智小智，几点了", zhNow},
		{"", "你好小智", "🙂你好，我是小智。"},
		{"", "小智你好", "🙂你好，我是小智。"},
		{"", "谢谢小智", "🙂不客气。"},
		{"", "拜拜，小智", "exit {}"},
		{"", "小智，请帮我把音量调到五十好吗", setVolume("50")},
		{"Jarvis", "hey Jarvis, what time is it?", now},
		{"Jarvis", "good morning jarvis", "🙂 Hello, I am Jarvis."},
		{"Big Ben", "okay big ben, volume up", status},
		{"Big Ben", "stop, Big Ben!", "OK."},
		{"小爱", "小爱，现在几点了？", zhNow},
		{"小爱", "小爱小爱，开灯", "self_lamp_turn_on {}"},
		{"Jarvis", "Jarvis，几点了", zhNow},
		{"Jarvis", "Jarvis", ""},
		{"小爱", "小爱", ""},
		{"Jarvis", "who is Jarvis", ""},
		{"小爱", "小爱是谁发明的", ""},
	} {
		b := New(Options{Prompts: phraseTexts(t), Name: c.name, Now: newBrain(t, false).options.Now, Zone: newBrain(t, false).options.Zone})
		d := generate(t, b, ask(c.said, languageOf(c.said), deviceTools()))
		got := show(d)
		if d.Fallback {
			got = ""
		}
		if got != c.want {
			t.Errorf("%q, called %q: got %q, want %q", c.said, c.name, got, c.want)
		}
	}
}

func languageOf(said string) string {
	if text.Of(said) == text.Chinese {
		return "zh"
	}
	return "en"
}

// TestManyWaysToSayIt holds ways of speaking that people use beside the short
// ones of TestEnglish and TestChinese.
func TestManyWaysToSayIt(t *testing.T) {
	const enNow, enToday = "It is 3:25 PM.", "Today is Sunday, November 22."
	const zhNow, noTimer, zhNoTimer = "现在是下午3点25分。", "I cannot set timers yet.", "我现在还不能定时。"
	const nothing, zhNothing = "Nothing is playing right now.", "现在没有在播放。"
	help := generate(t, newBrain(t, false), ask("help", "en", deviceTools())).Text
	zhHelp := generate(t, newBrain(t, false), ask("帮助", "zh", deviceTools())).Text
	for want, ways := range map[string][]string{
		enNow: {
			"what time is it right now", "the time please", "Do you know the time?", "could you please tell me the current time",
			"what's the time right now please", "can you please tell me the time now",
		},
		enToday: {
			"what's the day today", "what weekday is it", "which day of the week is it today?", "tell me today's date",
			"What's the current date?", "what date is it right now",
		},
		status: {
			"turn up the volume a little bit", "crank up the volume", "turn the sound up by twenty percent", "please speak more quietly",
			"talk more loudly please", "volume +10", "volume -10", "volume down by 5", "brightness down 20", "brightness -20",
			"how much battery do you have left",
			"音量+10", "音量-10", "音量－１０", "亮度-20", "声音太小声了", "先把音量调大一点", "屏幕再亮一点好吗", "麻烦把声音开小一点",
		},
		setVolume("40"):     {"put the volume on 40", "set volume at 40 percent please", "can you put the volume at forty", "帮我把音量设成40", "现在把声音调到百分之四十吧"},
		setVolume("50"):     {"音量调到一半", "set the volume to 50%", "声音调到５０％", "把音量调到五十个百分点"},
		setBrightness("50"): {"屏幕亮度调到一半", "put the screen brightness on fifty", "请将亮度调整到百分之五十"},
		"forget_conversation {}": {
			"forget what I said", "please forget what we just said.", "Forget our conversation!", "忘掉刚才说的话", "请忘记我刚才说的", "忘了我们的对话吧", "请你忘掉我说过的一切",
		},
		"OK.":     {"nevermind", "forget it", "okay stop please", "please be quiet now", "STOP!!!"},
		"好的。":     {"停止播放音乐", "把音乐关了", "把音乐停了吧", "别吵", "别吵了", "请停一下", "停！", "够了"},
		nothing:   {"skip this one", "another song please", "play another song", "pause the song", "Next track, please."},
		zhNothing: {"先暂停", "音乐暂停", "暂停播放音乐", "请播放下一首歌吧", "跳过这首歌"},
		noTimer: {
			"start a 10 minute timer", "set an alarm for ten minutes", "remind me in ten minutes to call my mother",
			"remind me to drink water in one hour", "set a timer for an hour and a half", "set a five-minute timer please",
		},
		zhNoTimer: {
			"过五分钟提醒我", "过五分钟后叫我", "提醒我五分钟后关火", "一个半小时后提醒我", "一刻钟后提醒我", "五分钟后提醒我把衣服收进来",
		},
		zhNow:              {"报时", "报个时吧", "看看几点了", "你知道现在几点吗", "现在什么时候了", "小智，请问现在几点了呀？"},
		help:               {"what are you able to do", "tell me what you can do please", "what else can you do", "what are your functions?"},
		zhHelp:             {"你都会什么", "你会些什么", "你还会什么呀", "你能干嘛", "你有什么用", "请问你会做什么"},
		photo + `拍张照片看看"}`: {"拍张照片看看"},
		photo + `拍张照片看看这是什么"}`:                              {"拍张照片看看这是什么"},
		photo + `看看这是什么"}`:                                  {"看看这是什么"},
		photo + `看看前面有什么"}`:                                 {"看看前面有什么"},
		photo + `帮我拍张照片看看。"}`:                               {"帮我拍张照片看看。"},
		photo + `look at this and tell me what it is"}`:     {"look at this and tell me what it is"},
		photo + `take a picture and tell me what you see"}`: {"take a picture and tell me what you see"},
		"exit {}": {"see you tomorrow", "See you soon!", "小智再见", "拜拜啦"},
	} {
		for _, said := range ways {
			d := generate(t, newBrain(t, false), ask(said, languageOf(said), deviceTools()))
			if got := show(d); got != want {
				t.Errorf("%q: got %q, want %q", said, got, want)
			}
		}
	}
}

// TestNumbersOutOfRange: a number that a level cannot have, or that is written
// in another way, must not become some other number.
func TestNumbersOutOfRange(t *testing.T) {
	var w wants
	for _, said := range []string{
		"音量调到3.5", "音量0.5", "把亮度调到1.5", "音量调到-10", "音量调到五点五", "音量调到一千", "音量调到负十", "音量调到10:30",
		"set the volume to -5", "set the volume to 3.5", "set the volume to five point five", "set the volume to 10 or 20",
		"volume 1000000", "set the volume to a million", "turn the volume up to -3",
		"set a timer for -5 minutes", "set the volume to 1st",
	} {
		w = append(w, struct{ said, want string }{said, ""})
	}
	w.check(t, "en")
}

// TestPercentOfAnotherRange: fifty percent of a speaker that counts from 0 to 20
// is 10 and not its loudest; a bare number is that step.
func TestPercentOfAnotherRange(t *testing.T) {
	ranged := func(low, high string) []providers.ToolSpec {
		return []providers.ToolSpec{
			spec("set_volume", "", json.RawMessage(`{"properties":{"volume":{"type":"integer","minimum":`+low+`,"maximum":`+high+`}},"required":["volume"]}`)),
			spec("get_device_status", "", nil),
		}
	}
	for _, c := range []struct{ low, high, said, want string }{
		{"0", "20", "set the volume to 50%", "10"},
		{"0", "20", "set the volume to fifty percent", "10"},
		{"0", "20", "音量调到百分之五十", "10"},
		{"0", "20", "音量调到一半", "10"},
		{"0", "20", "音量调到8", "8"},
		{"0", "20", "set the volume to 8", "8"},
		{"0", "20", "set the volume to 50", "20"},
		{"0", "20", "set the volume to 200%", "20"},
		{"1", "21", "音量调到百分之零", "1"},
		{"1", "21", "set the volume to 100 percent", "21"},
		{"-10", "10", "set the volume to 50%", "0"},
		{"0", "255", "音量调到10%", "26"},
	} {
		d := generate(t, newBrain(t, false), ask(c.said, languageOf(c.said), ranged(c.low, c.high)))
		if got, want := show(d), `set_volume {"volume":`+c.want+`}`; got != want {
			t.Errorf("%s–%s, %q: got %q, want %q", c.low, c.high, c.said, got, want)
		}
	}
	for said, want := range map[string]string{"turn the volume up by 10%": "14", "音量减百分之二十": "8", "louder": "14", "volume +2": "14", "volume -20": "0"} {
		req := ask(said, languageOf(said), ranged("0", "20"))
		d := generate(t, newBrain(t, false), req)
		got := show(generate(t, newBrain(t, false), then(req, d, `{"volume":12}`)))
		if wanted := `set_volume {"volume":` + want + `}`; got != wanted {
			t.Errorf("%q from 12 of 20: got %q, want %q", said, got, wanted)
		}
	}
}

// TestFailureReasons: what is said when a tool failed has one language, ends
// once, and holds no name of a tool.
func TestFailureReasons(t *testing.T) {
	for _, c := range []struct{ lang, result, want string }{
		{"en", "Failed to capture photo", "That did not work: Failed to capture photo."},
		{"en", "tool call failed: self.camera.take_photo: Failed to capture photo", "That did not work: Failed to capture photo."},
		{"en", "tool call failed: self.camera.take_photo: 设备忙", "That did not work."},
		{"en", "tool call failed: light.on: the device refused.", "That did not work: the device refused."},
		{"en", `{"success":false,"message":"vision model unavailable"}`, "That did not work: vision model unavailable."},
		{"en", `{"error":"busy"}`, "That did not work: busy."},
		{"en", `{"error":{"code":-32603}}`, "That did not work: code -32603."},
		{"en", `{"isError":true,"content":[{"type":"text","text":"x"}]}`, "That did not work."},
		{"en", "error", "That did not work."},
		{"zh", "MCP工具调用失败: self.lamp.turn_on: the device refused", "没有成功。"},
		{"zh", "MCP工具调用失败: self.lamp.turn_on: 设备正忙", "没有成功：设备正忙。"},
		{"zh", "Failed to capture photo", "没有成功。"},
		{"zh", `{"success":false,"message":"vision model unavailable"}`, "没有成功。"},
		{"zh", `{"success":false,"message":"模型不可用。"}`, "没有成功：模型不可用。"},
		{"zh", "错误", "没有成功。"},
		{"zh", "失败：设备 lamp-1 离线", "没有成功：设备 lamp-1 离线。"},
	} {
		req := ask("take a photo", c.lang, deviceTools())
		b := newBrain(t, false)
		if got := generate(t, b, then(req, generate(t, b, req), c.result)).Text; got != c.want {
			t.Errorf("%s, %q: got %q, want %q", c.lang, c.result, got, c.want)
		}
	}
}

// TestBattery: only the battery's own level is told, from the tool that knows it.
func TestBattery(t *testing.T) {
	own := append(deviceTools(), spec("self_battery_get_level", "", nil))
	for _, c := range []struct {
		name, result, want string
		tools              []providers.ToolSpec
	}{
		{"level of the network", `{"audio_speaker":{"volume":45},"network":{"signal":{"level":3}}}`, "The device did not tell me.", deviceTools()},
		{"battery without level", `{"battery":{"charging":true},"screen":{"level":7}}`, "The device did not tell me.", deviceTools()},
		{"flat number", `{"battery":64}`, "The battery is at 64 percent.", deviceTools()},
		{"own tool, bare number", `80`, "The battery is at 80 percent.", own},
		{"own tool, text", `"80"`, "The battery is at 80 percent.", own},
		{"own tool, object", `{"level":80,"charging":true}`, "The battery is at 80 percent and charging.", own},
		{"own tool, nothing", `{}`, "The device did not tell me.", own},
		{"own tool fails", `false`, "That did not work.", own},
	} {
		b := newBrain(t, false)
		req := ask("how much battery is left", "en", c.tools)
		d := generate(t, b, req)
		if asked, want := d.ToolCalls[0].Name, c.tools[len(c.tools)-1].Name; want == "self_battery_get_level" && asked != want {
			t.Errorf("%s: asked %s", c.name, asked)
		}
		if got := generate(t, b, then(req, d, c.result)).Text; got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLevelAfterModelFailed: the model set the volume with further numbers
// and failed before it could say so.
func TestLevelAfterModelFailed(t *testing.T) {
	b := newBrain(t, true)
	req := ask("set the volume to 40", "en", deviceTools())
	for arguments, want := range map[string]string{
		`{"fade":3,"volume":40,"a":1}`: "OK, volume 40.", `{"a":1}`: "OK, done.", `{"volume":"40"}`: "OK, done.", `{`: "OK, done.", `null`: "OK, done.", `[7]`: "OK, done.",
	} {
		call := providers.Delta{ToolCalls: []providers.ToolCall{{ID: "call_1", Name: "self_audio_speaker_set_volume", Arguments: arguments}}}
		for range 8 { // an order that changes would show
			if got := generate(t, b, then(req, call, "true")).Text; got != want {
				t.Fatalf("%s: got %q, want %q", arguments, got, want)
			}
		}
	}
}

// TestGrammarStaysSmall: what is only typed is understood but is no part of the
// recogniser's grammar, where each sentence costs accuracy; and every part of
// the notation in it is one that the recogniser knows.
func TestGrammarStaysSmall(t *testing.T) {
	phrases := newBrain(t, false).Phrases("en", deviceTools())
	for _, p := range english(fastOnly).Typed {
		for _, way := range p.Ways {
			if slices.Contains(phrases, way) {
				t.Errorf("%q is in the grammar", way)
			}
		}
	}
	for _, p := range phrases {
		if strings.Contains(strings.ReplaceAll(p, "<number>", ""), "<") {
			t.Errorf("%q holds what no recogniser knows", p)
		}
	}
}

// FuzzResult gives tools' results of any shape: always one sentence or one
// call, and nothing of JSON is said.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		"true", "false", "null", "[]", `{"a":[{}]}`, `"\"{}\""`, "error:", "Failed to ", "失败", deviceStatus, `{"error":{}}`, `{"success":false}`,
		"{", "\xff", `{"volume":1e308}`, `{"volume":-1}`, "tool call failed: a.b: ", `{"battery":{"level":"x"}}`, `{"audio_speaker":{"volume":null}}`,
	} {
		for _, said := range []string{"louder", "take a photo", "how much battery is left", "音量多大", "打开灯", "device status"} {
			f.Add(said, seed)
		}
	}
	b := New(Options{Name: "x"})
	f.Fuzz(func(t *testing.T, said, text string) {
		req := ask(said, "", deviceTools())
		d := generate(t, b, req)
		if len(d.ToolCalls) == 0 {
			return
		}
		after := generate(t, b, then(req, d, text))
		if after.Text == "" && len(after.ToolCalls) != 1 {
			t.Fatalf("%q after %q: %+v", text, said, after)
		}
		for _, c := range after.ToolCalls {
			var arguments map[string]float64
			if json.Unmarshal([]byte(c.Arguments), &arguments) != nil {
				continue
			}
			for name, n := range arguments {
				if n < 0 || n > 100 {
					t.Fatalf("%q after %q: %s of %v is out of its range", text, said, name, n)
				}
			}
		}
	})
}
