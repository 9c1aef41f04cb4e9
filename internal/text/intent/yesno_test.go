package intent

import (
	"strings"
	"testing"

	"xiaozhi/internal/text"
)

func TestYesNo(t *testing.T) {
	for text, want := range map[string]Answer{
		"yes": Yes, "Yes, please!": Yes, "OK": Yes, "ok go ahead": Yes, "Do it.": Yes, "sure": Yes, "Please do": Yes,
		"yes do it please": Yes, "um, yes": Yes, "yeah, open the door": Yes, "I'm sure": Yes, "of course": Yes, "sounds good": Yes,
		"yes. yes, I do": Yes, "all right then": Yes,
		"是的。": Yes, "确定": Yes, "好的，执行吧": Yes, "可以": Yes, "没问题": Yes, "没错": Yes, "行": Yes, "要": Yes,
		"好的确定": Yes, "嗯可以": Yes, "嗯，好的": Yes, "是的，确定。": Yes, "对对对": Yes, "確定": Yes, "我确定": Yes, "好的，开门": Yes,
		"那就开门吧": Unclear, "好，那就开门吧": Yes,
		"no": No, "No, don't": No, "No thanks": No, "cancel": No, "yes no don't": No, "不": No, "不要": No, "不可以": No, "算了": No,
		"取消": No, "别": No, "please stop": No, "不用了": No, "不是": No, "嗯不用了": No, "別開": No, "not now": No, "no don’t": No,
		"还是不要了吧": No, "确定取消": No, "don't do it": No,
		"": Unclear, "…": Unclear, "嗯": Unclear, "um": Unclear, "what time is it": Unclear, "现在几点": Unclear, "是什么意思": Unclear,
		"好像下雨": Unclear, "你好": Unclear, "对了": Unclear, "好了": Unclear,
		"yesterday I was in the park and it was raining": Unclear, "northern lights": Unclear, "要多久": Unclear,
		// A request that begins like a yes is none.
		"可以告诉我现在几点吗": Unclear, "好的，今天天气怎么样": Unclear, "继续播放音乐": Unclear, "确定吗": Unclear, "可以吗？": Unclear,
		"ok what time is it": Unclear, "sure, but first tell me the time": Unclear, "OK?": Unclear, "wait": Unclear, "等一下": Unclear,
	} {
		for _, action := range []string{"open the door", "打开门"} {
			if strings.Contains(text, "开") && action != "打开门" || strings.Contains(text, "open") && action == "打开门" {
				continue // the words of the action
			}
			if got := YesNo(text, action); got != want {
				t.Errorf("%q to %q: %d, want %d", text, action, got, want)
			}
		}
	}
	if got := YesNo("yes, cancel the order", "cancel the order"); got != Yes {
		t.Errorf("an action that is a cancellation: %d", got)
	}
	for words, want := range map[string]Answer{"cancel": Unclear, "please cancel": Unclear, "yes cancel it": Yes, "ok cancel the order please": Yes, "stop": No, "no cancel": No} {
		if got := YesNo(words, "cancel the order"); got != want {
			t.Errorf("%q to a cancellation: %d, want %d", words, got, want)
		}
	}
	if got := YesNo("好的，取消订单", "取消订单"); got != Yes {
		t.Errorf("an action that is a cancellation, in Chinese: %d", got)
	}
}

