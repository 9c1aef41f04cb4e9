package intent

import (
	"strings"
	"testing"
	"unicode/utf8"

	"xiaozhi/internal/text"
)

// completeCases are texts by what they should be judged as, one a line.
func completeCases(lines string) []string {
	var out []string
	for line := range strings.Lines(lines) {
		for words := range strings.SplitSeq(line, "|") {
			if words = strings.TrimSpace(words); words != "" {
				out = append(out, words)
			}
		}
	}
	return out
}

func checkComplete(t *testing.T, lang text.Lang, want Completeness, lines string) {
	t.Helper()
	for _, words := range completeCases(lines) {
		if got := Complete(words, lang); got != want {
			t.Errorf("%q: %v, want %v", words, got, want)
		}
	}
}

func TestCompleteChinese(t *testing.T) {
	checkComplete(t, "zh", Unfinished, `
		然后 | 打开灯然后 | 还有 | 我今天很累因为 | 所以 | 我想去但是 | 如果 | 如果明天下雨的话 | 那个 | 就是 | 打开那个 | 我想问一下就是 | 放一首歌嗯 | 呃 | 我想想呃
		把 | 请把 | 帮我把 | 小智帮我把 | 把客厅的灯 | 请把空调 | 把卧室的窗帘 | 把音量 | 给 | 打电话给 | 我和 | 苹果和 | 我跟 | 吃饭的时候 | 我小时候的时候 | 洗澡的时候
		帮我 | 请帮我 | 你能不能帮我 | 麻烦你 | 我想 | 我想要 | 我要 | 我想问一下 | 请问 | 告诉我 | 提醒我 | 小智给我讲一个 | 我想听 | 你知道吗我想 | 帮我查一下 | 请问一下
		第一 | 首先 | 其次 | 比如说 | 或者 | 而且 | 不过 | 另外 | 除了 | 为了 | 虽然 | 关于 | 百分之 | 我觉得 | 我叫 | 换成 | 播放一首
		把音量调到 | 把闹钟设为 | 名字改成 | 发给 | 把它放在 | 我正在 | 苹果还是 | 特别是 | 我的密码是 | 我们明天从 | 那么 | 这个字怎么 | 他说他被
		打开灯， | 今天，明天、 | 我想说…… | 我想说… | 打开—— | 我要买的东西： | 我想... | 帮我... | 然後 | 請幫我 | 還有 | 因為`)
	checkComplete(t, "zh", Finished, `
		停 | 停下 | 小智停 | 打开灯 | 打开客厅的灯 | 关灯 | 把灯打开 | 请把灯关掉 | 帮我把空调关了 | 把音量调高 | 把声音调大一点 | 大声一点 | 小声点 | 你说慢一点
		你好 | 好的 | 对 | 不要 | 是 | 是的 | 不是 | 可以 | 没有 | 不用 | 谢谢 | 再见 | 晚安 | 好了 | 算了 | 够了 | 知道了 | 我不要 | 当然可以 | 你好小智
		现在几点 | 现在几点了 | 几点了 | 今天星期几 | 今天几号 | 你是谁 | 你叫什么 | 这是什么 | 你叫什么名字 | 今天天气怎么样 | 一加一等于多少 | 苹果多少钱一斤呢 | 你在哪里 | 你几岁
		外面下雨了吗 | 你会唱歌吗 | 然后呢 | 那我呢 | 我们走吧 | 好啊 | 真好听啊 | 我知道了 | 我吃饱了 | 你喜欢我吗 | 去公园怎么走 | 为什么 | 怎么办 | 天空为什么是蓝色的呢
		唱首歌 | 讲个故事 | 给我讲个笑话 | 播放音乐 | 放一首歌 | 来点音乐 | 播放周杰伦的歌 | 下一首 | 换一首 | 继续 | 暂停 | 再说一遍 | 等一下 | 别说了 | 闭嘴 | 打开电视 | 关闭空调
		打开客厅。 | 今天天气？ | 我喜欢红色的。 | 太棒了！ | 嗯？ | 打開燈 | 關掉電視 | 你會唱歌嗎 | 打开灯。 | 真的吗 | 行不行 | 我也是`)
	checkComplete(t, "zh", Undecided, `
		嗯 | 嗯嗯 | 我就是 | 今天 | 明天 | 小智 | 打开客厅 | 今天天气 | 红色的 | 我要红色的 | 是这样的 | 调到一百二十 | 把音量调到五十 | 一三八零零一三八 | 13800138000 | 设为20 | 26
		打开 wifi | 播放 Love Story | 春天很暖和 | 我就要这个 | 他得了第一 | 他不给 | 我喜欢打麻将 | 帮我订一张去上海 | 北京 | 小明 | 张三 | 有没有 | 你什么时候 | 冰箱里有什么 | 我去了 | 到了
		其实呢 | 因为啊 | 那个啊 | 我要。 | 帮我。 | 然后。 | 好的好的 | 我有 | 周杰伦 | 放一首周杰伦的 | 早上八点 | 他服从 | 你好你好 | 他会参与 | 关掉那个 | 删除这个 | 明天零点`)
}

