package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"xiaozhi/providers"
)

// TestSpokenChinese holds what a listener hears of signs and figures that
// models write, as the words that are said.
func TestSpokenChinese(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"好的~", "好的，"},
		{"你好~我是小智", "你好，我是小智"},
		{"周一~周五", "周一到周五"},
		{"8点~9点", "八点到九点"},
		{"3~5天", "三到五天"},
		{"PM2.5是35", "PM二点五是三十五"},
		{"版本v2.4.2", "版本v二点四点二"},
		{"地址是192.168.1.100", "地址是壹九二点壹六八点壹点壹零零"},
		{"打开192.168.1.10:8000", "打开壹九二点壹六八点壹点壹零，端口八零零零"},
		{"在192.168.1.10:1234上", "在壹九二点壹六八点壹点壹零，端口壹二三四上"},
		{"5²=25", "五的平方等于二十五"},
		{"50m²的房子", "五十平方米的房子"},
		{"3m³水", "三立方米水"},
		{"½杯水", "二分之一杯水"},
		{"3½小时", "三又二分之一小时"},
		{"100-50=50", "一百减五十等于五十"},
		{"5*6=30", "五乘以六等于三十"},
		{"7*24小时", "七乘以二十四小时"},
		{"2^10等于1024", "二的十次方等于一千零二十四"},
		{"√9=3", "根号九等于三"},
		{"5>3", "五大于三"},
		{"2 < 10", "二小于十"},
		{"π约等于3.14", "派约等于三点壹四"},
		{"①打开②关闭", "一, 打开二, 关闭"},
		{"按1️⃣或者2️⃣", "按一⃣或者二⃣"},
		{"有1400000000人", "有十四亿人"},
		{"200000000", "两亿"},
		{"验证码是482913", "验证码是四八二九壹三"},
		{"激活码：100000", "激活码：壹零零零零零"},
		{"邮编100000", "邮编壹零零零零零"},
		{"110报警电话", "幺幺零报警电话"},
		{"请拨打12345热线", "请拨打幺二三四五热线"},
		{"在202房间", "在二零二房间"},
		{"今天-3℃到5℃", "今天零下三到五摄氏度"},
		{"比分3:2", "比分三比二"},
		{"24小时", "二十四小时"},
	} {
		folded, _ := fold(tc.in, zh)
		if got := chineseWords(folded); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.in, got, tc.want)
		}
	}
}

// TestSpokenEnglish is the same for English, where flite reads plain numbers.
func TestSpokenEnglish(t *testing.T) {
	f := testFront(t)
	for _, tc := range []struct{ in, want string }{
		{"at 8:00:00", "[at 8 o'clock]"},
		{"at 08:00", "[at 8 o'clock]"},
		{"at 00:00", "[at midnight]"},
		{"from 10:00-11:00", "[from 10 o'clock to 11 o'clock]"},
		{"8:30-9:45", "[8:30 to 9:45]"},
		{"8:30:15", "[8:30:15]"},
		{"at 8:00:30", "[at 8:00:30]"},
		{"3am or 10 p.m.", "[3 A M or 10 P M]"},
		{"1/2 cup and 3/4 spoon", "[one half cup and three quarters spoon]"},
		{"2/3 of it", "[two thirds of it]"},
		{"open 24/7", "[open 24 7]"},
		{"½ cup", "[one half cup]"},
		{"3½ cups", "[3 and a half cups]"},
		{"5² = 25", "[5 squared equals 25]"},
		{"a 50m² room", "[a 50 square meters room]"},
		{"2^10", "[2 to the power of 10]"},
		{"√9 = 3", "[the square root of 9 equals 3]"},
		{"5 > 3", "[5 is greater than 3]"},
		{"π is 3.14", "[pi is 3.14]"},
		{"call 1-800-555-1234", "[call 1, 8 0 0, 5 5 5, 1 2 3 4]"},
		{"call (555) 123-4567 now", "[call, 5 5 5, 1 2 3, 4 5 6 7 now]"},
		{"open 192.168.1.10", "[open 192 dot 168 dot 1 dot 10]"},
		{"version 2.4.2", "[version 2 dot 4 dot 2]"},
		{"It is 2.5 m.", "[It is 2.5 meters.]"},
		{"22/11/2026", "[November 22nd, 2026]"},
		{"6 ft and 70 lbs", "[6 feet and 70 pounds]"},
		{"press 1️⃣ or 2️⃣", "[press 1 or 2]"},
		{"① Open. ② Close.", "[1, Open. 2, Close.]"},
		{"See http://192.168.1.10:8000/x.", "[See link]"},
	} {
		if got := say(f, tc.in, en); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.in, got, tc.want)
		}
	}
}

