package think

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/text"
)

func TestActionWords(t *testing.T) {
	for _, c := range []struct{ name, description, language, want string }{
		{"self.lamp.turn_on", "", "en", "turn on the lamp"},
		{"self.audio_speaker.set_volume", "Set the volume", "en", "set the volume"},
		{"self.audio_speaker.set_volume", "设置音量。0到100", "zh", "设置音量"},
		{"self.audio_speaker.set_volume", "设置音频扬声器的输出音量大小到指定的数值", "zh", "set volume"},
		{"self.screen.set_theme", "Sets the theme", "zh", "set theme"},
		{"self.reboot", "", "en", "reboot"},
		{"open-door", "", "en", "open the door"},
		{"dance", "", "en", "dance"},
		{"...", "", "en", "..."},
		{"开灯", "", "zh", "开灯"},
		{"self.?open", "", "en", "open"},
		{"self.safe.open", "？打开保险箱", "zh", "打开保险箱"},
		{"self.safe.open", "听歌吗？打开保险箱", "zh", "听歌吗 打开保险箱"},
	} {
		if got := ActionWords(c.name, c.description, text.Lang(c.language)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.language, c.name, got, c.want)
		}
	}
}

func TestReasonWords(t *testing.T) {
	for in, want := range map[string]string{
		"It broke.":                  "It broke",
		" 灯没有回应。 ":                   "灯没有回应",
		"first line\nstack of calls": "first line",
		strings.Repeat("长", 500):     strings.Repeat("长", maxReason),
	} {
		if got := ReasonWords(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestBudget(t *testing.T) {
	var b Budget
	day := time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC)
	for i, want := range []bool{true, true, false, false} {
		if got := b.Take(day, 2); got != want {
			t.Errorf("call %d: %v", i, got)
		}
	}
	if !b.Take(day.Add(time.Minute), 2) {
		t.Error("the next day has no budget")
	}
}