// refusals are ways to say no that people use, and that recognisers write.
const refusals = `no | No. | nope | nah | no no no | no thanks | no thank you | no way | not now | not yet | not really | not at all | absolutely not | certainly not
	please do not | please don't | Please, do not! | do not | do not do it | do not do that | don't | Don’t! | dont | don t | do n t | don't do it | don't do that please | please don t
	I do not want that | I don't want to | I don't want you to | I would rather not | I'd rather you didn't | you should not | you shouldn't | you can't | you cannot do that | you must not
	never | never mind | nevermind | no never | of course not | yes no | yes no don't | ok no | okay don't | sure not | yes but do not | please never | I did not say that | it isn't
	no problem don't do it | why not no | that's not what I said | I said no | nothing | neither | I refuse | I decline | negative | reject it | forbid it | I disagree | hell no | nuh uh
	cancel | please cancel | cancel that | stop | please stop | stop it | stop that | ok stop | abort | quit | forget it | forget about it | skip it | drop it | yes cancel | halt
	不 | 不。| 不要 | 不要！ | 请不要 | 不用 | 不用了 | 不行 | 不可以 | 不可 | 不许 | 不准 | 不同意 | 不是 | 不好 | 不想 | 我不想 | 我不要 | 我不同意 | 还是不要了 | 还是不要了吧 | 先不要 | 先不用
	别 | 别做 | 别这样 | 千万别 | 别别别 | 你别 | 別 | 別做 | 请别 | 不确定 | 不能 | 不必 | 不必了 | 不需要 | 好像不行 | 可以不做吗 | 好的不要 | 是的不要 | 确定不要 | 可以，但是不要现在 | 行不行
	没有 | 没必要 | 没同意 | 还没 | 没说要 | 沒有 | 沒必要 | 没门 | 没空 | 没兴趣 | 勿 | 请勿 | 切勿 | 甭 | 甭管 | 莫 | 否 | 拒绝 | 我拒绝 | 反对 | 反對 | 禁止 | 免了 | 算了 | 算了吧 | 休想 | 作罢
	取消 | 取消吧 | 确定取消 | 请取消 | 停 | 停下 | 停止 | 停一下 | 中止 | 终止 | 終止 | 不 OK | OK 不要 | no 不要`

// A no is a no to every action: none is called so that a negation in the answer would
// be taken for a part of it.
func TestYesNoNegation(t *testing.T) {
	actions := []string{
		"", "open the door", "打开门", "do the not disturb", "do not disturb", "please do not", "not now", "no", "no op", "don't", "do the dont", "never sleep", "set the never",
		"不要打扰", "不", "别动", "没", "否", "请不要", "不用", "不行", "取消", "do it please", "yes", "ok", "好", "可以", "确定", "do the it please not cancel stop no never",
	}
	for line := range strings.SplitSeq(refusals, "\n") {
		for words := range strings.SplitSeq(line, "|") {
			words = strings.TrimSpace(words)
			if words == "" {
				continue
			}
			for _, action := range append(actions, words, "do the "+words) {
				named := strings.Contains(action, "cancel") || strings.Contains(action, "stop") || strings.Contains(action, "取消") || strings.Contains(action, words)
				if !negates(plainWords(words), strings.Map(simplified, text.Bare(words))) && named {
					continue // yes, cancel the order
				}
				if got := YesNo(words, action); got != No {
					t.Errorf("%q to %q: %d", words, action, got)
				}
			}
			if got := YesNo(words, "water the plants"); got != No {
				t.Errorf("%q: %d", words, got)
			}
		}
	}
}

func TestAnswering(t *testing.T) {
	for words, want := range map[string]bool{
		"": true, "um": true, "嗯": true, "那个": true, "OK?": true, "确定吗": true, "wait": true, "maybe": true, "sure, but first tell me the time": true, "好的，今天天气怎么样": true,
		"ok what time is it": true, "嗯 可以吗": true, "um yes and then": true,
		"what time is it in Rome": false, "今天天气怎么样": false, "turn on the light": false, "今天天气好吗": false, "打开灯": false,
	} {
		if got := Answering(words, text.Of(words)); got != want {
			t.Errorf("%q: %v", words, got)
		}
	}
}

func FuzzYesNo(f *testing.F) {
	f.Add("please do not", "do the not disturb")
	f.Add("好的", "不要打扰")
	f.Add("yes \xff no", "\xff")
	f.Fuzz(func(t *testing.T, words, action string) {
		if got := YesNo(words+" not", action); got != No {
			t.Errorf("%q and not, to %q: %d", words, action, got)
		}
		if got := YesNo(words+"不要", action); got != No {
			t.Errorf("%q不要, to %q: %d", words, action, got)
		}
		Answering(words, text.Of(words))
	})
}
