package spoken

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/text"
)

// TestWhen: what recurs is read as a rule with its beginning.
func TestWhen(t *testing.T) {
	zone := time.FixedZone("CST", 8*3600)
	now := time.Date(2026, 11, 21, 15, 4, 5, 0, zone) // a Saturday
	for words, want := range map[string]string{
		"every day at 7": "FREQ=DAILY 11-21 07:00", "every weekday at 7": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR 11-21 07:00", "at 7 on weekdays": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR 11-21 07:00",
		"every morning at 7:30": "FREQ=DAILY 11-21 07:30", "every evening at eight": "FREQ=DAILY 11-21 20:00", "every morning": "FREQ=DAILY 11-21 08:00", "daily at noon": "FREQ=DAILY 11-21 12:00",
		"every monday at 9 am": "FREQ=WEEKLY;BYDAY=MO 11-21 09:00", "every monday and wednesday at 9": "FREQ=WEEKLY;BYDAY=MO,WE 11-21 09:00", "every monday, wednesday and friday at 6 pm": "FREQ=WEEKLY;BYDAY=MO,WE,FR 11-21 18:00",
		"mondays at 10": "FREQ=WEEKLY;BYDAY=MO 11-21 10:00", "on mondays and thursdays at 10": "FREQ=WEEKLY;BYDAY=MO,TH 11-21 10:00",
		"every second tuesday at 8": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU 11-21 08:00", "every other tuesday": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU 11-21 09:00",
		"every second tuesday of the month at 8": "FREQ=MONTHLY;BYDAY=2TU 11-21 08:00", "the first monday of every month at 9": "FREQ=MONTHLY;BYDAY=1MO 11-21 09:00", "last friday of each month": "FREQ=MONTHLY;BYDAY=-1FR 11-21 09:00",
		"every other day at 8 pm": "FREQ=DAILY;INTERVAL=2 11-21 20:00", "every 3 days": "FREQ=DAILY;INTERVAL=3 11-21 09:00", "every two weeks": "FREQ=WEEKLY;INTERVAL=2 11-21 09:00",
		"every month on the 15th at 9": "FREQ=MONTHLY 12-15 09:00", "on the 15th of every month at 9": "FREQ=MONTHLY 12-15 09:00", "the last day of every month at 6 pm": "FREQ=MONTHLY;BYMONTHDAY=-1 11-21 18:00",
		"every year on may 5 at 8": "FREQ=YEARLY 05-05 08:00", "weekly on friday at 5 pm": "FREQ=WEEKLY 11-27 17:00", "every weekend at 10": "FREQ=WEEKLY;BYDAY=SA,SU 11-21 10:00",
		"every hour": "FREQ=HOURLY 11-21 15:04", "every 30 minutes": "FREQ=MINUTELY;INTERVAL=30 11-21 15:04", "every half hour": "FREQ=MINUTELY;INTERVAL=30 11-21 15:04", "every two hours": "FREQ=HOURLY;INTERVAL=2 11-21 15:04",
		"每天早上七点": "FREQ=DAILY 11-21 07:00", "每天早上七点叫我起床": "FREQ=DAILY 11-21 07:00", "每天7点": "FREQ=DAILY 11-21 07:00", "天天晚上九点半": "FREQ=DAILY 11-21 21:30", "每晚八点": "FREQ=DAILY 11-21 20:00", "每天": "FREQ=DAILY 11-21 09:00",
		"每个工作日早上七点": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR 11-21 07:00", "工作日早上7点半": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR 11-21 07:30", "周一到周五早上七点": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR 11-21 07:00", "每周一至周五早上七点": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR 11-21 07:00",
		"每周二下午三点": "FREQ=WEEKLY;BYDAY=TU 11-21 15:00", "每周一三五晚上八点": "FREQ=WEEKLY;BYDAY=MO,WE,FR 11-21 20:00", "每个星期天上午十点": "FREQ=WEEKLY;BYDAY=SU 11-21 10:00", "每周二和周四早上八点": "FREQ=WEEKLY;BYDAY=TU,TH 11-21 08:00",
		"每两周的周二早上八点": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU 11-21 08:00", "每隔一周的周二早上八点": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU 11-21 08:00", "每隔一天晚上八点": "FREQ=DAILY;INTERVAL=2 11-21 20:00", "每两天": "FREQ=DAILY;INTERVAL=2 11-21 09:00",
		"每个月15号早上九点": "FREQ=MONTHLY 12-15 09:00", "每月15号早上九点": "FREQ=MONTHLY 12-15 09:00", "每月最后一天下午六点": "FREQ=MONTHLY;BYMONTHDAY=-1 11-21 18:00", "每月第二个周二早上八点": "FREQ=MONTHLY;BYDAY=2TU 11-21 08:00", "每个月的最后一个星期五": "FREQ=MONTHLY;BYDAY=-1FR 11-21 09:00",
		"每年5月5号早上八点": "FREQ=YEARLY 05-05 08:00", "每小时": "FREQ=HOURLY 11-21 15:04", "每隔20分钟": "FREQ=MINUTELY;INTERVAL=20 11-21 15:04", "每半小时": "FREQ=MINUTELY;INTERVAL=30 11-21 15:04", "每两个小时": "FREQ=HOURLY;INTERVAL=2 11-21 15:04",
		"每个周末上午十点": "FREQ=WEEKLY;BYDAY=SA,SU 11-21 10:00", "每天零点": "FREQ=DAILY 11-21 00:00",
		"每周一到周六早上七点": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA 11-21 07:00", "星期一至星期四晚上八点": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH 11-21 20:00", "每周五到周日上午十点": "FREQ=WEEKLY;BYDAY=FR,SA,SU 11-21 10:00",
		"周一到周日每天早上七点": "FREQ=DAILY 11-21 07:00", "每周一到五早上七点": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR 11-21 07:00", "每周六到周一早上九点": "FREQ=WEEKLY;BYDAY=MO,SA,SU 11-21 09:00",
		"monday to friday at 7": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR 11-21 07:00", "every monday through thursday at 7 am": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH 11-21 07:00", "from friday to sunday at 9": "FREQ=WEEKLY;BYDAY=FR,SA,SU 11-21 09:00",
		"每周二十点": "FREQ=WEEKLY;BYDAY=TU 11-21 10:00", "每周一三五十点": "FREQ=WEEKLY;BYDAY=MO,WE,FR 11-21 10:00", "每周三点": "FREQ=WEEKLY 11-21 03:00", "每逢周一早上七点": "FREQ=WEEKLY;BYDAY=MO 11-21 07:00",
		"每周二二十点": "FREQ=WEEKLY;BYDAY=TU 11-21 20:00", "每周一二十一点半": "FREQ=WEEKLY;BYDAY=MO 11-21 21:30", "周一到五7点": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR 11-21 07:00", "周一到五": "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR 11-21 09:00",
		"隔天早上七点": "FREQ=DAILY;INTERVAL=2 11-21 07:00", "隔周周二下午三点": "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU 11-21 15:00",
		"on the first monday of the month": "FREQ=MONTHLY;BYDAY=1MO 11-21 09:00", "the first monday of the month at 9": "FREQ=MONTHLY;BYDAY=1MO 11-21 09:00", "every last friday at 5 pm": "FREQ=MONTHLY;BYDAY=-1FR 11-21 17:00", "every first monday at noon": "FREQ=MONTHLY;BYDAY=1MO 11-21 12:00",
		"every two weeks on monday and friday at 10": "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR 11-21 10:00", "every fortnight": "FREQ=WEEKLY;INTERVAL=2 11-21 09:00", "every november 25 at 8 am": "FREQ=YEARLY 11-25 08:00",
		"the 1st of each month": "FREQ=MONTHLY 12-01 09:00", "sunday mornings at 10": "FREQ=WEEKLY;BYDAY=SU 11-21 10:00", "saturday evenings": "FREQ=WEEKLY;BYDAY=SA 11-21 20:00", "every night at half past nine": "FREQ=DAILY 11-21 21:30",
		"tomorrow at 7 am": "11-22 07:00", "明天早上七点": "11-22 07:00", "in 10 minutes": "11-21 15:14",
	} {
		at, rule, err := When(words, now)
		got := strings.TrimSpace(rule + " " + at.Format("01-02 15:04"))
		if err != nil || got != want {
			t.Errorf("When(%q) = %s, %v, want %s", words, got, err, want)
		}
	}
	for _, words := range []string{"", "soon", "every", "every banana", "每", "every day at 25:00", "每天吃药", "周二到三亚", "每周一到二楼", "every February 30", "每年2月30日"} {
		if at, rule, err := When(words, now); err == nil {
			t.Errorf("When(%q) = %v %s, want an error", words, at, rule)
		}
	}
}

