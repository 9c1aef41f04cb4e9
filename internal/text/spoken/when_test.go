package spoken

import (
	"errors"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	const m, h = time.Minute, time.Hour
	for text, want := range map[string]time.Duration{
		"10分钟": 10 * m, "十分钟": 10 * m, "10分钟后": 10 * m, "半小时": 30 * m, "半个小时": 30 * m, "一个半小时": 90 * m, "两个小时": 2 * h,
		"两小时半": 150 * m, "1小时30分": 90 * m, "一小时零五分": 65 * m, "一刻钟": 15 * m, "三刻钟": 45 * m, "30秒": 30 * time.Second, "一分半": 90 * time.Second,
		"1.5小时": 90 * m, "三天": 72 * h, "一周": 168 * h, "过五分钟": 5 * m, "5 分 钟": 0, "再过二十五分钟": 25 * m,
		"2h30m": 150 * m, "90s": 90 * time.Second, "1h": h, "PT10M": 10 * m, "P1DT2H": 26 * h, "pt1h30m15s": 90*m + 15*time.Second,
		"10 minutes": 10 * m, "in 10 minutes": 10 * m, "ten minutes": 10 * m, "an hour": h, "half an hour": 30 * m, "an hour and a half": 90 * m,
		"two and a half hours": 150 * m, "1 hour 5 minutes": 65 * m, "1 hour and 5 minutes": 65 * m, "twenty five minutes": 25 * m, "2 days": 48 * h,
		"10-minute": 10 * m, "5 mins later": 5 * m, "１０分钟": 10 * m, "10min": 10 * m,
	} {
		got, err := Duration(text)
		if want == 0 {
			if err == nil {
				t.Errorf("Duration(%q) = %v, want an error", text, got)
			}
			continue
		}
		if err != nil || got != want {
			t.Errorf("Duration(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "10", "分钟", "0分钟", "明天", "10 bananas", "十分钟以前的事", "-5 minutes", "1e9h", "10分钟abc", "0.1s"} {
		if got, err := Duration(text); err == nil {
			t.Errorf("Duration(%q) = %v, want an error", text, got)
		}
	}
	if _, err := Duration("2000天"); !errors.Is(err, ErrTooLong) {
		t.Errorf("2000 days: %v", err)
	}
}

func TestTime(t *testing.T) {
	zone := time.FixedZone("CST", 8*3600)
	now := time.Date(2026, 11, 21, 15, 4, 5, 0, zone) // a Saturday
	for text, want := range map[string]string{
		"明天早上七点": "11-22 07:00:00", "明早七点": "11-22 07:00:00", "明天七点": "11-22 07:00:00", "明晚8点": "11-22 20:00:00", "明天下午三点半": "11-22 15:30:00",
		"今晚八点": "11-21 20:00:00", "今天下午五点一刻": "11-21 17:15:00", "晚上九点四十五分": "11-21 21:45:00", "后天中午十二点": "11-23 12:00:00", "大后天上午9点": "11-24 09:00:00",
		"七点": "11-21 19:00:00", "三点": "11-22 03:00:00", "十五点三十分": "11-21 15:30:00", "15:30": "11-21 15:30:00", "07:00": "11-22 07:00:00", "7:00": "11-21 19:00:00",
		"14:00": "11-22 14:00:00", "早上七点": "11-22 07:00:00", "凌晨12点半": "11-22 00:30:00", "今晚12点": "11-22 00:00:00", "晚上一点": "11-22 01:00:00", "中午一点": "11-22 13:00:00",
		"下周一上午9点": "11-23 09:00:00", "周一九点": "11-23 09:00:00", "周六早上八点": "11-28 08:00:00", "周六晚上八点": "11-21 20:00:00", "下周六十点": "11-28 10:00:00", "星期天下午两点": "11-22 14:00:00", "礼拜三10:30": "11-25 10:30:00",
		"11月25日15:30": "11-25 15:30:00", "11月25号下午3点": "11-25 15:00:00", "25号早上八点": "11-25 08:00:00", "3号八点": "12-03 08:00:00", "2026年12月1日8点": "12-01 08:00:00", "十二月一日八点整": "",
		"明天": "11-22 09:00:00", "明天早上": "11-22 08:00:00", "明天晚上": "11-22 20:00:00", "后天下午": "11-23 15:00:00",
		"10分钟后": "11-21 15:14:05", "2h30m": "11-21 17:34:05", "半小时以后": "11-21 15:34:05", "in 2 hours": "11-21 17:04:05", "三天后": "11-24 15:04:05",
		"tomorrow at 7 am": "11-22 07:00:00", "tomorrow 7am": "11-22 07:00:00", "7 pm": "11-21 19:00:00", "at 7:30 pm tomorrow": "11-22 19:30:00", "tonight at 8": "11-21 20:00:00",
		"tomorrow at noon": "11-22 12:00:00", "tomorrow at 12 noon": "11-22 12:00:00", "next friday at 10:15": "11-27 10:15:00", "monday at nine": "11-23 09:00:00", "on sunday": "11-22 09:00:00",
		"half past seven": "11-21 19:30:00", "quarter to eight in the morning": "11-22 07:45:00", "ten past five pm": "11-21 17:10:00", "seven thirty tomorrow evening": "11-22 19:30:00",
		"7 in the evening": "11-21 19:00:00", "seven o'clock tomorrow": "11-22 07:00:00", "november 25 at 3pm": "11-25 15:00:00", "the 25th of november at 15:30": "11-25 15:30:00", "Nov 25th, 2026 8 am": "11-25 08:00:00",
		"midnight": "11-22 00:00:00", "at midnight tonight": "11-22 00:00:00", "tonight at midnight": "11-22 00:00:00", "seven oh five in the evening": "11-21 19:05:00", "7 oh 5 pm": "11-21 19:05:00", "half seven": "11-21 19:30:00", "in half an hour": "11-21 15:34:05", "今晚半夜": "11-22 00:00:00", "12 am tomorrow": "11-22 00:00:00", "day after tomorrow at 6": "11-23 06:00:00",
		"2026-11-25T15:30:00+08:00": "11-25 15:30:00", "2026-11-25T07:30:00Z": "11-25 15:30:00", "2026-11-25 15:30": "11-25 15:30:00", "2026-11-25T15:30": "11-25 15:30:00", "2026-11-25": "11-25 09:00:00", "2026/11/25 8:00": "11-25 08:00:00",
	} {
		got, err := Time(text, now)
		if want == "" {
			continue
		}
		if err != nil || got.Format("01-02 15:04:05") != want || got.Year() != 2026 {
			t.Errorf("Time(%q) = %v, %v, want %s", text, got, err, want)
		}
	}
	if got, err := Time("1月5日早上八点", now); err != nil || got.Format(time.DateTime) != "2027-01-05 08:00:00" {
		t.Errorf("a date of next year: %v, %v", got, err)
	}
}

func TestTimeErrors(t *testing.T) {
	now := time.Date(2026, 11, 21, 15, 4, 5, 0, time.FixedZone("CST", 8*3600))
	for text, want := range map[string]error{
		"今天早上七点": ErrPast, "today at 9 am": ErrPast, "2026-11-21 15:04:05": ErrPast, "2025-01-01": ErrPast, "2024年1月1日": ErrPast,
		"每天早上七点": ErrRepeats, "every day at 7": ErrRepeats, "2000天后": ErrTooLong, "2030-01-01 08:00": ErrTooLong,
		"": nil, "soon": nil, "吃饭的时候": nil, "25:00": nil, "7:75": nil, "明天三十点": nil, "2月30日": ErrNoDate, "四月三十一号早上七点": ErrNoDate, "明年2月29日": ErrNoDate, "on february 30 at 7": ErrNoDate, "31 april": ErrNoDate, "2027-02-29": ErrNoDate, "明天明天": nil, "7 pm am": nil, "tomorrow at the beach": nil,
		"下下下下下下周一": nil, "的": nil,
	} {
		got, err := Time(text, now)
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("Time(%q) = %v, %v, want the error %v", text, got, err, want)
		}
	}
}

func FuzzTime(f *testing.F) {
	for _, s := range []string{"明天早上七点半", "in 2 hours", "2h30m", "nov 25th 2026 7:30 pm", "2026-11-25T15:30:00+08:00", "下周一", "quarter to eight", "31号", "２月29日"} {
		f.Add(s)
	}
	now := time.Date(2026, 1, 31, 23, 59, 59, 0, time.FixedZone("CST", 8*3600))
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := Time(text, now); err == nil && (!got.After(now) || got.Sub(now) > MaxDuration+24*time.Hour) {
			t.Errorf("Time(%q) = %v", text, got)
		}
		if d, err := Duration(text); err == nil && (d <= 0 || d > MaxDuration) {
			t.Errorf("Duration(%q) = %v", text, d)
		}
	})
}

