package spoken

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata" // the zones of the tests, wherever they run
)

// saturday is a Saturday afternoon in Shanghai.
func saturday() time.Time {
	return time.Date(2026, 11, 21, 15, 4, 5, 0, time.FixedZone("CST", 8*3600))
}

// TestAsPeopleSay: requests as they are heard, with what is said around the time.
func TestAsPeopleSay(t *testing.T) {
	for text, want := range map[string]string{
		"十分钟后叫我": "2026-11-21 15:14:05", "明天早上七点半提醒我开会": "2026-11-22 07:30:00", "提醒我明天早上七点半": "2026-11-22 07:30:00", "请明天七点叫醒我": "2026-11-22 07:00:00",
		"remind me in 10 minutes": "2026-11-21 15:14:05", "wake me at half past six": "2026-11-21 18:30:00", "after 90 minutes": "2026-11-21 16:34:05", "at quarter past seven": "2026-11-21 19:15:00",
		// parts of the day
		"明天一早": "2026-11-22 08:00:00", "明天一大早": "2026-11-22 08:00:00", "明天清早六点": "2026-11-22 06:00:00", "傍晚": "2026-11-21 18:00:00", "半夜": "2026-11-22 00:00:00", "午夜十二点": "2026-11-22 00:00:00",
		"今晚凌晨一点": "2026-11-22 01:00:00", "midday tomorrow": "2026-11-22 12:00:00", "this evening": "2026-11-21 20:00:00", "this evening at 8:15": "2026-11-21 20:15:00", "this afternoon at 5": "2026-11-21 17:00:00",
		"tomorrow morning at 7 am": "2026-11-22 07:00:00", "11 pm tonight": "2026-11-21 23:00:00", "tonight at 11 pm": "2026-11-21 23:00:00", "tonight at 6 pm": "2026-11-21 18:00:00", "1 am tonight": "2026-11-22 01:00:00", "six p.m": "2026-11-21 18:00:00",
		// the next twelve o'clock is as near as the next seven
		"十二点": "2026-11-22 00:00:00", "at twelve": "2026-11-22 00:00:00", "中午十二点": "2026-11-22 12:00:00",
		// minutes before the hour
		"差五分四点": "2026-11-21 15:55:00", "晚上差一刻八点": "2026-11-21 19:45:00", "八点差十分": "2026-11-21 19:50:00", "差五分一点": "2026-11-22 00:55:00", "明天下午一点差五分": "2026-11-22 12:55:00",
		"quarter to one": "2026-11-22 00:45:00", "quarter to one in the afternoon": "2026-11-22 12:45:00", "ten to twelve tonight": "2026-11-21 23:50:00", "five past midnight": "2026-11-22 00:05:00", "quarter to midnight": "2026-11-21 23:45:00", "ten to noon": "2026-11-22 11:50:00",
		// counted from now
		"三天后早上八点": "2026-11-24 08:00:00", "两天后的下午三点": "2026-11-23 15:00:00", "in 3 days at 8 am": "2026-11-24 08:00:00", "two days from now at noon": "2026-11-23 12:00:00", "a week from today": "2026-11-28 15:04:05",
		"一个月后": "2026-12-21 15:04:05", "半个月后": "2026-12-06 15:04:05", "半年后": "2027-05-21 15:04:05", "一年后": "2027-11-21 15:04:05", "in 3 months": "2027-02-21 15:04:05", "in a month at 9 am": "2026-12-21 09:00:00", "一周以后晚上八点": "2026-11-28 20:00:00",
		"in a couple of minutes": "2026-11-21 15:06:05", "in a quarter of an hour": "2026-11-21 15:19:05", "three quarters of an hour from now": "2026-11-21 15:49:05", "one hundred and twenty minutes": "2026-11-21 17:04:05", "五分半钟": "2026-11-21 15:09:35",
		// days
		"下周三下午三点": "2026-11-25 15:00:00", "下个月3号": "2026-12-03 09:00:00", "下月五号晚上八点": "2026-12-05 20:00:00", "这个月30号": "2026-11-30 09:00:00", "明年1月1日零点": "2027-01-01 00:00:00", "今年12月25日早上八点": "2026-12-25 08:00:00",
		"三十一号": "2026-12-31 09:00:00", "on the 25th at noon": "2026-11-25 12:00:00", "on the 1st": "2026-12-01 09:00:00", "the third at 5pm": "2026-12-03 17:00:00", "the twenty-fifth of december": "2026-12-25 09:00:00", "december first at ten": "2026-12-01 10:00:00", "december thirty-first": "2026-12-31 09:00:00",
		"wednesday next week at 3 pm": "2026-11-25 15:00:00", "next week on wednesday at 3 pm": "2026-11-25 15:00:00", "this coming friday": "2026-11-27 09:00:00",
		"11月27日星期五下午三点": "2026-11-27 15:00:00", "friday november 27 at 3 pm": "2026-11-27 15:00:00", "december 4, friday, 10 am": "2026-12-04 10:00:00", "下周三11月25日九点": "2026-11-25 09:00:00",
		// what else is said
		"明天十点左右": "2026-11-22 10:00:00", "六点准时": "2026-11-21 18:00:00", "at around 6": "2026-11-21 18:00:00", "at 6 sharp": "2026-11-21 18:00:00", "2026-12-25T08:00:00+0800": "2026-12-25 08:00:00", "2026-12-25T08:00:00.000Z": "2026-12-25 16:00:00",
	} {
		got, err := Time(text, saturday())
		if err != nil || got.Format(time.DateTime) != want {
			t.Errorf("Time(%q) = %v, %v, want %s", text, got, err, want)
		}
	}
}

