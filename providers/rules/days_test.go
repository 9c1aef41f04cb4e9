package rules

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/testall"
	"xiaozhi/internal/text"
)

// TestDaysAndClocks: what is worked out of days, years and clocks elsewhere, at 15:04 on Tuesday, 24 November 2026, in China.
func TestDaysAndClocks(t *testing.T) {
	testall.Arithmetic(t)
	b := newBrain(t, false)
	for said, want := range map[string]string{
		"what time is it in london":                          "In London it is 7:04 AM.",
		"what's the time in los angeles":                     "In Los Angeles it is 11:04 PM yesterday.",
		"what time is it in auckland right now":              "In Auckland it is 8:04 PM.",
		"what time is it in atlantis":                        "",
		"how long until half past five":                      "It is 2 hours 26 minutes until 5:30 PM.",
		"how long until the twentieth of december":           "That is Sunday, December 20, in 26 days.",
		"is 2028 a leap year":                                "Yes, 2028 is a leap year.",
		"is 2100 a leap year":                                "No, 2100 is not a leap year.",
		"when was the last leap year":                        "2024.",
		"how many days are there in february":                "February has 28 days.",
		"how many days are in 2028":                          "2028 has 366 days.",
		"how many days are left this month":                  "There are 6 days left.",
		"how many days are left in february":                 "",
		"how many days between christmas and valentines day": "There are 51 days between them.",
		"how old is somebody born in 2090":                   "",
		"how old am i if i was born in nineteen ninety":      "That makes 36 years this year.",
		"伦敦现在几点":                                             "伦敦现在是上午7点4分。",
		"洛杉矶那边几点了":                                           "洛杉矶现在是昨天晚上11点4分。",
		"月亮上现在几点":                                            "",
		"离六点还有多久":                                            "离晚上6点整还有2小时56分钟。",
		"今年是闰年吗":                                             "2026年不是闰年。",
		"下个月有几天":                                             "12月有31天。",
		"圣诞节到元旦有几天":                                          "相差7天。",
		"这个月还剩几天":                                            "还剩6天。",
		"现在是今年第几周":                                           "现在是今年第48周。",
		"一九九零年出生的人今年多大":                                      "今年36岁。",
	} {
		in, ok := b.understand(said, householdTime.Location(), everything)
		got, answered := in.answer(householdTime, text.Of(said))
		if !ok || !answered {
			got = ""
		}
		if want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", said, got, want)
		}
	}
}

// TestDaysLeft counts the days of the last day of a year as none.
func TestDaysLeft(t *testing.T) {
	for day, want := range map[string]string{"2026-12-31": "There are 0 days left.", "2028-12-30": "There is 1 day left.", "2028-01-01": "There are 365 days left."} {
		now, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := (intent{act: actDaysIn, about: "left"}).answer(now, text.English); got != want {
			t.Errorf("%s: %s, want %s", day, got, want)
		}
	}
}
