package local

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// hanStretch is Chinese inside English text with the figures that touch it.
var hanStretch = regexp.MustCompile(`[\d.:%-]*\p{Han}(?:[\p{Han}\d.:：%，。、！？-]*[\p{Han}\d，。、！？])?`)

var englishMeasures = map[string]string{
	"km/h": "kilometers per hour", "mph": "miles per hour", "m/s": "meters per second", "km": "kilometers", "cm": "centimeters",
	"mm": "millimeters", "kg": "kilograms", "g": "grams", "mg": "milligrams", "ml": "milliliters", "mL": "milliliters", "m": "meters",
	"GB": "gigabytes", "MB": "megabytes", "KB": "kilobytes", "kHz": "kilohertz", "MHz": "megahertz", "GHz": "gigahertz", "Hz": "hertz",
	"kW": "kilowatts", "W": "watts", "V": "volts", "ms": "milliseconds", "min": "minutes", "kWh": "kilowatt hours", "dB": "decibels",
	"TB": "terabytes", "L": "liters", "ft": "feet", "lb": "pounds", "lbs": "pounds", "oz": "ounces", "mAh": "milliamp hours",
}

// englishRules put into words what flite would misread; it reads plain numbers,
// dollars, ordinals and most times itself.
var englishRules = []rewrite{
	rule(`\b(\d{4})-(\d{1,2})-(\d{1,2})\b`, func(m []string) string { return englishDate(m[0], m[1], m[2], m[3]) }),
	rule(`\b(\d{1,2})/(\d{1,2})/(\d{4})\b`, func(m []string) string { return englishDate(m[0], m[3], m[1], m[2]) }),
	rule(`(:\d\d(?: ?[AaPp]\.?[Mm]\.?)?) ?[-–~] ?(\d{1,2}:\d\d)`, func(m []string) string { return m[1] + " to " + m[2] }),
	rule(`\b(\d{1,2}):00(:00)? ?([AaPp])\.?[Mm]\b\.?`, func(m []string) string { return m[1] + " " + strings.ToUpper(m[3]) + " M" }),
	rule(`\b(\d{1,2}) ?([AaPp])\.?[Mm]\b\.?`, func(m []string) string { return m[1] + " " + strings.ToUpper(m[2]) + " M" }),
	rule(`\b(\d{1,2}):(\d\d) ?([AaPp])\.?[Mm]\b\.?`, func(m []string) string { return m[1] + ":" + m[2] + " " + strings.ToUpper(m[3]) + " M" }),
	rule(`\b0?(\d{1,2}):00(:\d\d)?\b`, oClock),
	rule(`\b(\d{1,3})((?:\.\d{1,5}){2,})\b`, func(m []string) string { return m[1] + strings.ReplaceAll(m[2], ".", " dot ") }),
	rule(`\b1-\d{3}-\d{3}-\d{4}\b|\(\d{3}\) ?\d{3}-\d{4}\b|\b\d{3}-\d{3}-\d{4}\b|\b\d{3}-\d{4}\b|\b\d{10,}\b`, func(m []string) string { return digitByDigit(m[0]) }),
	rule(`([$€£¥])(\d[\d,]*(?:\.\d+)?) (thousand|million|billion|trillion)`, func(m []string) string { return m[2] + " " + m[3] + coin(m[1]) }),
	rule(`([€£¥]) ?(\d[\d,]*(?:\.\d+)?)`, func(m []string) string { return m[2] + coin(m[1]) }),
	rule(`(^|[^/\d.])(\d)/(\d{1,2})($|[^/\d.])`, englishFraction),
	rule(`(\d) ?\^ ?(\d)`, func(m []string) string { return m[1] + " to the power of " + m[2] }),
	rule(`√ ?(\d)`, func(m []string) string { return "the square root of " + m[1] }),
	rule(`(\d) ?([<>]) ?(-?\d)`, func(m []string) string {
		return m[1] + map[string]string{"<": " is less than ", ">": " is greater than "}[m[2]] + m[3]
	}),
	rule(`(\d)\s*%`, func(m []string) string { return m[1] + " percent" }),
	rule(`°\s*C\b`, func([]string) string { return " degrees Celsius" }),
	rule(`°\s*F\b`, func([]string) string { return " degrees Fahrenheit" }),
	rule(`(\d) ?(km/h|mph|m/s|kWh|km|cm|mm|kg|mg|ml|mL|GB|MB|KB|kHz|MHz|GHz|Hz|kW|dB|TB|mAh|lbs|lb|ft|oz|ms|min|m|g|L|W|V)\b`, func(m []string) string { return m[1] + " " + englishMeasures[m[2]] }),
	rule(`(\d) ?[-–~] ?(\d)`, func(m []string) string { return m[1] + " to " + m[2] }),
	rule(`(^|[\s(])-(\d)`, func(m []string) string { return m[1] + "minus " + m[2] }),
	rule(`#(\d)`, func(m []string) string { return "number " + m[1] }),
	rule(`\be\.g\.`, func([]string) string { return "for example" }),
	rule(`\bi\.e\.`, func([]string) string { return "that is" }),
}