// TestNotGuessed: what could mean another time is asked for again, never guessed.
func TestNotGuessed(t *testing.T) {
	for text, want := range map[string]error{
		"12-25": nil, "12.25": nil, "12/25": nil, "in 10": nil, "明天星期五": nil, "下周三11月26日": nil, "11月28日星期五": nil, "今晚早上八点": nil, "8 am tonight": nil, "明天差两点": nil, "差六十分八点": nil, "零分钟": nil, "昨天": nil,
		"2026年1月5日早上八点": ErrPast, "今年1月5日": ErrPast, "这个月3号": ErrPast, "january 5 2026": ErrPast, "this morning": ErrPast, "今天凌晨三点": ErrPast,
		"天天早上七点": ErrRepeats, "工作日早上七点": ErrRepeats, "daily at 7": ErrRepeats, "mondays at 9": ErrRepeats, "weekdays at 8 am": ErrRepeats, "at 7 every morning": ErrRepeats,
		"两年后": ErrTooLong, "13个月后": ErrTooLong, "100000000天后": ErrTooLong, "in 999999999 years": ErrTooLong, "后年1月1日": ErrTooLong, "2月29日": ErrTooLong,
	} {
		got, err := Time(text, saturday())
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("Time(%q) = %v, %v, want the error %v", text, got, err, want)
		}
	}
}

// TestMonthEnds: days that not every month or year has.
func TestMonthEnds(t *testing.T) {
	for _, test := range []struct{ now, text, want string }{
		{"2026-01-31 15:00", "一个月后", "2026-02-28 15:00"},
		{"2027-12-31 15:00", "两个月后", "2028-02-29 15:00"},
		{"2026-01-31 15:00", "31号早上八点", "2026-03-31 08:00"},
		{"2026-01-31 15:00", "明天八点", "2026-02-01 08:00"},
		{"2026-02-28 15:00", "明天八点", "2026-03-01 08:00"},
		{"2028-02-28 15:00", "明天八点", "2028-02-29 08:00"},
		{"2026-12-31 23:59", "明天零点", "2027-01-01 00:00"},
		{"2026-12-31 23:59", "1号八点", "2027-01-01 08:00"},
		{"2026-12-15 10:00", "下个月31号八点", "2027-01-31 08:00"},
		{"2026-12-31 15:00", "下周五八点", "2027-01-08 08:00"},
		{"2027-06-01 15:00", "2月29日八点", "2028-02-29 08:00"},
		{"2028-02-29 07:00", "2月29日八点", "2028-02-29 08:00"},
		{"2028-02-29 07:00", "一年后", "2029-02-28 07:00"},
		{"2026-04-30 15:00", "the 31st at 8", "2026-05-31 08:00"},
		{"2026-11-21 00:00", "零点", "2026-11-22 00:00"},
		{"2026-11-21 23:59", "24点", "2026-11-22 00:00"},
		{"2026-11-21 00:10", "今晚十二点", "2026-11-22 00:00"},
		{"2026-11-21 00:10", "十二点", "2026-11-21 12:00"},
		{"2026-11-21 11:59", "12点", "2026-11-21 12:00"},
		{"2026-11-22 10:00", "周日九点", "2026-11-29 09:00"},
		{"2026-11-22 10:00", "下周日九点", "2026-11-29 09:00"},
		{"2026-11-23 10:00", "周日九点", "2026-11-29 09:00"},
		{"2026-11-23 10:00", "next wednesday at 9", "2026-12-02 09:00"},
	} {
		now, err := time.ParseInLocation("2006-01-02 15:04", test.now, time.FixedZone("CST", 8*3600))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Time(test.text, now); err != nil || got.Format("2006-01-02 15:04") != test.want {
			t.Errorf("at %s, Time(%q) = %v, %v, want %s", test.now, test.text, got, err, test.want)
		}
	}
	leapDay := time.Date(2028, 2, 29, 9, 0, 0, 0, time.UTC)
	if got, err := Time("2月29日八点", leapDay); !errors.Is(err, ErrTooLong) {
		t.Errorf("the next leap day: %v, %v, want too long", got, err)
	}
}

