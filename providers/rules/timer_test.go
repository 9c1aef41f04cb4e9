package rules

import (
	"encoding/json"
	"strings"
	"testing"

	"xiaozhi/providers"
)

// timerTools are this server's own tools for timers.
func timerTools() []providers.ToolSpec {
	return []providers.ToolSpec{
		spec("set_timer", "", json.RawMessage(`{"properties":{"seconds":{"type":"integer"},"text":{"type":"string"}}}`)),
		spec("list_timers", "", json.RawMessage(`{"type":"object","properties":{}}`)),
		spec("cancel_timer", "", json.RawMessage(`{"properties":{"text":{"type":"string"},"all":{"type":"boolean"}}}`)),
	}
}

func TestTimerListPhrasings(t *testing.T) {
	for _, said := range []string{
		"list my timers", "list timers", "List all of my timers, please.", "show me my timers", "what timers do I have?", "What timers are running",
		"which alarms are set", "what are my reminders", "how many timers do I have", "how many timers are running", "do I have any timers",
		"are there any reminders", "can you tell me my timers", "what timers have I set", "read out my reminders", "how much time is left on my timer",
		"what about my timers", "list my timers and reminders", "how long is left on the timer", "show my current timers",
		"我有哪些定时器", "我有哪些定时", "我设了哪些闹钟", "列出我的定时器", "列出所有定时器", "列一下我的定时器", "有哪些提醒", "我有什么提醒", "我有几个闹钟",
		"现在有几个定时器在运行", "查看我的定时器", "看看有哪些定时器", "帮我看一下闹钟", "我的定时器有哪些", "所有的提醒", "定时器列表", "定时器还剩多久", "小智，我都有哪些定时器呀？",
		"我有没有定时器", "还有什么提醒吗", "有定时器吗", "告诉我我有哪些提醒", "今天有什么提醒", "闹钟还有多久", "有多少个定时器", "我定了哪些闹钟",
	} {
		d := generate(t, newBrain(t, false), ask(said, languageOf(said), timerTools()))
		if got := show(d); got != "list_timers {}" {
			t.Errorf("%q: %q", said, got)
		}
	}
}

func TestTimerListNotMeant(t *testing.T) {
	for _, said := range []string{
		"cancel my timers", "delete all timers", "what is a timer", "list my songs", "my timers are great and I like them", "how long is a timer",
		"取消我的定时器", "取消所有闹钟", "定时器是什么", "闹钟是谁发明的", "关掉所有提醒", "提醒我有哪些作业",
	} {
		d := generate(t, newBrain(t, false), ask(said, languageOf(said), timerTools()))
		if got := show(d); strings.HasPrefix(got, "list_timers") {
			t.Errorf("%q: %q", said, got)
		}
	}
	if got := show(generate(t, newBrain(t, false), ask("list my timers", "en", nil))); got != "I cannot set timers yet." {
		t.Errorf("without a tool: %q", got)
	}
}

func TestTimerListResult(t *testing.T) {
	for _, c := range []struct{ said, result, want string }{
		{"list my timers", `there are no timers or reminders.`, "there are no timers or reminders."},
		{"我有哪些定时器", `没有定时或提醒。`, "没有定时或提醒。"},
		{"list my timers", `[{"due":"at 7:05","left":"4 minutes","length":"5 minutes"}]`, "There is one: a timer of 5 minutes, 4 minutes left."},
		{
			"what timers do I have", `[{"due":"at 7:05","left":"4 minutes","length":"5 minutes","text":"tea"},{"due":"tomorrow at 8:00","left":"13 hours","text":"the dentist"}]`,
			"There are 2: tea, 4 minutes left; the dentist, tomorrow at 8:00.",
		},
		{"我有哪些定时器", `[{"due":"7点05分","left":"4分钟","length":"5分钟"}]`, "有一个：5分钟的定时，还剩4分钟。"},
		{
			"我有哪些提醒", `[{"due":"7点05分","left":"4分钟","length":"5分钟","text":"泡茶"},{"due":"明天8点","left":"13小时","text":"开会"}]`,
			"一共有2个：泡茶，还剩4分钟；明天8点提醒开会。",
		},
		{"list my timers", `[1,2]`, "OK, done."}, // a tool of a device may answer anything
		{"list my timers", `[]`, "OK, done."},
	} {
		b := newBrain(t, false)
		req := ask(c.said, languageOf(c.said), timerTools())
		if got := generate(t, b, then(req, generate(t, b, req), c.result)).Text; got != c.want {
			t.Errorf("%q after %s: %q, want %q", c.said, c.result, got, c.want)
		}
	}
}