func TestSayRepeat(t *testing.T) {
	at := time.Date(2026, 11, 24, 7, 0, 0, 0, time.UTC) // a Tuesday
	for rule, want := range map[string][2]string{
		"FREQ=DAILY":                                      {"every day at 7:00", "每天7点"},
		"FREQ=DAILY;INTERVAL=2":                           {"every 2 days at 7:00", "每2天7点"},
		"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR":                {"every weekday at 7:00", "每个工作日7点"},
		"FREQ=WEEKLY;BYDAY=SA,SU":                         {"every weekend at 7:00", "每个周末7点"},
		"FREQ=WEEKLY":                                     {"every Tuesday at 7:00", "每星期二7点"},
		"FREQ=WEEKLY;BYDAY=MO,WE,FR":                      {"every Monday, Wednesday and Friday at 7:00", "每星期一、星期三和星期五7点"},
		"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA":             {"every Monday to Saturday at 7:00", "每星期一到星期六7点"},
		"FREQ=WEEKLY;BYDAY=WE,TH,SA":                      {"every Wednesday, Thursday and Saturday at 7:00", "每星期三、星期四和星期六7点"},
		"FREQ=WEEKLY;INTERVAL=2;BYDAY=TU":                 {"every second Tuesday at 7:00", "每2周的星期二7点"},
		"FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR":              {"every 2 weeks on Monday and Friday at 7:00", "每2周的星期一和星期五7点"},
		"FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TU,WE":           {"every 2 weeks from Monday to Wednesday at 7:00", "每2周的星期一到星期三7点"},
		"FREQ=WEEKLY;INTERVAL=3;BYDAY=TU,TH":              {"every 3 weeks on Tuesday and Thursday at 7:00", "每3周的星期二和星期四7点"},
		"FREQ=MONTHLY;BYDAY=2TU":                          {"on the 2nd Tuesday of every month at 7:00", "每个月第2个星期二7点"},
		"FREQ=MONTHLY;BYDAY=-1FR":                         {"on the last Friday of every month at 7:00", "每个月最后一个星期五7点"},
		"FREQ=MONTHLY;BYMONTHDAY=15":                      {"on the 15th of every month at 7:00", "每个月15号7点"},
		"FREQ=MONTHLY;BYMONTHDAY=28,29,30,31;BYSETPOS=-1": {"on the 31st of every month at 7:00", "每个月31号7点"},
		"FREQ=MONTHLY;BYMONTHDAY=-1":                      {"on the last day of every month at 7:00", "每个月最后一天7点"},
		"FREQ=YEARLY":                                     {"every year on November 24 at 7:00", "每年11月24日7点"},
		"FREQ=HOURLY":                                     {"every hour", "每小时"},
		"FREQ=MINUTELY;INTERVAL=30":                       {"every 30 minutes", "每30分钟"},
		"FREQ=YEARLY;BYMONTH=11;BYMONTHDAY=24":            {"every year on November 24 at 7:00", "每年11月24日7点"},
		"FREQ=DAILY;BYHOUR=8,20":                          {"every day at 8:00 and 20:00", "每天8点和20点"},
		"FREQ=DAILY;BYHOUR=8;BYMINUTE=0,30":               {"", ""},
		"FREQ=DAILY;BYMONTH=5":                            {"", ""},
		"FREQ=DAILY;UNTIL=20270101T000000":                {"every day at 7:00 until January 1", "到1月1日为止每天7点"},
		"FREQ=DAILY;COUNT=3":                              {"", ""},
		"nonsense":                                        {"", ""},
	} {
		if got := [2]string{SayRepeat(rule, at, text.English), SayRepeat(rule, at, text.Chinese)}; got != want {
			t.Errorf("%s: %q, want %q", rule, got, want)
		}
	}
}