// TestHeteronyms: characters that are read in several ways, in words that make
// the reading clear.
func TestHeteronyms(t *testing.T) {
	f := testFront(t)
	for _, tc := range []struct{ in, want string }{
		{"我要还书", "wo3 yao4 huan2 shu1"},
		{"睡觉，觉得", "shui4 jiao4, jue2 de5"},
		{"首都都是", "shou3 du1 dou1 shi4"},
		{"空调调到二十六度", "kong1 tiao2 tiao2 dao4 er4 shi2 liu4 du4"},
		{"校长很长", "xiao4 zhang3 hen3 chang2"},
		{"数学，数一数", "shu4 xue2, shu3 yi5 shu3"},
		{"头发发现", "tou2 fa5 fa1 xian4"},
		{"便宜又方便", "pian2 yi5 you4 fang1 bian4"},
		{"正月", "zheng1 yue4"},
		{"缝衣服", "feng2 yi1 fu5"},
		{"量一量", "liang2 yi5 liang2"},
		{"打倒，倒车", "da3 dao3, dao4 che1"},
		{"看守", "kan1 shou3"},
		{"薄荷", "bo4 he5"},
		{"丢三落四", "diu1 san1 la4 si4"},
		{"帽子、筷子", "mao4 zi5, kuai4 zi5"},
		{"子弹", "zi3 dan4"},
		{"不一定", "bu4 yi2 ding4"},
		{"星期一，十一点", "xing1 qi1 yi1, shi2 yi1 dian3"},
		{"会计会议", "kuai4 ji4 hui4 yi4"},
		{"我得走了", "wo3 dei3 zou3 le5"},
		{"和面，暖和", "huo2 mian4, nuan3 huo5"},
	} {
		if got := say(f, tc.in, zh); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.in, got, tc.want)
		}
	}
}

// TestRunsOfTwoLanguages: each language is spoken by its own voice, and figures
// go with the language of the sentence.
func TestRunsOfTwoLanguages(t *testing.T) {
	f := testFront(t)
	for _, tc := range []struct{ in, lang, want string }{
		{"现在播放 Yesterday Once More。", zh, "xian4 zai4 bo1 fang4 [Yesterday Once More]"},
		{"我的 IP 是 192.168.1.1", zh, "wo3 de5 [I P] shi4 yi1 jiu3 er4 dian3 yi1 liu4 ba1 dian3 yi1 dian3 yi1"},
		{"Hello你好", zh, "[Hello] ni3 hao3"},
		{"你好 John，今天 3 点见", zh, "ni3 hao3 [John] jin1 tian1 san1 dian3 jian4"},
		{"The word 苹果 means apple", en, "[The word] ping2 guo3 [means apple]"},
		{"It is 3:25 PM.", zh, "[It is 3:25 P M]"},
		{"好", en, "hao3"},
		{"42", zh, "si4 shi2 er4"},
		{"42", en, "[42]"},
		{"Please say 你好 42 times to him", en, "[Please say] ni3 hao3 [42 times to him]"},
	} {
		if got := strings.ReplaceAll(say(f, tc.in, tc.lang), ", [", " ["); got != tc.want {
			t.Errorf("%s (%s): %q, want %q", tc.in, tc.lang, got, tc.want)
		}
	}
}

