package agent

import (
	"strings"
	"testing"
)

func TestInterjection(t *testing.T) {
	for _, c := range []struct {
		language string
		want     interjectKind
		texts    string // separated by |
	}{
		{"zh", interjectNothing, "。|…|😊|天|的|我|不|三|嗯天|I|e.|嗯 a|26|yeahh|the|天。"},
		{"en", interjectNothing, "you|the|I|light|bye|no|uh light|hmm. Weather|26|what|天"},
		{"zh", interjectBackchannel, "嗯|嗯嗯|嗯嗯嗯嗯嗯嗯|哦|噢，|啊|好|好的|好的。|好吧|对|对对|对对对|对啊|是吗|是吗？|是的|是啊|真的吗|这样啊|知道了|明白了|嗯，好的|哦是吗|好的好的|哈哈哈哈哈哈|谢谢|继续|OK|嗯 ok|對|真的嗎|yeah|好呀|厉害"},
		{"en", interjectBackchannel, "uh-huh|Uh huh.|mm-hmm|mhm|yeah|Yeah, yeah.|okay|OK|right|oh right|oh really?|sure|I see|got it|wow|hmm|haha|thank you|Thanks.|go on|oh, okay, I see|of course|that's right|yeah yeah yeah|嗯"},
		{"zh", interjectStop, "停|停！|停停停|等等|等一下|等一等|等|停一下|别说了|别说了别说了|闭嘴|你闭嘴|安静|够了|行了|好了好了|好了别说了|好的停|嗯等一下|小智停|小智，停一下|请停下来|你先停一下吧|别吵了|不想听了|暂停|打住|给我闭嘴|stop|等等等等|嗯够了|取消|別說了|請停一下|停止播放吧"},
		{"en", interjectStop, "stop|Stop!|stop stop stop|please stop|stop please|wait|wait wait|wait a minute|hold on|hold on a second|just a moment|hang on|shut up|oh shut up|be quiet|okay stop|no stop|yeah, enough|that's enough|that’s enough|stop talking|xiaozhi stop|hey xiaozhi, stop it|never mind|pause|okay okay stop it now|停|just one second please"},
		{"zh", interjectSpeech, "停一下我问你|等等我还没说完|停车场在哪|不对|不是|不要|错了|明天呢|今天天气|打开灯|好听吗|好不好|是不是|对不对|换一首|大声点|嗯打开灯|好的那明天呢|你好|小智|别说了讲个笑话|不不不|为什么|两百|然后呢|turn on the light|好的好的好的|等一下把灯关了|好了吗|取消闹钟|stop讲英文|嗯嗯好的知道了"},
		{"en", interjectSpeech, "stop the music and tell me|wait what|no no no|what about tomorrow|turn it off|not that one|who is he|the red|yeah but why|louder|next|skip|goodbye|um what time is it|stop it i want to|i am|stopped it|okay play music|打开灯|yes it is what i said|right right right right right"},
	} {
		for text := range strings.SplitSeq(c.texts, "|") {
			if got := interjection(text, c.language, nil); got != c.want {
				t.Errorf("%q in %q: %v, want %v", text, c.language, got, c.want)
			}
		}
	}
	for _, nothing := range []string{"", " ", "\n", "\xff"} {
		if got := interjection(nothing, "zh", []string{"", "。"}); got != interjectNothing {
			t.Errorf("%q: %v", nothing, got)
		}
	}
}

// Stop-words of the configuration count beside those that are known.
func TestInterjectionStopWords(t *testing.T) {
	words := []string{"关掉音乐", "Basta!", "stop the music", "", "…"}
	for _, c := range []struct {
		text   string
		words  []string
		before interjectKind // without the words
		want   interjectKind
	}{
		{"关掉音乐", words, interjectSpeech, interjectStop},
		{"小智，关掉音乐吧", words, interjectSpeech, interjectStop},
		{"關掉音乐。", words, interjectSpeech, interjectStop},
		{"关掉音乐打开灯", words, interjectSpeech, interjectSpeech},
		{"basta", words, interjectNothing, interjectStop},
		{"Basta basta", words, interjectSpeech, interjectStop},
		{"bastard", words, interjectNothing, interjectNothing},
		{"Stop the music, please.", words, interjectSpeech, interjectStop},
		{"别说了", words, interjectStop, interjectStop},
		{"停", []string{}, interjectStop, interjectStop},
	} {
		if got := interjection(c.text, "zh", nil); got != c.before {
			t.Errorf("%q without: %v, want %v", c.text, got, c.before)
		}
		if got := interjection(c.text, "zh", c.words); got != c.want {
			t.Errorf("%q: %v, want %v", c.text, got, c.want)
		}
	}
}

// The stop-words that end music end a reply too.
func TestInterjectionKnowsOptions(t *testing.T) {
	words := Options{}.withDefaults().StopWords
	for _, word := range words {
		if got := interjection(word, languageOf(word), words); got != interjectStop {
			t.Errorf("%q: %v", word, got)
		}
	}
}

func TestSpokenSigns(t *testing.T) {
	for text, want := range map[string]string{
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
		if got := spokenSigns(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func FuzzInterjection(f *testing.F) {
	for _, text := range []string{"", "停", "嗯嗯", "停一下我问你", "hold on", "uh-huh", "\xff", "stop\u200bit", "_", "a_b", strings.Repeat("好的", 100)} {
		f.Add(text, "zh", "停")
		f.Add(text, "en", "basta")
	}
	f.Fuzz(func(t *testing.T, text, language, stop string) {
		got := interjection(text, language, []string{stop})
		if again := interjection(text, language, []string{stop}); again != got {
			t.Errorf("%v, then %v", got, again)
		}
		if spokenSigns(text) == "" && got != interjectNothing {
			t.Errorf("%v for no words", got)
		}
		if spokenSigns(stop) != "" {
			if got := interjection(stop, language, []string{stop}); got != interjectStop {
				t.Errorf("the stop-word alone: %v", got)
			}
		}
	})
}
