package chain

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/providers"
)

func TestRestOf(t *testing.T) {
	const zh = "今天上海多云，最高气温二十八度，傍晚可能有阵雨。"
	const en = "Well, it's going to be sunny and rather warm tomorrow morning. Take an umbrella anyway."
	tests := []struct {
		text string
		said float64
		want string
	}{
		{zh, -1, zh},
		{zh, 0, zh},
		{zh, 5.5, zh},
		{zh, 8, "最高气温二十八度，傍晚可能有阵雨。"},
		{zh, 14.1, "度，傍晚可能有阵雨。"}, // the clause begins too far back
		{zh, 16, "傍晚可能有阵雨。"},
		{zh, 100, ""},
		{en, 1, en},
		{en, 7.5, en[len("Well, "):]},
		{en, 8.5, "rather warm tomorrow morning. Take an umbrella anyway."},
		{en, 17, "Take an umbrella anyway."},
		{"don't stop the music please now", 7, "now"},
		{"", 0, ""},
		{"……", 0, ""},
		{"现在室内的平均温度3.5度", 10, "3.5度"},
		{"The ratio of the two is now at 3.5 percent", 7, "3.5 percent"},
	}
	for _, tt := range tests {
		if got := restOf(tt.text, tt.said); got != tt.want {
			t.Errorf("after %.1f units of %q: %q, want %q", tt.said, tt.text, got, tt.want)
		}
	}
}

// TestPaceKeepsWords breaks sentences off everywhere, spoken at every usual pace,
// and looks that the rest begins no later than the sound ended: before any
// sentence was heard, and after some were.
func TestPaceKeepsWords(t *testing.T) {
	sentences := []providers.TTSRequest{
		{Language: "zh", Text: "今天上海多云，最高气温二十八度，傍晚可能有阵雨，出门请记得带伞。"},
		{Language: "zh", Text: "好的，已经把客厅的灯打开了，还需要我做什么吗？"},
		{Language: "ja", Text: "明日の東京は晴れで、最高気温は二十三度の予想です。傘はいらないと思います。"},
		{Language: "ko", Text: "내일 서울은 맑고, 최고 기온은 이십삼 도입니다. 우산은 필요 없어요."},
		{Language: "en", Text: "It will be sunny tomorrow, with a light breeze from the sea, and quite warm in the evening."},
	}
	for _, req := range sentences {
		for _, perUnit := range []time.Duration{150, 200, 250, 280} {
			perUnit *= time.Millisecond
			for _, heardBefore := range []int{0, 1, 5} {
				var p pace
				for range heardBefore {
					p.learn(req, time.Duration(units(req.Text)*float64(perUnit)))
				}
				var begun float64
				for i, r := range req.Text {
					n, _ := weighSign(req.Text[i:], r)
					sound := 200*time.Millisecond + time.Duration(begun*float64(perUnit)) // a voice begins with silence
					if rest := p.rest(req, sound); n > 0 && len(req.Text)-len(rest) > i {
						t.Errorf("%v a unit, %d sentences before: broken off before %q, but the rest begins with %q", perUnit, heardBefore, req.Text[i:], rest)
					}
				}
			}
		}
	}
}

// TestPaceRepeatsLittle checks the other side once the voice is known.
func TestPaceRepeatsLittle(t *testing.T) {
	req := providers.TTSRequest{Language: "zh", Text: strings.Repeat("今天上海多云有时有雨，", 6)}
	var p pace
	p.learn(req, time.Duration(units(req.Text)*200)*time.Millisecond)
	var begun, worst float64
	for i, r := range req.Text {
		sound := 200*time.Millisecond + time.Duration(begun*200)*time.Millisecond
		said := strings.TrimSuffix(req.Text[:i], p.rest(req, sound))
		again := units(req.Text) - units(p.rest(req, sound))
		worst = max(worst, units(said)-again)
		n, _ := weighSign(req.Text[i:], r)
		begun += n
	}
	if worst > lookBack+3 {
		t.Errorf("%.1f units are said twice", worst)
	}
}

func TestPaceRemembersTheSlowest(t *testing.T) {
	var p pace
	req := providers.TTSRequest{Language: "zh", Text: "今天上海多云有雨"} // 8 units
	p.learn(req, 2*time.Second)
	p.learn(req, time.Second)
	if u := p.unit["zh"]; u < 230*time.Millisecond || u > 250*time.Millisecond {
		t.Errorf("a unit of %v after one of 250 ms and one of 125", u)
	}
	p.learn(providers.TTSRequest{Language: "zh", Text: "好"}, 5*time.Second)
	p.learn(providers.TTSRequest{Language: "en", Text: "one two three four five six"}, time.Hour)
	if u := p.unit["zh"]; u > 250*time.Millisecond {
		t.Errorf("a short sentence or another language changed it to %v", u)
	}
}