// TestFiguresSpoken: whatever stands around them, no figure of a text is
// lost on the way to the voices.
func TestFiguresSpoken(t *testing.T) {
	f := testFront(t)
	const figures = "ling2 yi1 er4 san1 si4 wu3 liu4 qi1 ba1 jiu3"
	for i, name := range strings.Fields(figures) {
		n := string(rune('0' + i))
		for _, around := range []string{"第#个", "按#️⃣", "（#）", "“#”", "答案：#。", "*#*", "|#|", "a#b好", "→#", "好~#", "#!好", "/#好", "#/好", "#\n好", "好\t#", "［#］好"} {
			said := say(f, strings.ReplaceAll(around, "#", n), zh)
			if !strings.Contains(said, strings.TrimRight(name, "12345")) && !strings.Contains(said, n) && (i != 2 || !strings.Contains(said, "liang")) {
				t.Errorf("%s with %s: %q", around, n, said)
			}
		}
		for _, around := range []string{"press #️⃣", "(#)", "\"#\"", "answer: #.", "*#*", "|#|", "a-#", "→#", "~#", "#!", "/# x", "# / x", "[#]", "‘#’"} {
			if said := say(f, strings.ReplaceAll(around, "#", n), en); !strings.Contains(said, n) {
				t.Errorf("%s with %s: %q", around, n, said)
			}
		}
	}
}

// TestFirstSoundBeforeTheLast: an engine that is slow after its first sound
// does not hold that back, and the end of its time is heard as a failure.
func TestFirstSoundBeforeTheLast(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	path, _ := fakeEspeak(t, needEspeak(t)+` "$@" | { head -c 30000; while [ ! -e `+gate+` ]; do sleep 0.02; done; cat; }`)
	s := testSynthesizer(t, Options{EspeakPath: path})
	heard := false
	for snd, err := range s.Synthesize(t.Context(), providers.TTSRequest{Text: "你好，今天天气很好，我们出去玩吧。", Language: zh}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(snd.PCM) > 0 && !heard {
			heard = true
			if err := os.WriteFile(gate, nil, 0o600); err != nil { // without this the program never ends
				t.Fatal(err)
			}
		}
	}
	if !heard {
		t.Error("no sound")
	}
}

// TestEngineDiesInMidSentence: what was made is heard, then the failure is told.
func TestEngineDiesInMidSentence(t *testing.T) {
	for name, script := range map[string]string{
		"killed":        needEspeak(t) + ` "$@" | head -c 40000; kill -9 $$`,
		"exit":          needEspeak(t) + ` "$@" | head -c 40000; echo out of memory >&2; exit 7`,
		"another rate":  `printf 'RIFF\044\000\000\000WAVEfmt \020\000\000\000\001\000\001\000\100\037\000\000\200\076\000\000\002\000\020\000data\000\000\000\000'; head -c 4000 /dev/zero`,
		"stereo":        `printf 'RIFF\044\000\000\000WAVEfmt \020\000\000\000\001\000\002\000\042\126\000\000\200\076\000\000\002\000\020\000data\000\000\000\000'; head -c 4000 /dev/zero`,
		"endless chunk": `printf 'RIFF\044\000\000\000WAVEjunk\377\377\377\377'; head -c 100000 /dev/zero`,
		"header alone":  `printf 'RIFF\044\000\000\000WAVE'`,
	} {
		path, _ := fakeEspeak(t, script)
		pcm, _, err := collect(t.Context(), testSynthesizer(t, Options{EspeakPath: path}), "今天天气很好，我们出去玩吧。", zh)
		if err == nil || kindOf(t, err) != providers.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
		if (name == "killed" || name == "exit") != (len(pcm) > 0) {
			t.Errorf("%s: %d samples before the failure", name, len(pcm))
		}
		if name == "exit" && !strings.Contains(err.Error(), "out of memory") {
			t.Errorf("the engine's own words are lost: %v", err)
		}
	}
}

