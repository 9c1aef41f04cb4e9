package spoken

import "testing"

// TestParseMoveSpoken: what owners say to a speaker, from a level of 40.
func TestParseMoveSpoken(t *testing.T) {
	for text, want := range map[string]int{
		// the thing that is changed is no direction
		"turn down the brightness": 30, "lower the brightness a bit": 30, "brightness up": 50, "降低亮度": 30, "降低屏幕亮度": 30, "减小亮度二十": 20, "提高亮度": 50, "把音响调小": 30, "调小音响的声音": 30, "大声点，小智": 50, "小智，小声点": 30,
		// a level that is named
		"turn it up to 80": 80, "turn it down to 20 percent": 20, "调大到80": 80, "调到三十": 30, "声音调到百分之六十": 60, "set it to thirty": 30, "up to 150": 100, "降到10": 10,
		// no more, no less
		"turn it down some more": 30, "quieter, more": 30, "more": 50, "louder - please": 50, "小一半": 20, "音量减半": 20, "half as loud": 20, "cut it by half": 20, "调到一半": 50,
		"unmute": 70, "取消静音": 70, "mute it": 0, "别静音了，取消静音": 70, "听不清": 50, "我听不见": 50, "I can't hear you": 50, "不够亮": 50, "not loud enough": 50, "声音大点": 50, "小点声": 30, "太大声了": 30, "太暗了": 50, "别这么大声": 30, "屏幕太刺眼": 30,
		"down by twenty": 20, "turn it up by five": 45, "a bit louder": 50, "turn this one up": 50, "大声二十": 60, "再大一点": 50, "a lot quieter": 10,
	} {
		m, ok := ParseMove(text)
		if got := min(max(m.From(40), 0), 100); !ok || got != want {
			t.Errorf("%q goes from 40 to %d (%v), want %d", text, got, ok, want)
		}
	}
}

func FuzzMove(f *testing.F) {
	f.Add("turn it up to 80", 50)
	f.Add("小一半", 0)
	f.Add("99999999999999999999大", 100)
	f.Fuzz(func(t *testing.T, text string, now int) {
		now = (now%101 + 101) % 101
		m, ok := ParseMove(text)
		if to := m.From(now); ok && (to < -100 || to > 200 || m.Relative() && m.up == (to < now) && !m.halve) {
			t.Errorf("%q goes from %d to %d", text, now, to)
		}
	})
}
