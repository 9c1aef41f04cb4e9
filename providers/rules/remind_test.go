package rules

import (
	"encoding/json"
	"strings"
	"testing"

	"xiaozhi/providers"
)

// reminderTools are this server's own tools for timers and reminders.
func reminderTools() []providers.ToolSpec {
	return []providers.ToolSpec{
		spec("set_timer", "", json.RawMessage(`{"properties":{"seconds":{"type":"integer"},"duration":{"type":"string"},"text":{"type":"string"}}}`)),
		spec("set_reminder", "", json.RawMessage(`{"properties":{"time":{"type":"string"},"repeat":{"type":"string"},"text":{"type":"string"}},"required":["time","text"]}`)),
		spec("list_timers", "", json.RawMessage(`{"type":"object","properties":{}}`)),
		spec("cancel_timer", "", json.RawMessage(`{"properties":{"text":{"type":"string"},"all":{"type":"boolean"},"kind":{"type":"string"}}}`)),
		spec("snooze_timer", "", json.RawMessage(`{"properties":{"duration":{"type":"string"}}}`)),
	}
}

func TestReminderPhrasings(t *testing.T) {
	for said, want := range map[string]string{
		"remind me tomorrow at 7 to call Mum":                 `set_reminder {"text":"call Mum","time":"tomorrow at 7"}`,
		"Remind me to call mum tomorrow at 7.":                `set_reminder {"text":"call mum","time":"tomorrow at 7"}`,
		"please remind me about the meeting at 3 pm":          `set_reminder {"text":"the meeting","time":"at 3 pm"}`,
		"every weekday at 7 remind me to take my pills":       `set_reminder {"text":"take my pills","time":"every weekday at 7"}`,
		"remind me every weekday at 7 to take my pills":       `set_reminder {"text":"take my pills","time":"every weekday at 7"}`,
		"remind me to take the bins out every second tuesday": `set_reminder {"text":"take the bins out","time":"every second tuesday"}`,
		"remind me every second Tuesday at 8 to pay the rent": `set_reminder {"text":"pay the rent","time":"every second tuesday at 8"}`,
		"remind me at seven thirty in the evening to cook":    `set_reminder {"text":"cook","time":"at 7 30 in the evening"}`,
		"wake me up at 7 am":                                  `set_reminder {"text":"time to get up","time":"at 7 am"}`,
		"wake me up tomorrow at half past six":                `set_reminder {"text":"time to get up","time":"tomorrow at half past 6"}`,
		"wake me every day at 7":                              `set_reminder {"text":"time to get up","time":"every day at 7"}`,
		"set an alarm for 7 am":                               `set_reminder {"text":"it is time","time":"7 am"}`,
		"set an alarm for seven o'clock tomorrow":             `set_reminder {"text":"it is time","time":"7 oclock tomorrow"}`,
		"set a reminder for tomorrow at noon to feed the cat": `set_reminder {"text":"feed the cat","time":"tomorrow at noon"}`,
		"set a reminder to feed the cat tomorrow at noon":     `set_reminder {"text":"feed the cat","time":"tomorrow at noon"}`,
		"remind me in ten minutes to turn the oven off":       `set_timer {"seconds":600,"text":"turn the oven off"}`,
		"remind me to turn the oven off in ten minutes":       `set_timer {"seconds":600,"text":"turn the oven off"}`,
		"snooze":                                                     `snooze_timer {}`,
		"snooze for ten minutes":                                     `snooze_timer {"duration":"10 minutes"}`,
		"snooze ten minutes":                                         `snooze_timer {"duration":"10 minutes"}`,
		"five more minutes":                                          `snooze_timer {"duration":"5 minutes"}`,
		"remind me again in half an hour":                            `snooze_timer {"duration":"30 minutes"}`,
		"cancel all timers":                                          `cancel_timer {"all":true,"kind":"timer"}`,
		"delete all my reminders":                                    `cancel_timer {"all":true,"kind":"reminder"}`,
		"cancel my alarms":                                           `cancel_timer {"all":true}`,
		"cancel the timer":                                           `cancel_timer {"kind":"timer"}`,
		"delete the reminder about the dentist":                      `cancel_timer {"kind":"reminder","text":"dentist"}`,
		"cancel my 7 am alarm":                                       `cancel_timer {"text":"7 am"}`,
		"turn off the tea timer":                                     `cancel_timer {"kind":"timer","text":"tea"}`,
		"remind me today at 7 am to call Mum":                        `set_reminder {"text":"call Mum","time":"today at 7 am"}`,
		"今天早上七点提醒我开会":                                                `set_reminder {"text":"开会","time":"今天早上七点"}`,
		"set a timer for 1 hour 20 minutes":                          `set_timer {"seconds":4800}`,
		"set a timer for 2 hours and 5 minutes":                      `set_timer {"seconds":7500}`,
		"set a timer for two minutes and thirty seconds":             `set_timer {"seconds":150}`,
		"定一个一小时二十分钟的定时器":                                             `set_timer {"seconds":4800}`,
		"倒计时两分三十秒":                                                   `set_timer {"seconds":150}`,
		"stop reminding me to take my pills":                         `cancel_timer {"kind":"reminder","text":"take my pills"}`,
		"stop reminding me":                                          `cancel_timer {"kind":"reminder"}`,
		"别再提醒我了":                                                     `cancel_timer {"kind":"reminder"}`,
		"把早上七点的闹钟关了":                                                 `cancel_timer {"text":"早上七点"}`,
		"remind me on February 30":                                   `set_reminder {"text":"it is time","time":"on february 30"}`,
		"remind me on February 30 to pay the rent":                   `set_reminder {"text":"pay the rent","time":"on february 30"}`,
		"remind me to pay the tax on Feb 29":                         `set_reminder {"text":"pay the tax","time":"on feb 29"}`,
		"2月30日提醒我交房租":                                                `set_reminder {"text":"交房租","time":"2月30日"}`,
		"提醒我四月三十一号开会":                                                `set_reminder {"text":"开会","time":"四月三十一号"}`,
		"提醒我每年2月30日交税":                                               `set_reminder {"text":"交税","time":"每年2月30日"}`,
		"提醒我明天三点三个人开会":                                               `set_reminder {"text":"三个人开会","time":"明天三点"}`,
		"提醒我周一二楼开会":                                                  `set_reminder {"text":"二楼开会","time":"周一"}`,
		"提醒我周二到三亚出差":                                                 `set_reminder {"text":"三亚出差","time":"周二到"}`,
		"提醒我每周一到五早上七点吃药":                                             `set_reminder {"text":"吃药","time":"每周一到五早上七点"}`,
		"周一到五提醒我吃药":                                                  `set_reminder {"text":"吃药","time":"周一到五"}`,
		"wake me up at seven oh five":                                `set_reminder {"text":"time to get up","time":"at 7 oh 5 in the morning"}`,
		"remind me on the first Monday of the month to pay the rent": `set_reminder {"text":"pay the rent","time":"on the first monday of the month"}`,
		"what reminders do I have":                                   `list_timers {}`,
		"list my timers":                                             `list_timers {}`,
		"每天早上七点叫我起床":                                                 `set_reminder {"text":"该起床了","time":"每天早上七点"}`,
		"每天早上7:30叫我":                                                 `set_reminder {"text":"该起床了","time":"每天早上7:30"}`,
		"明天早上七点叫醒我":                                                  `set_reminder {"text":"该起床了","time":"明天早上七点"}`,
		"明天早上七点提醒我开会":                                                `set_reminder {"text":"开会","time":"明天早上七点"}`,
		"提醒我明天早上七点开会":                                                `set_reminder {"text":"开会","time":"明天早上七点"}`,
		"每个工作日早上八点提醒我吃药":                                             `set_reminder {"text":"吃药","time":"每个工作日早上八点"}`,
		"请提醒我每周二下午三点倒垃圾":                                             `set_reminder {"text":"倒垃圾","time":"每周二下午三点"}`,
		"每两周的周二提醒我倒垃圾":                                               `set_reminder {"text":"倒垃圾","time":"每两周的周二"}`,
		"每个月15号提醒我交房租":                                               `set_reminder {"text":"交房租","time":"每个月15号"}`,
		"帮我定一个明天早上七点的闹钟":                                             `set_reminder {"text":"时间到了","time":"明天早上七点"}`,
		"设个闹钟，明天早上七点":                                                `set_reminder {"text":"时间到了","time":"明天早上七点"}`,
		"十分钟后提醒我关火":                                                  `set_timer {"seconds":600,"text":"关火"}`,
		"十分钟后再叫我":                                                    `snooze_timer {"duration":"10分钟"}`,
		"再睡五分钟":                                                      `snooze_timer {"duration":"5分钟"}`,
		"等一会儿再叫我":                                                    `snooze_timer {}`,
		"稍后提醒我":                                                      `snooze_timer {}`,
		"取消所有的闹钟":                                                    `cancel_timer {"all":true}`,
		"把所有定时器都取消":                                                  `cancel_timer {"all":true,"kind":"timer"}`,
		"删除全部提醒":                                                     `cancel_timer {"all":true,"kind":"reminder"}`,
		"取消定时器":                                                      `cancel_timer {"kind":"timer"}`,
		"删除开会的提醒":                                                    `cancel_timer {"kind":"reminder","text":"开会"}`,
		"把明天早上七点的闹钟取消":                                               `cancel_timer {"text":"明天早上七点"}`,
		"把闹钟关了":                                                      `cancel_timer {}`,
		"别再提醒我吃药了":                                                   `cancel_timer {"kind":"reminder","text":"吃药"}`,
		"把关于开会的提醒删掉":                                                 `cancel_timer {"kind":"reminder","text":"开会"}`,
		"一分三十秒后提醒我":                                                  `set_reminder {"text":"时间到了","time":"一分三十秒后"}`,
		"我有哪些提醒":                                                     `list_timers {}`,
	} {
		d := generate(t, newBrain(t, false), ask(said, languageOf(said), reminderTools()))
		if got := show(d); got != want {
			t.Errorf("%q:\n got %s\nwant %s", said, got, want)
		}
	}
}

