package lunar

import (
	"strings"
	"time"
)

// spans are the words for several days: how many from today, or -1 for those of the weekend that comes.
var spans = []struct {
	days  int
	words string
}{
	{-1, " the weekend, this weekend, weekend, on the weekend, at the weekend, over the weekend, 周末, 这周末, 这个周末, 本周末,"},
	{3, " the next few days, next few days, the coming days, the next three days, 这几天, 未来几天, 最近几天, 接下来几天, 三天, 未来三天, 近几天, 这两天,"},
	{7, " this week, the week, the coming week, next seven days, the next week, all week, 这周, 本周, 一周, 未来一周, 这个星期, 这星期, 这个礼拜, 一个星期,"},
}

// FindAll returns the days that words name: several for the weekend, the next few days and this week, else the one of [Find].
func FindAll(words string, now time.Time) ([]time.Time, bool) {
	today := midnight(now)
	for _, s := range spans {
		if !strings.Contains(s.words, " "+strings.ToLower(strings.TrimSpace(words))+",") {
			continue
		}
		first, n := 0, s.days
		if s.days < 0 {
			first, n = (6-int(today.Weekday())+7)%7, 2
			if today.Weekday() == time.Sunday {
				first, n = 0, 1
			}
		}
		var all []time.Time
		for i := range n {
			all = append(all, today.AddDate(0, 0, first+i))
		}
		return all, true
	}
	day, ok := Find(words, now)
	return []time.Time{day.Date}, ok
}
