package rules

import (
	"regexp"
	"strings"
	"time"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/lunar"
	"xiaozhi/internal/text/spoken"
)

// slots holds the words of a request by the names that its pattern has for them: <day>, <sum>, <length> …
type slots map[string]string

// chineseSlots and englishSlots are the expressions of the slots. What may stand in one is told
// roughly; whether it can be read, its reader says.
var chineseSlots = []string{
	"<day>", `(?P<day>.{1,16}?)`,
	"<sum>", `(?P<sum>.{2,60}?)`,
	"<a>", `(?P<a>.{1,30}?)`,
	"<b>", `(?P<b>[0-9零一二两三四五六七八九十百千万亿点.%分之]+)`,
	"<share>", `(?P<share>百分之[0-9零一二两三四五六七八九十百点.]+|[0-9.]+%)`,
	"<discount>", `(?P<discount>[0-9一二三四五六七八九点.]{1,4})`,
	"<from>", `(?P<from>.{2,20}?)`,
	"<to>", `(?P<to>.{1,8}?)`,
	"<length>", `(?P<length>(?:[0-9零一二两三四五六七八九十百半个点.]+(?:秒钟?|分钟?|小时|钟头|刻钟|天|星期|周)半?)+)`,
	"<year>", `(?P<year>[0-9零〇一二三四五六七八九]{4}年?|[0-9零〇一二三四五六七八九]{2}年|今年|明年|后年|去年|前年)`,
	"<song>", `(?P<song>.{1,20}?)`,
	"<place>", `(?P<place>[^今明后天现外]{2,8}?)`,
	"<fact>", `(?P<fact>.{2,80})`,
	"<about>", `(?P<about>.{1,20}?)`,
	"<day2>", `(?P<day2>.{1,16}?)`,
	"<city>", `(?P<city>.{1,10}?)`,
	"<on>", `(?P<day>` + chineseDay + `)`,
	"<on2>", `(?P<day2>` + chineseDay + `)`,
	"<town>", `(?P<city>天津|[^今明昨后前外现在的天气下雨雪风冷热会有没要带穿出用几多度什么怎这那刮打听温太阳里你我他她它对是很为吗呢小时候]{2,8}?)`,
	"<station>", `(?P<song>.{1,14}(?:电台|之声|广播|频道|调频|fm))`,
	"<ordinal>", `(?P<ordinal>第[0-9一二三四五六七八九十]+[条个则篇]?)`,
	"<query>", `(?P<query>.{1,60}?)`,
	"<by>", `(?P<by>(?:[0-9零一二两三四五六七八九十百半个点.]+(?:秒钟?|分钟?|小时|钟头|刻钟|天|星期|周)半?)+)`,
}

var englishSlots = map[string]string{
	"<day>":     `(?P<day>(?:\S+ ){1,7}?)`,
	"<sum>":     `(?P<sum>(?:\S+ ){2,30}?)`,
	"<a>":       `(?P<a>(?:\S+ ){1,8}?)`,
	"<b>":       `(?P<b><[\d.]+%?> (?:(?:people|persons|friends|kids|children|of us|dollars?|euros?|pounds|bucks|quid|yuan) )?)`,
	"<share>":   `<(?P<share>[\d.]+%)> `,
	"<name>":    `(?P<what>(?:\S+ ){1,5}?)`,
	"<from>":    `(?P<from>(?:\S+ ){1,8}?)`,
	"<to>":      `(?P<to>(?:\S+ ){1,3}?)`,
	"<length>":  `(?P<length>(?:(?:<[\d.]+>|a|an|half|quarter|quarters|three|and|of|couple|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?) )+)`,
	"<year>":    `(?P<year>(?:<\d+> ){1,2}|(?:this|next|last) year )`,
	"<song>":    `(?P<song>(?:\S+ ){1,12}?)`,
	"<place>":   `(?P<place>(?:\S+ ){1,4}?)`,
	"<fact>":    `(?P<fact>(?:\S+ ){2,40})`,
	"<about>":   `(?P<about>(?:\S+ ){1,8}?)`,
	"<day2>":    `(?P<day2>(?:\S+ ){1,7}?)`,
	"<city>":    `(?P<city>(?:\S+ ){1,4}?)`,
	"<on>":      `(?P<day>` + englishDay + `)`,
	"<town>":    `(?P<city>(?:\S+ ){1,4}?)`,
	"<ordinal>": `(?P<ordinal>(?:(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|last) |(?:number|story|headline|item) <\d+> ))`,
	"<topic>":   `(?P<query>\S+ )`,
	"<query>":   `(?P<query>(?:\S+ ){1,20}?)`,
	"<by>":      `(?P<by>(?:(?:<[\d.]+>|a|an|half|quarter|quarters|three|and|of|couple|more|extra|another|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?) )+)`,
}