// TestRemindersNotMeant: what names no time, or is about something else, is left to
// others.
func TestRemindersNotMeant(t *testing.T) {
	for _, said := range []string{
		"remind me of my childhood", "that reminds me of you", "remind me to call mum", "wake me up before you go go", "set an alarm", "every weekday at 7",
		"what is an alarm", "more minutes", "snooze button", "cancel my subscription", "delete everything",
		"提醒我有哪些作业", "叫我小明", "七点了", "每天早上七点", "闹钟是谁发明的", "取消订单", "再来一次",
	} {
		d := generate(t, newBrain(t, false), ask(said, languageOf(said), reminderTools()))
		if len(d.ToolCalls) > 0 {
			t.Errorf("%q: %s", said, show(d))
		}
	}
	const when, zhWhen = "Please say when, too, for example: remind me tomorrow at 7 to call Mum.", "请把时间也说上，比如：明天早上七点提醒我开会。"
	for said, want := range map[string]string{"remind me to call mum": when, "set an alarm": when, "提醒我记得买牛奶": zhWhen, "帮我设个闹钟": zhWhen} {
		if got := show(generate(t, newBrain(t, false), ask(said, languageOf(said), reminderTools()))); got != want {
			t.Errorf("%q: %s", said, got)
		}
	}
	for _, said := range []string{"remind me tomorrow at 7 to call Mum", "cancel all timers", "snooze"} {
		if got := show(generate(t, newBrain(t, false), ask(said, "en", nil))); got != "I cannot set timers yet." {
			t.Errorf("%q without a tool: %s", said, got)
		}
		b := newBrain(t, true)
		if d, ok := b.Answer(ask(said, "en", reminderTools())); ok {
			t.Errorf("%q: the fast path takes it: %s", said, show(d))
		}
	}
}

