package spoken

import (
	"testing"
	"time"
)

// TestOtherLanguages: where nobody has written down how people say it, there are plain figures, 24 hours and no words of another language.
func TestOtherLanguages(t *testing.T) {
	now := time.Date(2026, 11, 23, 7, 5, 0, 0, time.UTC)
	tomorrow, yesterday := now.Add(32*time.Hour), now.Add(-20*time.Hour)
	for name, got := range map[string][2]string{
		"clock":          {SayClock(now, "ja"), "7:05"},
		"time of day":    {SayTimeOfDay(now.Add(11*time.Hour), "ja"), "18:05"},
		"duration":       {SayDuration(26*time.Hour+90*time.Second, "de"), "1 d 2 h 1 min 30 s"},
		"no duration":    {SayDuration(0, "de"), "0 s"},
		"one unit":       {SayInOneUnit(90*time.Minute, "ru"), "90 min"},
		"count":          {SayCount(1, "vi"), "1"},
		"today":          {SayTime(now.Add(time.Hour), now, "ko"), "8:05"},
		"tomorrow":       {SayTime(tomorrow, now, "ko"), "2026-11-24 15:05"},
		"yesterday":      {SayPast(yesterday, now, "ja"), "2026-11-22 11:05"},
		"day":            {SayDay(now, "es"), "2026-11-23"},
		"date":           {SayDate(now, "es"), "2026-11-23"},
		"repeats":        {SayRepeat("FREQ=DAILY", now, "ja"), ""},
		"Taiwan":         {SayTime(tomorrow, now, "zh-TW"), "明天15点05分"},
		"United Kingdom": {SayTime(tomorrow, now, "en-GB"), "tomorrow at 15:05"},
		"none":           {SayTime(tomorrow, now, ""), "tomorrow at 15:05"},
	} {
		if got[0] != got[1] {
			t.Errorf("%s: %q, want %q", name, got[0], got[1])
		}
	}
}

// TestTimeOtherLanguages: words of another language are understood whole or not at all.
func TestTimeOtherLanguages(t *testing.T) {
	now := time.Date(2026, 11, 23, 7, 5, 0, 0, time.UTC)
	for _, words := range []string{
		"morgen um 7", "in 5 Minuten", "am 3. Mai", "heute Abend um acht", "in einer Stunde", "Montag um 9", "halb acht", "Freitag", "um 7 Uhr",
		"mañana a las 7", "en 10 minutos", "a las 3 de la tarde", "el lunes", "dentro de 2 horas", "завтра в 7", "через 10 минут", "в понедельник",
		"ngày mai lúc 7 giờ", "sau 10 phút", "내일 7시", "10분 뒤에", "오후 3시", "明日の3時に", "3分後に", "来週の月曜日", "あさって", "午後三時半に",
	} {
		if at, rule, err := When(words, now); err == nil {
			t.Errorf("%q is %v, %q", words, at, rule)
		}
		if d, err := Duration(words); err == nil {
			t.Errorf("%q takes %v", words, d)
		}
	}
}