// TestEngineHangsManyWait: callers that wait for their turn with an engine
// that hangs leave at once when they are cancelled, and the next is served.
func TestEngineHangsManyWait(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	path, notes := fakeEspeak(t, `[ -e `+gate+` ] && exec `+needEspeak(t)+` "$@"; exec sleep 300`)
	s := testSynthesizer(t, Options{EspeakPath: path})
	waiting, all := make(chan error, 3*maxProcesses), 3*maxProcesses
	ctx, cancel := context.WithCancel(t.Context())
	for range all {
		go func() {
			_, _, err := collect(ctx, s, "你好", zh)
			waiting <- err
		}()
	}
	running := func() int {
		b, err := os.ReadFile(notes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Count(string(b), "\n")
	}
	for running() < maxProcesses {
		runtime.Gosched()
	}
	for range 1000 { // all the others have come to wait meanwhile
		runtime.Gosched()
	}
	if n := running(); n != maxProcesses {
		t.Errorf("%d run at once, of at most %d", n, maxProcesses)
	}
	cancel()
	for range all {
		if err := <-waiting; err == nil {
			t.Error("a cancelled one has spoken")
		}
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if pcm, _, err := collect(t.Context(), s, "你好", zh); err != nil || len(pcm) == 0 {
		t.Errorf("after them: %d samples, %v", len(pcm), err)
	}
}

// TestPhrasesCanBeSaid: everything that the server says by itself comes out in
// the voices of its language, with nothing left out, and config keys letter by
// letter, since flite makes "acer" of asr.
func TestPhrasesCanBeSaid(t *testing.T) {
	f := testFront(t)
	for _, lang := range []string{zh, en} {
		data, err := os.ReadFile("../../prompts/phrases." + lang + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var phrases map[string]string
		if err := yaml.Unmarshal(data, &phrases); err != nil {
			t.Fatal(err)
		}
		for id, text := range phrases {
			units, foreign := f.plan(text, lang)
			if len(units) == 0 || foreign != "" {
				t.Errorf("%s.%s: %q has %d units, foreign %q", id, lang, text, len(units), foreign)
			}
			if len(units) > 0 && units[0].lang != lang && !strings.HasPrefix(text, "{") {
				t.Errorf("%s.%s: %q begins in the voice of %s", id, lang, text, units[0].lang)
			}
			if lang == zh {
				han := 0
				for _, u := range units {
					if u.lang == zh {
						han += len(strings.Fields(u.text))
					}
				}
				if want := strings.Count(strings.Map(func(r rune) rune {
					if isHan(r) {
						return 'x'
					}
					return -1
				}, text), "x"); han != want {
					t.Errorf("%s.zh: %d of %d characters are said", id, han, want)
				}
			}
		}
		if said := say(f, phrases["no_chinese_asr"], lang); !strings.Contains(said, "A S R") {
			t.Errorf("%s: %s", lang, said)
		}
	}
}

// TestAbbreviations are said by their letters, and words are not.
func TestAbbreviations(t *testing.T) {
	f := testFront(t)
	for _, tc := range []struct{ in, lang, want string }{
		{"the OTA URL", en, "[the O T A U R L]"},
		{"an AI with an LED", en, "[an A I with an L E D]"},
		{"He led me there", en, "[He led me there]"},
		{"a nip of rum", en, "[a nip of rum]"},
		{"an api key", en, "[an A P I key]"},
		{"配置 asr 和 tts", zh, "pei4 zhi4 [A S R] he2 [T T S]"},
		{"打开 led 灯", zh, "da3 kai1 [led] deng1"},
		{"LED 灯", zh, "[L E D] deng1"},
	} {
		if got := say(f, tc.in, tc.lang); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.in, got, tc.want)
		}
	}
}