// TestTimeOfReminderFollows: who is asked for the time of a reminder only has to say that.
func TestTimeOfReminderFollows(t *testing.T) {
	for _, c := range []struct{ wish, time, want string }{
		{"remind me to take the bread out", "tomorrow at 7", "take the bread out"},
		{"remind me to take the bread out", "At 7.", "take the bread out"},
		{"提醒我记得买牛奶", "明天早上七点。", "买牛奶"},
	} {
		b := newBrain(t, false)
		req := ask(c.wish, languageOf(c.wish), reminderTools())
		question := generate(t, b, req)
		req.Messages = append(req.Messages, providers.Message{Role: providers.RoleAssistant, Content: question.Text}, providers.Message{Role: providers.RoleUser, Content: c.time})
		d := generate(t, b, req)
		if len(d.ToolCalls) != 1 || d.ToolCalls[0].Name != "set_reminder" || !strings.Contains(d.ToolCalls[0].Arguments, c.want) || !strings.Contains(d.ToolCalls[0].Arguments, "7") && !strings.Contains(d.ToolCalls[0].Arguments, "七") {
			t.Errorf("%q, %q: %s", c.wish, c.time, show(d))
		}
		if len(d.ToolCalls) == 1 {
			if done := generate(t, b, then(req, d, "ok, it is set")); done.Text == "" || len(done.ToolCalls) > 0 {
				t.Errorf("%q, %q: after it is set: %s", c.wish, c.time, show(done))
			}
		}
		req.Messages[len(req.Messages)-1].Content = "never mind"
		if d := generate(t, b, req); len(d.ToolCalls) > 0 {
			t.Errorf("%q, never mind: %s", c.wish, show(d))
		}
		req.Messages[len(req.Messages)-1].Content, req.Messages[len(req.Messages)-2].Content = c.time, "Sure."
		if d := generate(t, b, req); len(d.ToolCalls) > 0 {
			t.Errorf("%q, %q without a question: %s", c.wish, c.time, show(d))
		}
	}
}

