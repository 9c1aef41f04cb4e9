package lunar

// StemBranch is the name of the year in the cycle of sixty: 丙午.
func (d Date) StemBranch() string {
	stems, branches := []rune("甲乙丙丁戊己庚辛壬癸"), []rune("子丑寅卯辰巳午未申酉戌亥")
	n := (d.Year - 4) % 60
	return string(stems[n%10]) + string(branches[n%12])
}

// Zodiac is the year's animal in both languages: 马, Horse.
func (d Date) Zodiac() (zh, en string) {
	n := (d.Year - 4) % 12
	animals := [...]string{"Rat", "Ox", "Tiger", "Rabbit", "Dragon", "Snake", "Horse", "Goat", "Monkey", "Rooster", "Dog", "Pig"}
	return string([]rune("鼠牛虎兔龙蛇马羊猴鸡狗猪")[n]), animals[n]
}

// MonthName is 正月, 闰六月, 冬月, 腊月.
func (d Date) MonthName() string {
	names := [...]string{"正", "二", "三", "四", "五", "六", "七", "八", "九", "十", "冬", "腊"}
	name := names[d.Month-1] + "月"
	if d.Leap {
		return "闰" + name
	}
	return name
}

// DayName is 初一, 十五, 廿三, 三十.
func (d Date) DayName() string {
	digits := []rune("一二三四五六七八九十")
	switch {
	case d.Day <= 10:
		return "初" + string(digits[d.Day-1])
	case d.Day == 20:
		return "二十"
	case d.Day == 30:
		return "三十"
	case d.Day < 20:
		return "十" + string(digits[d.Day-11])
	}
	return "廿" + string(digits[d.Day-21])
}

// String is the date as it is written: 丙午年正月初一.
func (d Date) String() string { return d.StemBranch() + "年" + d.MonthName() + d.DayName() }