var englishSigns = strings.NewReplacer("°", " degrees ", "&", " and ", "+", " plus ", "=", " equals ", "×", " times ", "÷", " divided by ",
	"@", " at ", "%", " percent ", "~", " about ", "≈", " about ", "±", " plus or minus ", "≥", " at least ", "≤", " at most ",
	"，", ", ", "。", ". ", "！", "! ", "？", "? ", "；", "; ", "：", ": ", "、", ", ", "(", ", ", ")", ", ", "€", " euros ",
	"£", " pounds ", "¥", " yuan ", "/", " ", "–", ", ", `"`, " ", "Ω", " ohms ", "μ", " micro ", "µ", " micro ")

var (
	strangeSigns  = regexp.MustCompile(`[^A-Za-z0-9 .,!?;:'$-]+`)
	repeatedMarks = regexp.MustCompile(`([.,!?;:])(?:\s*[.,!?;:])+`)
	longDashes    = regexp.MustCompile(`--+|\s-\s`)
	spaces        = regexp.MustCompile(`\s+`)
	spaceBefore   = regexp.MustCompile(`\s+([.,!?;:])`)
	longWord      = regexp.MustCompile(`\S{40}`)
)

// englishWords puts signs into words and leaves nothing but ASCII letters,
// figures and marks.
func englishWords(text string) string {
	for _, r := range englishRules {
		text = r.apply(text)
	}
	text = spellKnown(englishSigns.Replace(text))
	text = longDashes.ReplaceAllLiteralString(text, ", ")
	text = strangeSigns.ReplaceAllLiteralString(text, " ")
	text = longWord.ReplaceAllString(text, "$0 ")
	text = spaceBefore.ReplaceAllString(text, "$1")
	text = repeatedMarks.ReplaceAllString(text, "$1")
	return strings.TrimLeft(spaces.ReplaceAllLiteralString(text, " "), " .,!?;:-")
}

// oClock says a full hour; with seconds that are not zero it leaves it as it is.
func oClock(m []string) string {
	switch {
	case m[2] != "" && m[2] != ":00":
		return m[0]
	case m[1] == "0":
		return "midnight"
	}
	return m[1] + " o'clock"
}

// englishFraction says 1/2 and 3/4; other figures, such as 24/7, it
// leaves as it is.
func englishFraction(m []string) string {
	over, _ := strconv.Atoi(m[2])
	under, _ := strconv.Atoi(m[3])
	names := []string{"", "", "half", "third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"}
	if over == 0 || under <= over || under >= len(names) {
		return m[0]
	}
	words := []string{"", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
	said := words[over] + " " + names[under]
	if over > 1 {
		said += "s"
	}
	return m[1] + said + m[4]
}

// knownLetters are abbreviations that would be read as a word:
// flite makes acer of ASR. Those that are words too count in capitals only.
var knownLetters = regexp.MustCompile(`(?i:\b(?:asr|llm|tts|mcp|ota|url|api|iot)\b)|\b(?:IP|AI|LED)\b`)

// spellKnown sets the letters of known abbreviations apart.
func spellKnown(text string) string {
	return knownLetters.ReplaceAllStringFunc(text, func(w string) string {
		return strings.Join(strings.Split(strings.ToUpper(w), ""), " ")
	})
}

func englishDate(whole, y, m, d string) string {
	month, _ := strconv.Atoi(m)
	day, _ := strconv.Atoi(d)
	if month > 12 && day <= 12 { // the day first, as most of the world writes
		month, day = day, month
	}
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return digitByDigit(whole)
	}
	suffix := "th"
	switch {
	case day/10 == 1:
	case day%10 == 1:
		suffix = "st"
	case day%10 == 2:
		suffix = "nd"
	case day%10 == 3:
		suffix = "rd"
	}
	return time.Month(month).String() + " " + strconv.Itoa(day) + suffix + ", " + y
}

func digitByDigit(s string) string {
	var b strings.Builder
	for _, r := range s {
		if isDigit(r) {
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteString(", ")
		}
	}
	return strings.TrimSpace(b.String())
}

func coin(sign string) string {
	return map[string]string{"$": " dollars", "€": " euros", "£": " pounds", "¥": " yuan"}[sign]
}