func TestDay(t *testing.T) {
	now := time.Date(2026, 11, 21, 15, 4, 5, 0, time.FixedZone("CST", 8*3600))
	for text, want := range map[string]string{
		"2026-02-17": "2026-02-17", "1949/10/1": "1949-10-01", "今天": "2026-11-21", "明天": "2026-11-22", "tomorrow": "2026-11-22", "下周一": "2026-11-23",
		"11月25日": "2026-11-25", "2025年7月25日": "2025-07-25", "the 5th of june 2030": "2030-06-05", "1月1号": "2026-01-01",
	} {
		if got, err := Day(text, now); err != nil || got.Format(time.DateOnly) != want {
			t.Errorf("Day(%q) = %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "soon", "2026-02-30", "2026-13-01", "明天七点", "2026-02-17 and more", "0000-01-01"} {
		if got, err := Day(text, now); err == nil {
			t.Errorf("Day(%q) = %v, want an error", text, got)
		}
	}
}

func TestAtClock(t *testing.T) {
	seven, eve := time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC), time.Date(2026, 11, 22, 19, 30, 0, 0, time.UTC)
	for words, want := range map[string][3]bool{ // at seven, at half past seven in the evening, a clock
		"7 am": {true, false, true}, "7 oclock": {true, false, true}, "七点": {true, false, true}, "早上七点": {true, false, true}, "7:00": {true, false, true}, "07:00": {true, false, true},
		"7 pm": {false, false, true}, "晚上七点": {false, false, true}, "half past seven": {false, true, true}, "七点半": {false, true, true}, "晚上七点半": {false, true, true}, "19:30": {false, true, true},
		"07:30": {false, false, true}, "早上七点半": {false, false, true}, "at 7": {true, false, true}, "早上七点的": {true, false, true},
		"明天早上七点": {}, "tomorrow at 7": {}, "tea": {}, "": {}, "早上": {}, "7 bananas": {}, "25:00": {},
	} {
		atSeven, clock := AtClock(words, seven)
		atEve, _ := AtClock(words, eve)
		if got := [3]bool{atSeven, atEve, clock}; got != want {
			t.Errorf("%q: %v, want %v", words, got, want)
		}
	}
	noon := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for words, want := range map[string]bool{"零点": false, "0:00": false, "12点": true} {
		if at, _ := AtClock(words, noon); at != want {
			t.Errorf("%q at noon: %v", words, at)
		}
	}
}