func TestReminderResults(t *testing.T) {
	for _, c := range []struct{ said, result, want string }{
		{
			"cancel the timer", `nothing was cancelled: say which one. [{"due":"at 7:05","left":"4 minutes","length":"5 minutes"},{"due":"tomorrow at 8:00","left":"13 hours","text":"tea"}]`,
			"Which one do you mean? There are 2: a timer of 5 minutes, 4 minutes left; tea, tomorrow at 8:00.",
		},
		{"cancel the timer", "there are no timers or reminders.", "there are no timers or reminders."},
		{"我有哪些提醒", `[{"due":"明天7点","left":"13小时","text":"吃药","repeats":"每个工作日7点"}]`, "有一个：每个工作日7点提醒吃药。"},
		{"what reminders do I have", `[{"due":"tomorrow at 7:00","left":"13 hours","text":"pills","repeats":"every weekday at 7:00"}]`, "There is one: pills, every weekday at 7:00."},
		{"what reminders do I have", `[{"due":"tomorrow at 7:00","left":"13 hours","text":"pills","repeats":"FREQ=DAILY;UNTIL=20270101"}]`, "There is one: pills, tomorrow at 7:00."},
		{"every day at 7 remind me to run", "tool call failed: this device has 32 timers and reminders already: some must be deleted first", "That did not work: this device has 32 timers and reminders already: some must be deleted first."},
	} {
		b := newBrain(t, false)
		req := ask(c.said, languageOf(c.said), reminderTools())
		if got := generate(t, b, then(req, generate(t, b, req), c.result)).Text; got != c.want {
			t.Errorf("%q after %s: %q, want %q", c.said, c.result, got, c.want)
		}
	}
}
