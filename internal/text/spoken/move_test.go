package spoken

import "testing"

func TestParseMove(t *testing.T) {
	for text, want := range map[string]int{ // from 50
		"up": 60, "down": 40, "louder": 60, "quieter": 40, "大一点": 60, "小一点": 40, "再大声一点": 60, "a bit quieter": 40, "much louder": 80,
		"大很多": 80, "小20": 30, "up by 20 percent": 70, "调高百分之十五": 65, "+5": 55, "-5": 45, "亮一些": 60, "太亮了": 40, "太吵了": 40, "too loud": 40,
		"别太大声": 40, "not so loud": 40, "太小了，大一点": 60, "it's too quiet, louder please": 60, "less bright": 40, "too loud, turn it down": 40, "太暗": 60,
		"max": 100, "最大": 100, "调到最亮": 100, "min": 0, "静音": 0, "mute": 0, "half": 50, "一半": 50, "小一下": 40, "降低": 40, "增加三十": 80,
	} {
		m, ok := ParseMove(text)
		if got := m.From(50); !ok || got != want {
			t.Errorf("%q goes from 50 to %d (%v), want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "banana", "你好", "30"} {
		if m, ok := ParseMove(text); ok {
			t.Errorf("%q: %+v, want none", text, m)
		}
	}
}
