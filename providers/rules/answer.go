package rules

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/calc"
	"xiaozhi/internal/text/lunar"
	"xiaozhi/internal/text/measure"
	"xiaozhi/internal/text/spoken"
)

// halfYear is how long ago a date without a year is at most; before that, the next one is meant.
const halfYear = 183 * 24 * time.Hour

// answer works out what needs no tool: days, years, sums and units. It is false for what cannot be
// worked out, and for all else that is asked.
func (in intent) answer(now time.Time, lang text.Lang) (string, bool) {
	if other := map[act]func(time.Time, text.Lang) (string, bool){
		actTimeIn: in.timeIn, actUntilAt: in.untilAt, actLeap: in.leap, actDaysIn: in.daysIn, actBetween: in.between, actAge: in.age,
	}[in.act]; other != nil {
		return other(now, lang)
	}
	day := lunar.Day{Date: now}
	if words, ok := in.slots["day"]; ok {
		if day, ok = lunar.Find(trimDay(words), now); !ok {
			return "", false
		}
	}
	if in.act == actUntil || in.act == actWeeks || now.Sub(day.Date) > halfYear {
		day = next(day, in.slots["day"], now)
	}
	said, err := "", error(nil)
	switch in.act {
	case actDay, actUntil, actWeeks:
		said = day.Say(now, lang, in.act == actWeeks)
	case actThen:
		length, err := spoken.Duration(in.slots["length"])
		then := spoken.SayTimeOfDay(now.Add(length), lang)
		return lang.Pick("那时是"+then+"。", "It will be "+then+"."), err == nil
	case actYear:
		said = fmt.Sprintf(lang.Pick("今年是%d年。", "It is %d."), now.Year())
	case actWeek:
		_, week := now.ISOWeek()
		said = fmt.Sprintf(lang.Pick("现在是今年第%d周。", "It is week %d."), week)
	case actMonth:
		said = lang.Pick(fmt.Sprintf("现在是%d月。", now.Month()), "It is "+now.Month().String()+".")
	case actLunar:
		said, err = lunar.SayDate(day.Date, lang)
	case actZodiac:
		year, ok := in.year(now)
		if !ok {
			return "", false
		}
		said, err = lunar.SayYear(year, lang)
	case actTerm:
		said = lunar.SayTerm(now, lang)
	case actFestival:
		said = lunar.SayFestivals(day.Date, now, lang)
	case actSum:
		return in.sum(lang)
	case actConvert:
		return measure.Convert(in.slots["from"], in.slots["to"], lang)
	default:
	}
	return said, err == nil && said != ""
}

// next is the next such day, where one of this year was found that has passed.
func next(day lunar.Day, words string, now time.Time) lunar.Day {
	if at, err := spoken.Time(trimDay(words), now); err == nil && day.Date.Before(at) {
		return lunar.Day{Date: time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)}
	}
	return day
}

// trimDay drops what joins a day with its request: on the third, of tomorrow.
func trimDay(words string) string {
	words = strings.TrimSuffix(words, " is") // new year's
	for _, lead := range []string{"on ", "the day of ", "it is ", "in the ", "of "} {
		words = strings.TrimPrefix(words, lead)
	}
	return words
}

// year returns the lunar year that is asked for: this one where none was said.
func (in intent) year(now time.Time) (int, bool) {
	this := now.Year()
	if d, err := lunar.Of(now); err == nil {
		this = d.Year
	}
	words := strings.TrimSuffix(in.slots["year"], "年")
	for offset, names := range [][]string{{"前", "-"}, {"去", "last year"}, {"", "this year", "今"}, {"明", "next year"}, {"后", "-"}} {
		for _, name := range names {
			if words == name {
				return this + offset - 2, true
			}
		}
	}
	year, ok := readYear(words)
	return year, ok && year > 1900 && year < 2100
}

// readYear reads the number of a year: 1992, 一九九二, nineteen ninety-two.
func readYear(words string) (int, bool) {
	parts := strings.Fields(words)
	if len(parts) == 0 {
		return 0, false
	}
	year, ok := spoken.Number(parts[0])
	if ok && len(parts) == 2 {
		part, fine := spoken.Number(parts[1])
		year, ok = year*100+part, fine && part < 100
	}
	return year, ok
}

// sum works out an expression: one that was said as it is, or the one that the pattern makes of its parts.
func (in intent) sum(lang text.Lang) (string, bool) {
	expression := operand(in.slots["sum"])
	if in.as != "" {
		var filled []string
		for _, name := range []string{"a", "b", "share"} {
			part := operand(in.slots[name])
			if _, err := calc.Eval(part); err != nil && part != "" {
				return "", false
			}
			if name != "share" && in.slots["share"] != "" && part != "" && strings.Contains(in.as, "1") {
				if _, rest, ok := spoken.LeadingDecimal(part); !ok || strings.Trim(rest, " .0123456789") != "" {
					return "", false // a third and five percent are added up as they are
				}
			}
			filled = append(filled, "{"+name+"}", "("+part+")")
		}
		expression = strings.NewReplacer(append(filled, "{discount}", discount(in.slots["discount"]))...).Replace(in.as)
	} else if !isSum(expression) {
		return "", false
	}
	r, err := calc.Eval(expression)
	if err != nil {
		return "", false
	}
	if r.Exact {
		return lang.Pick("等于"+r.Text+"。", "That is "+r.Text+"."), true
	}
	value, err := strconv.ParseFloat(r.Text, 64)
	if err != nil {
		return "", false
	}
	return lang.Pick("大约是"+measure.Round(value)+"。", "That is about "+measure.Round(value)+"."), true
}

// operand is a part of a sum without what it counts: 三百块 is 三百, sixty dollars is 60.
func operand(words string) string {
	for _, unit := range [...]string{
		"块钱", "元钱", "美元", "块", "元", "再", "然后", " dollars", " dollar", " euros", " euro", " pounds", " bucks", " quid", " yuan", " people", " of us", " kids", " friends",
	} {
		words = strings.ReplaceAll(words, unit, "")
	}
	if count, thing, ok := strings.Cut(words, "个"); ok && thing != "" && !strings.ContainsAny(thing, "0123456789一二三四五六七八九十") {
		words = count // 三十个苹果
	}
	return strings.NewReplacer("a hundred", "100", "a thousand", "1000").Replace(strings.TrimSuffix(words, "个"))
}

// isSum reports whether an expression is more than a number: what is forty two asks for no sum.
func isSum(expression string) bool {
	if _, ok := spoken.Number(expression); ok {
		return false
	}
	if _, rest, ok := spoken.LeadingDecimal(expression); ok && strings.Trim(rest, " .%0123456789点") == "" {
		return false
	}
	return strings.Contains(expression, "的") && strings.Contains(expression, "分之") || containsAny(expression, []string{
		"加", "减", "乘", "除", "方", "根号", "阶乘", "+", "-", "*", "/", "^", "×", "÷",
		" plus ", " minus ", " times ", " x ", " divided ", " multiplied ", " over ", " of ", "root", "squared", "cubed", "power", "factorial", " mod ",
	})
}

// discount is what is left to pay: of 八 折 it is 0.8, of 八五 or 八点五 0.85.
func discount(words string) string {
	decimal, rest, ok := spoken.LeadingDecimal(words)
	if point, after, found := strings.Cut(words, "."); found {
		decimal, rest, ok = point+"."+after, "", true
	}
	n, err := strconv.ParseFloat(decimal, 64)
	if !ok || rest != "" || err != nil {
		return ""
	}
	if n > 10 {
		n /= 10
	}
	return strconv.FormatFloat(n/10, 'f', -1, 64)
}