// TestDaylightSaving: the wall clock is kept over a change of the clocks, lengths
// of time are exact, and an hour that there is not is within the hour.
func TestDaylightSaving(t *testing.T) {
	for _, test := range []struct{ zone, now, text, want string }{
		{"America/New_York", "2026-03-07 20:00", "tomorrow at 7 am", "2026-03-08T07:00:00-04:00"},
		{"America/New_York", "2026-03-07 20:00", "in 8 hours", "2026-03-08T05:00:00-04:00"},
		{"America/New_York", "2026-03-07 20:00", "in 2 days", "2026-03-09T20:00:00-04:00"},
		{"America/New_York", "2026-03-07 20:00", "in a week at 8 pm", "2026-03-14T20:00:00-04:00"},
		{"America/New_York", "2026-10-31 20:00", "tomorrow at 7 am", "2026-11-01T07:00:00-05:00"},
		{"America/New_York", "2026-10-31 20:00", "in 8 hours", "2026-11-01T03:00:00-05:00"},
		{"America/New_York", "2026-10-31 22:00", "midnight", "2026-11-01T00:00:00-04:00"},
		{"America/New_York", "2026-11-01 00:30", "24点", "2026-11-02T00:00:00-05:00"},
		{"Europe/Berlin", "2026-03-28 23:00", "凌晨一点", "2026-03-29T01:00:00+01:00"},
		{"Europe/Berlin", "2026-03-28 23:00", "六点", "2026-03-29T06:00:00+02:00"},
		// there is no midnight on this day, and the present hour is missing on the next
		{"America/Santiago", "2026-09-05 00:30", "明天早上七点", "2026-09-06T07:00:00-03:00"},
		{"America/Santiago", "2026-09-05 00:30", "周日早上七点", "2026-09-06T07:00:00-03:00"},
		{"America/Santiago", "2026-09-05 00:30", "一天后早上七点", "2026-09-06T07:00:00-03:00"},
		{"Asia/Kathmandu", "2026-11-21 15:04", "2026-11-22T00:00:00Z", "2026-11-22T05:45:00+05:45"},
		{"Pacific/Kiritimati", "2026-11-21 23:59", "明天零点", "2026-11-22T00:00:00+14:00"},
	} {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		now, err := time.ParseInLocation("2006-01-02 15:04", test.now, zone)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Time(test.text, now); err != nil || got.Format(time.RFC3339) != test.want {
			t.Errorf("%s at %s, Time(%q) = %v, %v, want %s", test.zone, test.now, test.text, got, err, test.want)
		}
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	missing := time.Date(2026, 3, 8, 7, 0, 0, 0, time.UTC) // 2:00 becomes 3:00
	got, err := Time("tomorrow at 2:30 am", time.Date(2026, 3, 7, 20, 0, 0, 0, zone))
	if off := got.Sub(missing).Abs(); err != nil || off > time.Hour {
		t.Errorf("an hour that is left out: %v, %v, %v away", got, err, off)
	}
}

// TestEveryMinuteOfADay: a time that was written comes back as it was, in digits
// and in words, whatever the present minute.
func TestEveryMinuteOfADay(t *testing.T) {
	start := time.Date(2026, 12, 31, 0, 0, 0, 0, time.FixedZone("CST", 8*3600))
	for minute := range 24 * 60 {
		due := start.Add(time.Duration(minute) * time.Minute)
		now := due.Add(-17 * time.Hour)
		day := map[bool]string{true: "今天", false: "明天"}[now.Day() == due.Day()]
		for _, text := range []string{
			due.Format("2006-01-02 15:04"), due.Format("15:04:05"), due.Format("January 2 2006 3:04 PM"), due.Format("3:04 pm on January 2"),
			day + due.Format("15点4分"), due.Format("1月2日15:04"),
		} {
			if got, err := Time(text, now); err != nil || !got.Equal(due) {
				t.Fatalf("at %v, Time(%q) = %v, %v", now, text, got, err)
			}
		}
	}
}

// FuzzDuration: what Go writes of a length of time is read as that length.
func FuzzDuration(f *testing.F) {
	for _, seconds := range []uint32{1, 59, 60, 3600, 86399, 31622400} {
		f.Add(seconds)
	}
	f.Fuzz(func(t *testing.T, seconds uint32) {
		d := time.Duration(seconds) * time.Second
		got, err := Duration(d.String())
		if in := d > 0 && d <= MaxDuration; in != (err == nil) || in && got != d {
			t.Errorf("Duration(%q) = %v, %v", d, got, err)
		}
	})
}
