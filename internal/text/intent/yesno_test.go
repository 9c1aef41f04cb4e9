package intent

import (
	"strings"
	"testing"
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
	if got := YesNo("好的，取消订单", "取消订单"); got != Yes {
		t.Errorf("an action that is a cancellation, in Chinese: %d", got)
	}
}
