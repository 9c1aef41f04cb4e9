package intent

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEcho(t *testing.T) {
	for _, c := range []struct {
		saying string
		echoes string // separated by |
		users  string
	}{
		{
			"红色的灯已经打开了。",
			"红色的灯已经打开了|红色的灯已经打开|红色的灯|灯已经打开了|已经打开|红色的等已经打开了|红色灯已经打开了|红的灯已经打开啦|色的灯已经打|紅色的灯已经打開了|嗯红色的灯已经打开了|开了|灯",
			"不要红色的|红色的灯不要打开|红色的灯已经打开了吗|换成红色|关掉|停|把红色的关了换成蓝色的|我不喜欢红色|为什么打开|红色的不好看|红色的灯太亮了关小一点|蓝色的灯|打开绿色的灯|红色的灯已经打开了那就关掉它|错了|别开|谢谢你啊",
		},
		{
			"好的，今天北京晴转多云，最高气温二十六度，最低气温十四度，适合出门散步。",
			"今天北京晴转多云|最高气温26度最低气温14度|最高气温二十六度|今天北京情转多云最高气温二十六度|适合出门散步|气温十四度是合出门散布|好的今天北京晴转多云，最高气温26度|最低气稳十四度适合出门三步|今天北京晴转多云最高气温二十六度最低气温十四度适合出门散步|二十六度|14度",
			"明天呢|今天上海多少度|后天会下雨吗|停一下|不是北京是上海|今天适合洗车吗|气温不对|那明天北京呢|我问的是上海|今天北京堵车吗|今晚有雨吗|最高多少度|不用说了|帮我打开空调|适合跑步吗|北京的天气预报说会下雨你确定|等等",
		},
		{
			"从前有一只小兔子，它住在森林里面。有一天，它出门去找胡萝卜，路上遇见了一只大灰狼。",
			"从前有一只小兔子|它住在森林里面有一天它出门|路上遇见了一只大灰狼|从前有只小兔子它住在森林里|有一天他出门去找胡萝卜路上遇见了一只大灰狼|去找胡罗布路上遇见|出门去找胡萝卜|小兔子它住在森林里面|一只大灰狼",
			"兔子叫什么名字|我不想听兔子的故事|换一个故事|大灰狼是谁|别讲了|停|讲个恐龙的故事吧|它为什么要去找胡萝卜|我害怕大灰狼|妈妈叫我吃饭了|我要上厕所|一只鸭子行吗|再大声一点",
		},
		{
			"The weather in London is cloudy today, with a high of eighteen degrees.",
			"the weather in london is cloudy today|weather in London is cloudy|with a high of eighteen degrees|the whether in london is cloudy today with a high|cloudy today with a high of eighteen degree|in london is cloudy today|the weather in lundon is cloudy to day with a high of eighteen degrees|is cloudy|eighteen|today with high of eighteen degrees|the weather in London is clowdy today with the high of eighteen degrees",
			"what about tomorrow|stop|wait|is it going to rain|not London I said Paris|the weather in Paris|why is it cloudy|how about the weekend|turn off the light|that's enough thank you|no the weather in leeds|what is the high tomorrow|today is my birthday|play some music|london bridge is falling down|the weather in london is cloudy today so should i take my umbrella",
		},
		{
			"Okay, I have turned on the red light in the living room for you.",
			"okay I have turned on the red light|turned on the red light in the living room|the red light in the living room for you|I have turn on the red light in the living room|have turned on a red light in the leaving room for you|in the living room|living room|red light",
			"not the red light|turn it off|i have turned on the radio myself|no the kitchen|the blue light please|is the light on|turn on the green one in the kitchen|stop it|wait|change it to blue|why red|i don't want the red light on|thank you very much|what time is it|turned off",
		},
		{
			"Your timer for five minutes is set. I will let you know when it is done.",
			"your timer for five minutes is set|timer for five minutes|I will let you know when it is done|you timer for five minutes is set I will let you know|let you know when it's done",
			"make it ten minutes|cancel the timer|how much time is left|no I said fifteen|five minutes is too long|set another one for the eggs|who are you|let me know when dinner is ready at six",
		},
		{
			"已停止播放。",
			"已停止播放|以停止播放",
			"停|停止|停止播放|别放了|不要停|继续播放刚才的|为什么停止播放",
		},
		{
			"你可以说 play music，我就会播放音乐。",
			"你可以说play music我就会播放音乐|说 play music 我就会播放|播放音乐|可以说 play musik 我就会播放音乐",
			"play jazz music please|我可以说什么|停止播放音乐|播放下一首",
		},
	} {
		echoes, users := strings.Split(c.echoes, "|"), strings.Split(c.users, "|")
		for _, heard := range echoes {
			if !Echo(heard, c.saying) {
				t.Errorf("%q was not taken for an echo of %q: %+v", heard, c.saying, alignEcho(echoUnits(heard), echoUnits(c.saying), turnsAround))
			}
		}
		for _, heard := range users {
			if Echo(heard, c.saying) {
				t.Errorf("%q was taken for an echo of %q: %+v", heard, c.saying, alignEcho(echoUnits(heard), echoUnits(c.saying), turnsAround))
			}
		}
	}
}

