// Package lunar is the Chinese calendar from 1900-01-01 to 2100-12-31: lunar
// dates with leap months, the years' stems, branches and animals, the 24 solar
// terms and the festivals of both calendars. It is pure. All functions may be
// called at the same time.
package lunar

import (
	"errors"
	"time"
)

const (
	firstYear = 1899 // lunar year in which 1900-01-01 is
	lastYear  = 2100
)

// ErrRange says that a date is before 1900-01-01 or after 2100-12-31, or that
// there is no such lunar date.
var ErrRange = errors.New("no date of the Chinese calendar from 1900 to 2100")

// Date is a day of the Chinese calendar.
type Date struct {
	Year  int  // the year in which its first month begins
	Month int  // 1 to 12
	Leap  bool // it is the leap month after the month of that number
	Day   int  // 1 to 30
}

// midnight is the date of t in its zone, at midnight in UTC.
func midnight(t time.Time) time.Time {
	year, month, day := t.Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// Of is the day of the Chinese calendar that the date of t is, in t's zone.
func Of(t time.Time) (Date, error) {
	date, number := midnight(t), t.Year()
	if number <= firstYear || number > lastYear {
		return Date{}, ErrRange
	}
	y := yearOf(number)
	if date.Before(y.begins) {
		number--
		y = yearOf(number)
	}
	n, i := int(date.Sub(y.begins)/(24*time.Hour)), 0
	for ; n >= y.length(i); i++ {
		n -= y.length(i)
	}
	d := Date{Year: number, Month: i + 1, Day: n + 1}
	if y.leap > 0 && i >= y.leap {
		d.Month, d.Leap = i, i == y.leap
	}
	return d, nil
}

// Solar is the day of the usual calendar, at midnight in UTC. ErrRange says that
// there is no such lunar date.
func (d Date) Solar() (time.Time, error) {
	if d.Year < firstYear || d.Year > lastYear || d.Month < 1 || d.Month > 12 {
		return time.Time{}, ErrRange
	}
	y, place := yearOf(d.Year), d.Month-1
	if d.Leap || y.leap > 0 && d.Month > y.leap {
		place++
	}
	if d.Leap && d.Month != y.leap || d.Day < 1 || d.Day > y.length(place) {
		return time.Time{}, ErrRange
	}
	n := d.Day - 1
	for i := range place {
		n += y.length(i)
	}
	return y.begins.AddDate(0, 0, n), nil
}

// stemBranch is the name of the year in the cycle of sixty: 丙午.
func (d Date) stemBranch() string {
	stems, branches := []rune("甲乙丙丁戊己庚辛壬癸"), []rune("子丑寅卯辰巳午未申酉戌亥")
	n := (d.Year - 4) % 60
	return string(stems[n%10]) + string(branches[n%12])
}

// zodiac is the year's animal: 马, Horse.
func (d Date) zodiac() name {
	n := (d.Year - 4) % 12
	animals := [...]string{"Rat", "Ox", "Tiger", "Rabbit", "Dragon", "Snake", "Horse", "Goat", "Monkey", "Rooster", "Dog", "Pig"}
	return name{string([]rune("鼠牛虎兔龙蛇马羊猴鸡狗猪")[n]), animals[n]}
}

// monthName is 正月, 闰六月, 冬月, 腊月.
func (d Date) monthName() string {
	name := string([]rune("正二三四五六七八九十冬腊")[d.Month-1]) + "月"
	if d.Leap {
		return "闰" + name
	}
	return name
}

// dayName is 初一, 十五, 廿三, 三十.
func (d Date) dayName() string {
	if d.Day == 20 || d.Day == 30 {
		return string([]rune("二三")[d.Day/10-2]) + "十"
	}
	return string([]rune("初十廿")[(d.Day-1)/10]) + string([]rune("一二三四五六七八九十")[(d.Day-1)%10])
}

// String is the date as it is written: 丙午年正月初一.
func (d Date) String() string { return d.stemBranch() + "年" + d.monthName() + d.dayName() }
