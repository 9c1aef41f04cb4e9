package lunar

import (
	"testing"
	"time"
)

// TestRelative finds days by others, on Tuesday, 24 November 2026.
func TestRelative(t *testing.T) {
	now := time.Date(2026, 11, 24, 15, 4, 0, 0, time.UTC)
	for words, want := range map[string]string{
		"a week from friday": "2026-12-04", "two weeks from tomorrow": "2026-12-09", "a week from today": "2026-12-01", "three days after christmas": "2026-12-28", "10 days before new year": "2026-12-22",
		"a month from today": "2026-12-24", "one year from today": "2027-11-24", "the day after christmas": "2026-12-26", "day before new years eve": "2026-12-30",
		"a week today": "2026-12-01", "two weeks on friday": "2026-12-11", "this day next week": "2026-12-01", "today next month": "2026-12-24", "next week today": "2026-12-01",
		"the last day of the month": "2026-11-30", "end of the year": "2026-12-31", "end of next month": "2026-12-31", "month end": "2026-11-30",
		"the first monday of december": "2026-12-07", "last friday of november": "2026-11-27", "the third sunday of next month": "2026-12-20", "first monday in march": "2027-03-01", "second tuesday in november": "2026-11-10",
		"the third of next month": "2026-12-03", "next month on the 15th": "2026-12-15",
		"周五之后一个星期": "2026-12-04", "圣诞节后三天": "2026-12-28", "圣诞节前三天": "2026-12-22", "圣诞节后第三天": "2026-12-28", "今天之后两周": "2026-12-08", "元旦前一个月": "2026-12-01",
		"春节前一天": "2027-02-05", "圣诞节的后一天": "2026-12-26", "元旦第二天": "2027-01-02",
		"下个礼拜的今天": "2026-12-01", "下周今天": "2026-12-01", "上周的今天": "2026-11-17", "下个月的今天": "2026-12-24", "明年的今天": "2027-11-24", "下星期的明天": "2026-12-02",
		"月底": "2026-11-30", "这个月底": "2026-11-30", "下个月底": "2026-12-31", "年底": "2026-12-31", "本月最后一天": "2026-11-30", "今年最后一天": "2026-12-31", "明年年底": "2027-12-31",
		"十二月的第一个星期一": "2026-12-07", "这个月最后一个周五": "2026-11-27", "下个月的第三个星期天": "2026-12-20",
	} {
		day, ok := Find(words, now)
		if !ok || day.Date.Format(time.DateOnly) != want {
			t.Errorf("%s: %s, %v, want %s", words, day.Date.Format(time.DateOnly), ok, want)
		}
	}
	for _, words := range []string{"a week from someday", "the fifth monday of february", "three hours after christmas", "the 31st of this month", "吃饭后三天", "a light year from today"} {
		if day, ok := Find(words, now); ok {
			t.Errorf("%s: %s", words, day.Date.Format(time.DateOnly))
		}
	}
}
