package lunar

import "time"

// Festival is a day that people keep.
type Festival struct{ Zh, En string }

// Festivals are those of the date of t, of the Chinese calendar first.
func Festivals(t time.Time) []Festival {
	var out []Festival
	if d, err := Of(t); err == nil {
		if d.last() {
			out = append(out, Festival{"除夕", "Chinese New Year's Eve"})
		}
		if f, ok := lunarFestivals()[[2]int{d.Month, d.Day}]; ok && !d.Leap {
			out = append(out, f)
		}
	}
	_, month, day := t.Date()
	if f, ok := solarFestivals()[[2]int{int(month), day}]; ok {
		out = append(out, f)
	}
	if t.Weekday() == time.Sunday {
		switch week := (day - 1) / 7; {
		case month == time.May && week == 1:
			out = append(out, Festival{"母亲节", "Mother's Day"})
		case month == time.June && week == 2:
			out = append(out, Festival{"父亲节", "Father's Day"})
		}
	}
	return out
}

// lunarFestivals are by lunar month and day.
func lunarFestivals() map[[2]int]Festival {
	return map[[2]int]Festival{
		{1, 1}:   {"春节", "Chinese New Year"},
		{1, 15}:  {"元宵节", "Lantern Festival"},
		{2, 2}:   {"龙抬头", "Dragon Head Day"},
		{3, 3}:   {"上巳节", "Shangsi Festival"},
		{5, 5}:   {"端午节", "Dragon Boat Festival"},
		{7, 7}:   {"七夕节", "Qixi Festival"},
		{7, 15}:  {"中元节", "Ghost Festival"},
		{8, 15}:  {"中秋节", "Mid-Autumn Festival"},
		{9, 9}:   {"重阳节", "Double Ninth Festival"},
		{10, 15}: {"下元节", "Xiayuan Festival"},
		{12, 8}:  {"腊八节", "Laba Festival"},
		{12, 23}: {"北方小年", "Little New Year (north)"},
		{12, 24}: {"南方小年", "Little New Year (south)"},
	}
}

// solarFestivals are by month and day.
func solarFestivals() map[[2]int]Festival {
	return map[[2]int]Festival{
		{1, 1}:   {"元旦", "New Year's Day"},
		{2, 14}:  {"情人节", "Valentine's Day"},
		{3, 8}:   {"妇女节", "Women's Day"},
		{3, 12}:  {"植树节", "Arbor Day (China)"},
		{4, 1}:   {"愚人节", "April Fools' Day"},
		{5, 1}:   {"劳动节", "Labour Day"},
		{5, 4}:   {"青年节", "Youth Day (China)"},
		{6, 1}:   {"儿童节", "Children's Day"},
		{9, 10}:  {"教师节", "Teachers' Day (China)"},
		{10, 1}:  {"国庆节", "National Day of China"},
		{12, 24}: {"平安夜", "Christmas Eve"},
		{12, 25}: {"圣诞节", "Christmas"},
	}
}