// TestAt: what daylight saving skips is later by as much, what comes twice is the first.
func TestAt(t *testing.T) {
	for _, test := range []struct{ zone, wall, want string }{
		{"Europe/Berlin", "2026-03-29 01:59", "2026-03-29T01:59:00+01:00"},
		{"Europe/Berlin", "2026-03-29 02:00", "2026-03-29T03:00:00+02:00"},
		{"Europe/Berlin", "2026-03-29 02:59", "2026-03-29T03:59:00+02:00"},
		{"Europe/Berlin", "2026-03-29 03:00", "2026-03-29T03:00:00+02:00"},
		{"Europe/Berlin", "2026-10-25 01:59", "2026-10-25T01:59:00+02:00"},
		{"Europe/Berlin", "2026-10-25 02:30", "2026-10-25T02:30:00+02:00"},
		{"Europe/Berlin", "2026-10-25 03:00", "2026-10-25T03:00:00+01:00"},
		{"America/New_York", "2026-03-08 02:30", "2026-03-08T03:30:00-04:00"},
		{"America/New_York", "2026-11-01 01:30", "2026-11-01T01:30:00-04:00"},
		{"Australia/Lord_Howe", "2026-10-04 02:15", "2026-10-04T02:45:00+11:00"},
		{"Pacific/Apia", "2011-12-30 12:00", "2011-12-31T12:00:00+14:00"}, // a day that was skipped
		{"Asia/Shanghai", "2026-11-21 07:00", "2026-11-21T07:00:00+08:00"},
	} {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		wall, err := time.Parse("2006-01-02 15:04", test.wall)
		if err != nil {
			t.Fatal(err)
		}
		if got := At(wall, zone).Format(time.RFC3339); got != test.want {
			t.Errorf("%s in %s: %s, want %s", test.wall, test.zone, got, test.want)
		}
	}
}

