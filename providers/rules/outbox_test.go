package rules

import (
	"encoding/json"
	"testing"

	"xiaozhi/providers"
)

// outboxTools are this server's own tools for what is said unasked.
func outboxTools() []providers.ToolSpec {
	return append(
		reminderTools(),
		spec("be_quiet", "", json.RawMessage(`{"properties":{"until":{"type":"string"},"duration":{"type":"string"}}}`)),
		spec("end_quiet", "", json.RawMessage(`{"type":"object","properties":{}}`)),
		spec("set_routine", "", json.RawMessage(`{"properties":{"when":{"type":"string"},"repeat":{"type":"string"},"what":{"type":"string"},"to":{"type":"string"}},"required":["when","what"]}`)),
		spec("list_routines", "", json.RawMessage(`{"type":"object","properties":{}}`)),
		spec("cancel_routine", "", json.RawMessage(`{"properties":{"name":{"type":"string"}}}`)),
	)
}

// TestOutboxPhrasings: quiet until a time, for a while, or for good, and what is to be done again and again, in people's own words; what
// only sounds like it is something else.
func TestOutboxPhrasings(t *testing.T) {
	for said, want := range map[string]string{
		"be quiet until seven":                                       `be_quiet {"until":"7"}`,
		"Please be quiet until 7 am tomorrow.":                       `be_quiet {"until":"7 am tomorrow"}`,
		"don't disturb me for two hours":                             `be_quiet {"duration":"2 hours"}`,
		"do not disturb me until tomorrow morning":                   `be_quiet {"until":"tomorrow morning"}`,
		"turn on do not disturb":                                     `be_quiet {}`,
		"do not disturb until 8 pm":                                  `be_quiet {"until":"8 pm"}`,
		"don't bother me":                                            `be_quiet {}`,
		"turn off do not disturb":                                    `end_quiet {}`,
		"you can talk again":                                         `end_quiet {}`,
		"安静到七点":                                                      `be_quiet {"until":"七点"}`,
		"安静到明天早上七点":                                                  `be_quiet {"until":"明天早上七点"}`,
		"七点之前别打扰我":                                                   `be_quiet {"until":"七点"}`,
		"明天早上八点前不要吵我":                                                `be_quiet {"until":"明天早上八点"}`,
		"两小时内别打扰我":                                                   `be_quiet {"duration":"2小时"}`,
		"接下来半小时别打扰我":                                                 `be_quiet {"duration":"30分钟"}`,
		"打开免打扰":                                                      `be_quiet {}`,
		"别打扰我":                                                       `be_quiet {}`,
		"关闭勿扰模式":                                                     `end_quiet {}`,
		"可以说话了":                                                      `end_quiet {}`,
		"every morning at 7 tell me the weather and the calendar":    `set_routine {"what":"tell me the weather and the calendar","when":"every morning at 7"}`,
		"every weekday at 8 read me the news":                        `set_routine {"what":"read me the news","when":"every weekday at 8"}`,
		"每天早上七点告诉我天气和日程":                                             `set_routine {"what":"告诉我天气和日程","when":"每天早上七点"}`,
		"每个工作日八点给我播报新闻":                                              `set_routine {"what":"给我播报新闻","when":"每个工作日八点"}`,
		"what routines do I have":                                    `list_routines {}`,
		"我有哪些例行任务":                                                   `list_routines {}`,
		"cancel the weather routine":                                 `cancel_routine {"name":"weather"}`,
		"cancel the routine":                                         `cancel_routine {}`,
		"stop my routine about the news":                             `cancel_routine {"name":"the news"}`,
		"取消例行任务":                                                     `cancel_routine {}`,
		"取消天气的例行任务":                                                  `cancel_routine {"name":"天气"}`,
		"remind me every day at 7 to take my pills":                  `set_reminder {"text":"take my pills","time":"every day at 7"}`,
		"每天早上七点提醒我吃药":                                                `set_reminder {"text":"吃药","time":"每天早上七点"}`,
		"every cloud has a silver lining tell me why that is so":     "fallback",
		"be quiet until the cows come home":                          "fallback",
		"don't disturb me until the end of the world please, thanks": "fallback",
	} {
		d := generate(t, newBrain(t, false), ask(said, languageOf(said), outboxTools()))
		got := show(d)
		if d.Fallback {
			got = "fallback"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", said, got, want)
		}
	}
}