func TestCompleteEnglish(t *testing.T) {
	checkComplete(t, "en", Unfinished, `
		and | turn on the light and | i like it but | so | i was late because | if | what if | the | turn on the | what is the | a | give me a | to | i want to | can you | could you please | can you tell me
		what is the capital of | i went with | with | set a timer for | my | call my | um | uh | er | i think um | like | i like | i would like | i want | i'd like | i need | please can you
		i want you to | tell me about | tell me | remind me to | remind me | how do i get to | how do i | how do you | what are | where is | what is | what's | who is | why do you | do you know | do you | what about
		turn | turn the light | please turn | switch | set the volume to | set | make it | play a song by | what is the weather in | and then | or | either this or | bigger than | every | very | i'm | i'm gonna | let's | let me
		my name is | the answer is | this is | there are | what do you | do you have a | i wanted to say that the | hey xiaozhi can you | is there | is the | i | when he | it depends on | three point
		turn on the light, | i want... | well… | turn on the light — | you should - | first:`)
	checkComplete(t, "en", Finished, `
		what time is it | what is the time | what's the time | turn on the light | turn the light on | turn it off | turn it on | turn off the tv | turn the volume up | please turn it down | can you turn it off
		yes | no | yeah | okay | sure | stop | stop it | wait | pause | next | thanks | thank you | no thanks | yes please | hello | goodbye | good night | never mind | i don't know | i think so | not now | hold on | come on | shut up
		what is it for | what is it like | what does it look like | what is the weather like | where are you from | who are you talking to | what are you looking for | who is she | where are we going | what's going on
		how are you | who are you | what is your name | what's your name | what is the weather today | how old are you | where is the station | when does the train leave | why is the sky blue | how do you make a cake | which one is better
		is it raining | do you like pizza | are you there | can you hear me | is the light on | did you call mom | have you eaten dinner | can you help me | will it rain tomorrow
		play music | play some jazz | stop the music | open the door | close the window | tell me a joke | sing a song | call mom | set the volume to fifty percent | set a timer for five minutes | remind me to call mom | read me a story | wake me up | add milk to the list | what | why | yes i am | yes i do | shall we go | please do | what is this | who is that | what's that | hello what time is it | what are you up to | leave it on | put my phone away | can you put the volume at forty percent
		the red one. | i like it. | nice! | the red one? | stop. | really?`)
	checkComplete(t, "en", Undecided, `
		twenty five | five five five one two | 555 1234 | my number is 5 5 5 | set the volume to fifty | the red one | the kitchen | xiaozhi | yesterday | i do not want to | i don't want to | no i don't want to | yes it is | he is
		what time | how much | which one | what color | what are you thinking of | tell me where the light is | is that so | do you like | if you like | i want to. | can you. | and. | maybe | please | let me in | come with | see you then | okay then
		what do you want | tomorrow | apples | i am hungry | paris | good | it | that | more | some | kind of | why is the sky | remind me at six | play some | when i was young | i used to | come on in | the device id | that is all there is | hand it in | put it in | i'm in | set the alarm`)
}

func TestCompleteOther(t *testing.T) {
	for _, c := range []struct {
		words string
		lang  text.Lang
		want  Completeness
	}{
		{"", "zh", Undecided},
		{"", "", Undecided},
		{" \n", "en", Undecided},
		{"。", "zh", Undecided},
		{"...", "en", Undecided},
		{"😊", "zh", Undecided},
		{"turn on the light", "", Finished},
		{"turn on the light", "zh", Finished}, // the words tell, not the device
		{"打开灯", "en", Finished},
		{"打开灯", "", Finished},
		{"TURN ON THE LIGHT", "en", Finished},
		{"Turn on the", "en", Unfinished},
		{"I’d like to", "en", Unfinished},
		{"打开灯。”", "zh", Finished},
		{"  打 开 灯  ", "zh", Finished},
		{"我 想 要", "zh", Unfinished},
		{"明かりをつけて", "ja", Undecided},
		{"Привет", "ru", Undecided},
	} {
		if got := Complete(c.words, c.lang); got != c.want {
			t.Errorf("%q in %q: %v, want %v", c.words, c.lang, got, c.want)
		}
	}
}

func TestSimplified(t *testing.T) {
	if got := strings.Map(simplified, "請幫我把客廳的燈打開 OK 然後還有嗎歡"); got != "请帮我把客廳的灯打开 OK 然后还有吗欢" {
		t.Error(got)
	}
}

// Whatever comes, the judgement is made, and made the same way again.
func FuzzComplete(f *testing.F) {
	for _, words := range []string{"", "打开灯", "请帮我", "what is the", "turn it off", "好的。", "...", "a\x00b", "\xff\xfe", "打开 wifi", "'", "can you please please", "不不不", strings.Repeat("然后", 300)} {
		f.Add(words, "zh")
		f.Add(words, "en")
	}
	f.Fuzz(func(t *testing.T, words, language string) {
		lang := text.Lang(language)
		got := Complete(words, lang)
		if again := Complete(words, lang); again != got {
			t.Errorf("%v, then %v", got, again)
		}
		if got.String() == "" || (got != Undecided && !utf8.ValidString(words) && strings.TrimFunc(words, func(r rune) bool { return !text.IsWord(r) }) == "") {
			t.Errorf("%v for nothing", got)
		}
		if text.Bare(words) != "" && Complete(words+"…", lang) != Unfinished {
			t.Error("a text that trails off is finished")
		}
	})
}

func BenchmarkComplete(b *testing.B) {
	for b.Loop() {
		Complete("小智请帮我把客厅里面的空调温度调到二十六度然后", "zh")
		Complete("please can you tell me what the weather is like tomorrow in", "en")
	}
}