func TestSayPast(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		at     time.Time
		en, zh string
	}{
		{now.Add(-2 * time.Hour), "at 7:00", "7点"},
		{now.Add(-26 * time.Hour), "yesterday at 7:00", "昨天7点"},
		{now.Add(-50 * time.Hour), "on November 19 at 7:00", "11月19日7点"},
	} {
		if en, zh := SayPast(test.at, now, text.English), SayPast(test.at, now, text.Chinese); en != test.en || zh != test.zh {
			t.Errorf("%v: %q, %q", test.at, en, zh)
		}
	}
}

// FuzzWhen: whatever is said, it is a time to come, a rule with a beginning, or an error.
func FuzzWhen(f *testing.F) {
	for _, s := range []string{"every weekday at 7", "每两周的周二早上八点", "the first monday of every month", "每月31号", "every 99999 days", "每隔一天", "mondays and", "in 10 minutes"} {
		f.Add(s)
	}
	now := time.Date(2026, 1, 31, 23, 59, 59, 0, time.FixedZone("CST", 8*3600))
	f.Fuzz(func(t *testing.T, words string) {
		at, rule, err := When(words, now)
		switch {
		case err != nil:
		case rule == "" && !at.After(now), rule != "" && (at.IsZero() || !strings.HasPrefix(rule, "FREQ=")):
			t.Errorf("When(%q) = %v %q", words, at, rule)
		}
		SayRepeat(rule, at, text.English)
	})
}
