package lunar

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// newYears are the days of the Spring Festival as the almanacs print them,
// 1990 to 2050: month and day.
const newYears = `
1990 127 215 204 123 210 131 219 207 128 216
2000 205 124 212 201 122 209 129 218 207 126
2010 214 203 123 210 131 219 208 128 216 205
2020 125 212 201 122 210 129 217 206 126 213
2030 203 123 211 131 219 208 128 215 204 124
2040 212 201 122 210 130 217 206 126 214 202
2050 123`

// TestPublishedNewYears: the first day of each year, and the eve before it.
func TestPublishedNewYears(t *testing.T) {
	years := 0
	for line := range strings.Lines(strings.TrimSpace(newYears)) {
		fields := strings.Fields(line)
		decade := 0
		if _, err := fmt.Sscan(fields[0], &decade); err != nil {
			t.Fatal(err)
		}
		for i, field := range fields[1:] {
			monthDay := 0
			if _, err := fmt.Sscan(field, &monthDay); err != nil {
				t.Fatal(err)
			}
			year := decade + i
			want := time.Date(year, time.Month(monthDay/100), monthDay%100, 0, 0, 0, 0, time.UTC)
			if got, err := (Date{Year: year, Month: 1, Day: 1}).Solar(); err != nil || !got.Equal(want) {
				t.Errorf("the year %d begins on %v, %v, want %v", year, got, err, want)
			}
			if d, err := Of(want); err != nil || d != (Date{Year: year, Month: 1, Day: 1}) {
				t.Errorf("%v is %v, %v", want, d, err)
			}
			if f := readNames().festivals(want.AddDate(0, 0, -1)); len(f) == 0 || f[0].zh != "除夕" {
				t.Errorf("the day before %v is %v, want the eve", want, f)
			}
			years++
		}
	}
	if years != 61 {
		t.Errorf("%d years were looked at, want 61", years)
	}
}

// TestPublishedLeapMonths: which years have one, and after which month.
func TestPublishedLeapMonths(t *testing.T) {
	published := map[int]int{
		1990: 5, 1993: 3, 1995: 8, 1998: 5, 2001: 4, 2004: 2, 2006: 7, 2009: 5, 2012: 4, 2014: 9, 2017: 6, 2020: 4, 2023: 2, 2025: 6,
		2028: 5, 2031: 3, 2033: 11, 2036: 6, 2039: 5, 2042: 2, 2044: 7, 2047: 5, 2050: 3,
	}
	for year := 1990; year <= 2050; year++ {
		for month := 1; month <= 12; month++ {
			_, err := Date{Year: year, Month: month, Leap: true, Day: 1}.Solar()
			if got, want := err == nil, published[year] == month; got != want {
				t.Errorf("%d: a leap month %d: %v, want %v", year, month, got, want)
			}
		}
	}
}

// TestPublishedTerms: the 24 solar terms of three years, month and day.
func TestPublishedTerms(t *testing.T) {
	for year, days := range map[int]string{
		2023: "105 120 204 219 306 321 405 420 506 521 606 621 707 723 808 823 908 923 1008 1024 1108 1122 1207 1222",
		2024: "106 120 204 219 305 320 404 419 505 520 605 621 706 722 807 822 907 922 1008 1023 1107 1122 1206 1221",
		2025: "105 120 203 218 305 320 404 420 505 521 605 621 707 722 807 823 907 923 1008 1023 1107 1122 1207 1221",
	} {
		var got []string
		for _, term := range readNames().terms(year) {
			got = append(got, fmt.Sprint(int(term.date.Month())*100+term.date.Day()))
		}
		if text := strings.Join(got, " "); text != days {
			t.Errorf("%d:\n%s, want\n%s", year, text, days)
		}
	}
}

// TestPublishedFestivals: what families plan for, as the calendars print it.
func TestPublishedFestivals(t *testing.T) {
	for name, days := range map[string]string{
		"元宵节": "2023-02-05 2024-02-24 2025-02-12 2026-03-03 2028-02-09",
		"端午节": "2020-06-25 2021-06-14 2022-06-03 2023-06-22 2024-06-10 2025-05-31 2026-06-19",
		"七夕节": "2020-08-25 2022-08-04 2023-08-22 2024-08-10 2025-08-29 2026-08-19",
		"中秋节": "2019-09-13 2021-09-21 2022-09-10 2023-09-29 2024-09-17 2025-10-06 2026-09-25",
		"重阳节": "2020-10-25 2022-10-04 2023-10-23 2024-10-11 2025-10-29 2026-10-18",
		"腊八节": "2022-01-10 2022-12-30 2024-01-18 2025-01-07 2026-01-26",
		"除夕":  "2022-01-31 2023-01-21 2024-02-09 2025-01-28 2026-02-16 2027-02-05 2028-01-25 2029-02-12 2030-02-02",
		"母亲节": "2023-05-14 2024-05-12 2025-05-11 2026-05-10", "父亲节": "2023-06-18 2024-06-16 2025-06-15 2026-06-21",
	} {
		for day := range strings.FieldsSeq(days) {
			found := false
			for _, f := range readNames().festivals(date(t, day)) {
				found = found || f.zh == name
			}
			if !found {
				t.Errorf("%s is not %s but %v", day, name, readNames().festivals(date(t, day)))
			}
		}
	}
	// A festival is kept once a year, not again in a leap month.
	for year := 2020; year <= 2040; year++ {
		kept := make(map[string]int)
		for day := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() == year; day = day.AddDate(0, 0, 1) {
			for _, f := range readNames().festivals(day) {
				kept[f.zh]++
			}
		}
		for _, name := range []string{"春节", "除夕", "端午节", "中秋节", "母亲节", "国庆节"} {
			if kept[name] != 1 {
				t.Errorf("%s comes %d times in %d", name, kept[name], year)
			}
		}
	}
}
