package intent

import (
	"strings"
	"testing"

	"xiaozhi/internal/text"
)

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		language text.Lang
		want     Kind
		texts    string // separated by |
	}{
		{"zh", Noise, "。|…|😊|天|的|我|不|三|嗯天|I|e.|嗯 a|26|yeahh|the|天。"},
		{"en", Noise, "you|the|I|light|bye|no|uh light|hmm. Weather|26|what|天"},
		{"zh", Backchannel, "嗯|嗯嗯|嗯嗯嗯嗯嗯嗯|哦|噢，|啊|好|好的|好的。|好吧|对|对对|对对对|对啊|是吗|是吗？|是的|是啊|真的吗|这样啊|知道了|明白了|嗯，好的|哦是吗|好的好的|哈哈哈哈哈哈|谢谢|继续|OK|嗯 ok|對|真的嗎|yeah|好呀|厉害"},
		{"en", Backchannel, "uh-huh|Uh huh.|mm-hmm|mhm|yeah|Yeah, yeah.|okay|OK|right|oh right|oh really?|sure|I see|got it|wow|hmm|haha|thank you|Thanks.|go on|oh, okay, I see|of course|that's right|yeah yeah yeah|嗯"},
		{"zh", Stop, "停|停！|停停停|等等|等一下|等一等|等|停一下|别说了|别说了别说了|闭嘴|你闭嘴|安静|够了|行了|好了好了|好了别说了|好的停|嗯等一下|小智停|小智，停一下|请停下来|你先停一下吧|别吵了|不想听了|暂停|打住|给我闭嘴|stop|等等等等|嗯够了|取消|別說了|請停一下|停止播放吧"},
		{"en", Stop, "stop|Stop!|stop stop stop|please stop|stop please|wait|wait wait|wait a minute|hold on|hold on a second|just a moment|hang on|shut up|oh shut up|be quiet|okay stop|no stop|yeah, enough|that's enough|that’s enough|stop talking|xiaozhi stop|hey xiaozhi, stop it|never mind|pause|okay okay stop it now|停|just one second please"},
		{"zh", Request, "停一下我问你|等等我还没说完|停车场在哪|不对|不是|不要|错了|明天呢|今天天气|打开灯|好听吗|好不好|是不是|对不对|换一首|大声点|嗯打开灯|好的那明天呢|你好|小智|别说了讲个笑话|不不不|为什么|两百|然后呢|turn on the light|好的好的好的|等一下把灯关了|好了吗|取消闹钟|stop讲英文|嗯嗯好的知道了"},
		{"en", Request, "stop the music and tell me|wait what|no no no|what about tomorrow|turn it off|not that one|who is he|the red|yeah but why|louder|next|skip|goodbye|um what time is it|stop it i want to|i am|stopped it|okay play music|打开灯|yes it is what i said|right right right right right"},
	} {
		for words := range strings.SplitSeq(c.texts, "|") {
			if got := Classify(words, c.language, nil); got != c.want {
				t.Errorf("%q in %q: %v, want %v", words, c.language, got, c.want)
			}
		}
	}
	for _, nothing := range []string{"", " ", "\n", "\xff"} {
		if got := Classify(nothing, "zh", []string{"", "。"}); got != Noise {
			t.Errorf("%q: %v", nothing, got)
		}
	}
}

// Stop-words of the configuration count beside those that are known.
func TestClassifyStopWords(t *testing.T) {
	stops := []string{"关掉音乐", "Basta!", "stop the music", "", "…"}
	for _, c := range []struct {
		words  string
		stops  []string
		before Kind // without the words
		want   Kind
	}{
		{"关掉音乐", stops, Request, Stop},
		{"小智，关掉音乐吧", stops, Request, Stop},
		{"關掉音乐。", stops, Request, Stop},
		{"关掉音乐打开灯", stops, Request, Request},
		{"basta", stops, Noise, Stop},
		{"Basta basta", stops, Request, Stop},
		{"bastard", stops, Noise, Noise},
		{"Stop the music, please.", stops, Request, Stop},
		{"别说了", stops, Stop, Stop},
		{"停", []string{}, Stop, Stop},
	} {
		if got := Classify(c.words, "zh", nil); got != c.before {
			t.Errorf("%q without: %v, want %v", c.words, got, c.before)
		}
		if got := Classify(c.words, "zh", c.stops); got != c.want {
			t.Errorf("%q: %v, want %v", c.words, got, c.want)
		}
	}
}

func TestSpokenSigns(t *testing.T) {
	for words, want := range map[string]string{
		"":                      "",
		"Hold on!":              "hold_on",
		" That’s  it. ":         "thats_it",
		"好的 OK 停。":              "好的ok停",
		"uh-huh":                "uh_huh",
		"打 开 灯":                 "打开灯",
		"請說 a b":                "请说a_b",
		"3.5 度":                 "3_5度",
		"\u200b嗯\u200b、\u200b嗯": "嗯嗯",
	} {
		if got := spokenSigns(words); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

func FuzzClassify(f *testing.F) {
	for _, words := range []string{"", "停", "嗯嗯", "停一下我问你", "hold on", "uh-huh", "\xff", "stop\u200bit", "_", "a_b", strings.Repeat("好的", 100)} {
		f.Add(words, "zh", "停")
		f.Add(words, "en", "basta")
	}
	f.Fuzz(func(t *testing.T, words, language, stop string) {
		lang := text.Lang(language)
		got := Classify(words, lang, []string{stop})
		if again := Classify(words, lang, []string{stop}); again != got {
			t.Errorf("%v, then %v", got, again)
		}
		if spokenSigns(words) == "" && got != Noise {
			t.Errorf("%v for no words", got)
		}
		if spokenSigns(stop) != "" {
			if got := Classify(stop, lang, []string{stop}); got != Stop {
				t.Errorf("the stop-word alone: %v", got)
			}
		}
	})
}