func TestEchoOfNothing(t *testing.T) {
	for _, c := range [][2]string{{"", ""}, {"打开灯", ""}, {"", "打开灯"}, {"。", "。"}, {"打开灯", "…"}} {
		if Echo(c[0], c[1]) {
			t.Errorf("%q of %q", c[0], c[1])
		}
	}
}

// echoReplies are sentences that a reply may hold.
func echoReplies(language string) []string {
	if language == "zh" {
		return []string{
			"床前明月光疑是地上霜举头望明月低头思故乡", "好的已经把客厅的空调调到二十六度了还需要我做些什么吗", "太阳系里一共有八大行星离太阳最近的是水星",
			"明天上午九点有一个会议下午三点要去医院看牙", "苹果的英文怎么读我来教你跟着我念一遍好吗", "地球绕着太阳转一圈需要三百六十五天左右",
			"抱歉我没有找到这首歌要不要换一首别的听听", "西红柿炒鸡蛋的做法很简单先把鸡蛋打散再把西红柿切块", "今天是星期六祝你周末愉快晚上记得早点休息",
			"长城是中国古代的伟大建筑全长超过两万公里",
		}
	}
	return []string{
		"The sun rises in the east and sets in the west every single day.", "I have added milk and bread to your shopping list for tomorrow morning.",
		"Our solar system has eight planets and Mercury is closest to the sun.", "Sorry, I could not find that song, would you like another artist instead?",
		"Your next meeting starts at nine and the dentist expects you at three.", "To make an omelette, beat two eggs and heat some butter in a pan.",
		"The Great Wall of China is more than twenty thousand kilometres long.", "Once upon a time a little rabbit lived deep within the dark forest.",
		"The kitchen lamp is off now and the heating will stop at ten.", "Water boils at one hundred degrees under normal pressure near the sea.",
	}
}

// misheard is text with about the given share (per cent) of its units replaced
// or dropped.
func misheard(r *rand.Rand, text, language string, share int) string {
	units, gap, other := strings.Fields(text), " ", "apple window seven garden under purple table river music cold"
	if language == "zh" {
		units, gap, other = strings.Split(text, ""), "", "山 水 花 草 树 木 鸟 鱼 虫 石"
	}
	wrong := strings.Fields(other)
	n := len(units) * share / 100
	for _, i := range r.Perm(len(units))[:n] {
		units[i] = wrong[r.IntN(len(wrong))]
		if r.IntN(4) == 0 {
			units[i] = ""
		}
	}
	return strings.Join(units, gap)
}

// With up to three words in ten misheard nearly all echoes are found; a sentence
// is never taken for the echo of another one.
func TestEchoMisheard(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for _, language := range []string{"zh", "en"} {
		replies := echoReplies(language)
		saying := strings.Join(replies[:5], " ")
		for _, share := range []int{0, 10, 20, 30} {
			found, all := 0, 0
			for range 40 {
				for _, reply := range replies[:5] {
					all++
					if Echo(misheard(r, reply, language, share), saying) {
						found++
					}
				}
			}
			t.Logf("%s, %d %% misheard: %d of %d found", language, share, found, all)
			if least := all * (100 - share/3) / 100; found < least {
				t.Errorf("%s, %d %% misheard: %d of %d found, want %d", language, share, found, all, least)
			}
		}
		for i, heard := range replies {
			for j, said := range replies {
				if i != j && Echo(heard, said) {
					t.Errorf("%q was taken for an echo of %q", heard, said)
				}
			}
			if i >= 5 && Echo(heard, saying) {
				t.Errorf("%q was taken for an echo of %q", heard, saying)
			}
		}
	}
}