// A day that the weather is asked of: unlike <day>, it begins and ends with words of days.
const (
	chineseDay = `现在|这会儿|目前|眼下|今天|今晚|今夜|今儿个?|今早|明天|明早|明晚|明儿|后天|大后天|昨天|周末|[这本下]个?周末|[这本下]?个?(?:周|星期|礼拜)[一二三四五六日天]|[这本]周|[这本]个?星期|这个?礼拜|这几天|这两天|未来几天|未来[一二三两]天|未来一周|接下来几天|最近几天|(?:[0-9一二三四五六七八九十]+月)?[0-9一二三四五六七八九十]+[号日]|元旦|除夕|春节|[^的天气]{1,4}节`
	englishDay = `(?:(?:on|this|next|the|for|over|at|coming|tomorrow|early|late|later) )*(?:today|tonight|tomorrow|weekend|week|few days|next days|coming days|morning|afternoon|evening|monday|tuesday|wednesday|thursday|friday|saturday|sunday|christmas|easter|day after tomorrow|<\d+> (?:of )?(?:january|february|march|april|may|june|july|august|september|october|november|december)|(?:january|february|march|april|may|june|july|august|september|october|november|december) <\d+>) (?:(?:morning|afternoon|evening|night) )?`
)

// take notes the words of a named group.
func (in *intent) take(name, words string) {
	words = strings.TrimSpace(strings.NewReplacer("<", "", ">", "").Replace(words))
	switch name {
	case "when":
		in.asked.when = clockPoint.ReplaceAllString(words, "$1:$2")
	case "what":
		in.asked.what = strings.TrimPrefix(words, "算了")
	case "rest":
		in.asked.rest = clockPoint.ReplaceAllString(words, "$1:$2")
	default:
		if in.slots == nil {
			in.slots = slots{}
		}
		in.slots[name] = century(name, words)
	}
}

// clockPoint is in a time of day that is written with a point: 7.30.
var clockPoint = regexp.MustCompile(`\b(\d{1,2})\.(\d{2})\b`)

// complete reports whether all that a request holds can be read. said is all of it.
func (in *intent) complete(now time.Time, said string) bool {
	switch in.act {
	case actDay, actUntil, actWeeks, actLunar, actZodiac, actFestival, actSum, actConvert, actThen, actTimeIn, actUntilAt, actLeap, actDaysIn, actBetween, actAge:
		_, ok := in.answer(now, text.Of(said))
		return ok
	case actChange:
		return in.isChange(now)
	case actWeather:
		return in.isWeather(now)
	case actNews, actDetails, actSearch:
		return isQuery(in.slots["query"])
	case actAgain:
		_, ok := lunar.Find(trimDay(in.slots["day"]), now)
		return ok
	case actRemember:
		return isFact(in.slots["fact"])
	case actPlay:
		return isSong(in.slots["song"])
	case actQuiet, actLoud, actRoutine, actRoutines, actUnroutine:
		return in.isOutbox(now)
	case actTimer:
		if words, ok := in.slots["length"]; ok {
			var err error
			in.length, err = spoken.Duration(words)
			return err == nil && !strings.HasPrefix(in.asked.what, "minus") && !strings.HasPrefix(in.asked.what, "负")
		}
	default:
	}
	return in.isTimed(now)
}

// operators are the signs of sums between numbers. A slash or a hyphen without spaces may be in a date.
var operators = []*regexp.Regexp{
	regexp.MustCompile(`([\d%)])\s*\+\s*([\d(])`),
	regexp.MustCompile(`([\d%)])\s+[-−–]\s+([\d(])`),
	regexp.MustCompile(`([\d%)])\s*[×*]\s*([\d(])`),
	regexp.MustCompile(`([\d%)])(?:\s*÷\s*|\s+/\s+)([\d(])`),
}

// withoutOperators writes signs out as words: those for plus, minus, times and over.
func withoutOperators(text string, words ...string) string {
	if !strings.ContainsAny(text, "+-−–×*÷/") {
		return text
	}
	for i, sign := range operators {
		for range 2 { // what stands on both sides of a number
			text = sign.ReplaceAllString(text, "${1}"+words[i]+"${2}")
		}
	}
	return text
}

// figures is a sum in signs alone.
var figures = regexp.MustCompile(`^[\d\s.,+\-−*/×÷^%()（）]+$`)

// written reads a sum that is written and not said: (100-25)*3=?
func written(said string) (intent, bool) {
	expression := strings.TrimRight(said, " =?？。.")
	in := intent{act: actSum, number: none, slots: slots{"sum": expression}}
	if !figures.MatchString(expression) || !strings.ContainsAny(expression, "+*/×÷^%") && !strings.Contains(expression, " - ") {
		return intent{}, false
	}
	_, ok := in.sum(text.English)
	return in, ok
}
