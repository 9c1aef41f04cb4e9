package lunar

import "time"

// Term is one of the 24 solar terms of a year.
type Term struct {
	Zh, En string
	Date   time.Time // midnight in UTC of its day (in China)
}

// termNames are the solar terms of a year, in its order.
func termNames() [24][2]string {
	return [...][2]string{
		{"小寒", "Minor Cold"},
		{"大寒", "Major Cold"},
		{"立春", "Start of Spring"},
		{"雨水", "Rain Water"},
		{"惊蛰", "Awakening of Insects"},
		{"春分", "Spring Equinox"},
		{"清明", "Clear and Bright"},
		{"谷雨", "Grain Rain"},
		{"立夏", "Start of Summer"},
		{"小满", "Grain Buds"},
		{"芒种", "Grain in Ear"},
		{"夏至", "Summer Solstice"},
		{"小暑", "Minor Heat"},
		{"大暑", "Major Heat"},
		{"立秋", "Start of Autumn"},
		{"处暑", "End of Heat"},
		{"白露", "White Dew"},
		{"秋分", "Autumn Equinox"},
		{"寒露", "Cold Dew"},
		{"霜降", "Frost's Descent"},
		{"立冬", "Start of Winter"},
		{"小雪", "Minor Snow"},
		{"大雪", "Major Snow"},
		{"冬至", "Winter Solstice"},
	}
}

// Terms are the solar terms of a year, in order; nil for a year that is not
// within 1900 to 2100.
func Terms(year int) []Term {
	if year < 1900 || year > lastYear {
		return nil
	}
	days, first, names := termDays()[year-1900], earliest(), termNames()
	terms := make([]Term, 24)
	for i := range terms {
		day := first[i] + int(days>>(2*i)&3)
		terms[i] = Term{names[i][0], names[i][1], time.Date(year, time.Month(i/2+1), day, 0, 0, 0, 0, time.UTC)}
	}
	return terms
}

// TermOf is the solar term that begins on the date of t, and the next that is to
// come after that date. ok is false where there is none.
func TermOf(t time.Time) (today Term, ok bool, next Term, more bool) {
	year, month, n := t.Date()
	date := time.Date(year, month, n, 0, 0, 0, 0, time.UTC)
	for _, term := range append(Terms(year), Terms(year+1)...) {
		if term.Date.Equal(date) {
			today, ok = term, true
		}
		if term.Date.After(date) {
			return today, ok, term, true
		}
	}
	return today, ok, Term{}, false
}