// What the user adds to an echo is not lost with it.
func TestEchoWithNewWords(t *testing.T) {
	for language, added := range map[string][]string{
		"zh": {"换一个吧", "小智停下", "把灯关掉", "我想听歌", "不要"},
		"en": {"stop", "no thank you", "turn on the radio", "change the subject", "please wait"},
	} {
		for _, reply := range echoReplies(language) {
			for _, more := range added {
				if Echo(reply+" "+more, reply) || Echo(more+" "+reply, reply) {
					t.Errorf("%q was lost in the echo of %q", more, reply)
				}
			}
		}
	}
}

func TestEchoUnits(t *testing.T) {
	for text, want := range map[string]string{
		"二十六度":               "2 6 度",
		"26度":                "2 6 度",
		"一百二十":               "1 2",
		"十四":                 "1 4",
		"Turn it On, 打开灯 ok": "turn it on 打 开 灯 ok",
		"don't":              "dont",
		"room5b":             "room 5 b",
		"…":                  "",
	} {
		if got := strings.Join(echoUnits(text), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	long := echoUnits(strings.Repeat("甲", 700) + strings.Repeat("乙", 400))
	if len(long) != echoRunes || long[99] != "甲" || long[100] != "乙" {
		t.Errorf("%d units of a long text", len(long))
	}
}

func TestSounded(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"灯", "灯", true},
		{"灯", "等", false},
		{"the", "a", false},
		{"on", "in", false},
		{"light", "night", true},
		{"light", "lights", true},
		{"light", "sight", true},
		{"light", "right", true},
		{"light", "might", true},
		{"light", "liar", false},
		{"weather", "whether", true},
		{"degrees", "degree", true},
		{"kitchen", "chicken", false},
		{"26", "25", false},
		{"turn", "turned", false},
	} {
		if sounded(c.a, c.b) != c.want || sounded(c.b, c.a) != c.want {
			t.Errorf("%q and %q: %v", c.a, c.b, !c.want)
		}
	}
}

func FuzzEcho(f *testing.F) {
	f.Add("红色的灯", "红色的灯已经打开")
	f.Add("the weather", "The weather in London is cloudy.")
	f.Add("停", "停")
	f.Add("", "\xff\xfe")
	f.Add(strings.Repeat("a", 600), strings.Repeat("ab ", 300))
	f.Add(strings.Repeat("好", 600), strings.Repeat("好", 499))
	f.Fuzz(func(t *testing.T, heard, saying string) {
		got := Echo(heard, saying)
		if Echo(heard, saying) != got {
			t.Error("judged twice, two answers")
		}
		units := echoUnits(heard)
		if len(units) > echoRunes {
			t.Errorf("%d units", len(units))
		}
		if Echo(heard, heard) != (len(units) > 0) {
			t.Errorf("a text of %d units and its own echo", len(units))
		}
		if got && (len(units) == 0 || len(echoUnits(saying)) == 0) {
			t.Error("an echo of nothing")
		}
		for _, unit := range units {
			if unit == "" || !utf8.ValidString(unit) {
				t.Errorf("a unit %q", unit)
			}
		}
	})
}

func BenchmarkEcho(b *testing.B) {
	long := strings.Repeat("今天北京晴转多云最高气温二十六度", 40)
	for _, c := range []struct{ name, heard, saying string }{
		{"usual", "今天北京情转多云最高气温", "好的，今天北京晴转多云，最高气温二十六度，最低气温十四度，适合出门散步。"},
		{"longest", long, long + "。"},
		{"words", strings.Repeat("abcdefg ", 70), strings.Repeat("abcdxyg ", 70)},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				Echo(c.heard, c.saying+"嗯")
			}
		})
	}
}
