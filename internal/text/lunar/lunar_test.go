package lunar

import (
	"strings"
	"testing"
	"time"
)

func date(t *testing.T, text string) time.Time {
	t.Helper()
	d, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestKnownDates: days that everybody can look up.
func TestKnownDates(t *testing.T) {
	for text, want := range map[string]string{
		"1900-01-31": "庚子年正月初一", "1900-01-01": "己亥年腊月初一", "1949-10-01": "己丑年八月初十", "1976-01-31": "丙辰年正月初一",
		"2000-02-05": "庚辰年正月初一", "2008-08-08": "戊子年七月初八", "2020-01-25": "庚子年正月初一", "2020-05-23": "庚子年闰四月初一",
		"2023-03-22": "癸卯年闰二月初一", "2024-02-10": "甲辰年正月初一", "2024-09-17": "甲辰年八月十五", "2025-01-28": "甲辰年腊月廿九", "2025-01-29": "乙巳年正月初一",
		"2025-07-25": "乙巳年闰六月初一", "2025-08-22": "乙巳年闰六月廿九", "2025-08-23": "乙巳年七月初一", "2026-02-16": "乙巳年腊月廿九", "2026-02-17": "丙午年正月初一", "2026-11-21": "丙午年十月十三",
		"2033-08-25": "癸丑年八月初一", "2033-12-22": "癸丑年闰冬月初一", "2034-01-20": "癸丑年腊月初一", "2034-02-19": "甲寅年正月初一",
		"2100-12-31": "庚申年腊月初一",
	} {
		got, err := Of(date(t, text))
		if err != nil || got.String() != want {
			t.Errorf("%s is %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"1899-12-31", "2101-01-01", "0001-01-01"} {
		if got, err := Of(date(t, text)); err == nil {
			t.Errorf("%s is %v, want an error", text, got)
		}
	}
}

func TestZone(t *testing.T) {
	late := time.Date(2026, 2, 17, 23, 59, 59, 0, time.FixedZone("", 8*3600))
	if d, err := Of(late); err != nil || d.dayName() != "初一" {
		t.Errorf("late on the first day: %v, %v", d, err)
	}
}

// TestThereAndBack walks through every day: days follow each other, months have
// 29 or 30, and every lunar date leads back.
func TestThereAndBack(t *testing.T) {
	before := Date{}
	for day := date(t, "1900-01-01"); day.Year() <= 2100; day = day.AddDate(0, 0, 1) {
		d, err := Of(day)
		if err != nil {
			t.Fatal(day, err)
		}
		if back, err := d.Solar(); err != nil || !back.Equal(day) {
			t.Fatalf("%v is %v, which is %v, %v", day, d, back, err)
		}
		if before.Day != 0 && d.Day != before.Day+1 && (d.Day != 1 || before.Day < 29 || before.Day > 30) {
			t.Fatalf("%v comes after %v", d, before)
		}
		before = d
	}
}

// TestRuleOfTheCalendar holds the months against the solar terms, two tables
// that know nothing of each other: the winter solstice is in the 11th month,
// and a leap month is one without a major term.
func TestRuleOfTheCalendar(t *testing.T) {
	major := make(map[Date]string) // by month: day 0
	for year := 1900; year <= 2100; year++ {
		for i, term := range readNames().terms(year) {
			if i%2 == 0 {
				continue
			}
			d, err := Of(term.date)
			if err != nil {
				t.Fatal(err)
			}
			if term.zh == "冬至" && (d.Month != 11 || d.Leap) {
				t.Errorf("%d: the winter solstice is on %v", year, d)
			}
			d.Day = 0
			major[d] += term.zh
		}
	}
	leaps := 0
	for n := 1900; n < lastYear; n++ {
		leap := yearOf(n).leap
		if leap == 0 {
			continue
		}
		leaps++
		if terms := major[Date{Year: n, Month: leap, Leap: true}]; terms != "" {
			t.Errorf("the leap month %d of %d holds %s", leap, n, terms)
		}
	}
	if leaps != 74 {
		t.Errorf("%d leap months from 1900 to 2099, want 74", leaps)
	}
}

func TestSolar(t *testing.T) {
	for _, d := range []Date{{}, {2026, 13, false, 1}, {2026, 1, true, 1}, {2026, 1, false, 31}, {2026, 1, false, 0}, {1898, 1, false, 1}, {2101, 1, false, 1}, {2025, 7, true, 1}, {2025, 6, true, 30}, {2026, 0, false, 1}} {
		if got, err := d.Solar(); err == nil {
			t.Errorf("%+v is %v, want an error", d, got)
		}
	}
}

func TestTerms(t *testing.T) {
	for text, want := range map[string]string{
		"2026-02-04": "立春", "2026-02-18": "雨水", "2026-04-05": "清明", "2024-04-04": "清明", "2026-06-21": "夏至", "2025-12-21": "冬至", "2026-12-22": "冬至",
		"2021-12-21": "冬至", "2000-03-20": "春分", "2026-11-22": "小雪", "2026-11-21": "", "1900-01-06": "小寒", "2100-12-22": "冬至",
	} {
		if got, _ := readNames().termOf(date(t, text)); got.zh != want {
			t.Errorf("%s: %v, want %q", text, got, want)
		}
	}
	if _, next := readNames().termOf(date(t, "2026-12-31")); next.zh != "小寒" || next.date.Format(time.DateOnly) != "2027-01-05" {
		t.Errorf("after 2026-12-31: %v", next)
	}
	if _, next := readNames().termOf(date(t, "2100-12-31")); next.zh != "" {
		t.Errorf("after the end: %v", next)
	}
	if all := readNames(); all.terms(1899) != nil || all.terms(2101) != nil {
		t.Error("terms of years that are not known")
	}
}

func TestFestivals(t *testing.T) {
	for text, want := range map[string]string{
		"2026-02-16": "除夕", "2026-02-17": "春节", "2024-02-09": "除夕", "2025-01-28": "除夕", "2026-03-03": "元宵节", "2026-06-19": "端午节", "2026-09-25": "中秋节",
		"2020-10-01": "中秋节 国庆节", "2026-10-18": "重阳节", "2027-01-15": "腊八节", "2026-05-10": "母亲节", "2026-06-21": "父亲节", "2026-11-21": "", "2025-07-25": "",
		"2026-01-01": "元旦", "2026-08-19": "七夕节", "2101-01-01": "元旦",
	} {
		var names []string
		for _, f := range readNames().festivals(date(t, text)) {
			names = append(names, f.zh)
			if f.en == "" {
				t.Errorf("%s has no English name", f.zh)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for n, want := range map[int]string{1: "初一", 10: "初十", 11: "十一", 19: "十九", 20: "二十", 21: "廿一", 29: "廿九", 30: "三十"} {
		if got := (Date{Day: n}).dayName(); got != want {
			t.Errorf("day %d is %s, want %s", n, got, want)
		}
	}
	for year, want := range map[int]string{1900: "鼠 Rat", 2024: "龙 Dragon", 2026: "马 Horse", 2027: "羊 Goat", 2031: "猪 Pig"} {
		animal := (Date{Year: year}).zodiac()
		if animal.zh+" "+animal.en != want {
			t.Errorf("%d is the year of the %s %s, want %s", year, animal.zh, animal.en, want)
		}
	}
}
