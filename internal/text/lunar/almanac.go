package lunar

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// yearsFile has a line of yearLine bytes for each lunar year from firstYear on:
// its first day in the usual calendar, the month that its leap month follows (0
// for none), its months in their order, long or short, and the days on which the
// 24 solar terms of the usual year of that number fall, two in each month. The
// dates are those of the calendar as it was and will be published (GB/T
// 33661-2017 for those to come).
//
//go:embed years.txt
var yearsFile string

const yearLine = 100

// namesFile has a line for each festival and solar term: lunar or solar with
// month and day, a day of the week with month and number, easter, term with its place in the year.
//
//go:embed names.txt
var namesFile string

// year is the shape of a lunar year.
type year struct {
	begins time.Time
	leap   int    // the month that the leap month follows, 0 for none
	months string // l for each long one, s for each short one
	terms  string // the days of the solar terms
}

func yearOf(n int) year {
	line := yearsFile[(n-firstYear)*yearLine:][:yearLine]
	y := year{months: strings.TrimRight(line[14:27], "."), terms: line[28:]}
	var month time.Month
	var day int
	_, _ = fmt.Sscanf(line[5:13], "%d-%d %d", &month, &day, &y.leap) // the tests read every line
	y.begins = time.Date(n, month, day, 0, 0, 0, 0, time.UTC)
	return y
}

// length is the number of days of the month at place i, from 0.
func (y year) length(i int) int {
	if y.months[i] == 'l' {
		return 30
	}
	return 29
}

// name is that of a festival or a solar term.
type name struct{ zh, en string }

// term is one of the 24 solar terms of a year, on its day in China.
type term struct {
	name
	date time.Time // midnight in UTC
}

// names are all festivals and solar terms, by the first two words of their lines.
type names map[string]name

var readNames = sync.OnceValue(func() names {
	all := make(names)
	for line := range strings.Lines(namesFile) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 4)
		all[words[0]+" "+words[1]] = name{words[2], words[3]}
	}
	return all
})

// festivals are those of the date of t, of the Chinese calendar first.
func (all names) festivals(t time.Time) []name {
	var keys []string
	if d, err := Of(t); err == nil {
		if next, err := Of(t.AddDate(0, 0, 1)); err == nil && next.Year > d.Year {
			keys = append(keys, "lunar eve")
		}
		if !d.Leap {
			keys = append(keys, fmt.Sprintf("lunar %d-%d", d.Month, d.Day))
		}
	}
	keys = append(keys, t.Format("solar 1-2"))
	keys = append(keys, fmt.Sprintf("%s %d-%d", strings.ToLower(t.Weekday().String()), t.Month(), (t.Day()+6)/7))
	if midnight(t).Equal(easter(t.Year())) {
		keys = append(keys, "easter 0")
	}
	var out []name
	for _, key := range keys {
		if n, ok := all[key]; ok {
			out = append(out, n)
		}
	}
	return out
}

// easter is Easter Sunday of a year, as the Gregorian calendar has it.
func easter(year int) time.Time {
	golden, century := year%19, year/100
	epact := (century - century/4 - (8*century+13)/25 + 19*golden + 15) % 30
	full := epact - epact/28*(1-29/(epact+1)*((21-golden)/11))
	sunday := full - (year+year/4+full+2-century+century/4)%7
	month := 3 + (sunday+40)/44
	return time.Date(year, time.Month(month), sunday+28-31*(month/4), 0, 0, 0, 0, time.UTC)
}

// terms are the solar terms of a year, in order; none for a year that is not
// within 1900 to 2100.
func (all names) terms(number int) []term {
	if number <= firstYear || number > lastYear {
		return nil
	}
	days := strings.Fields(yearOf(number).terms)
	terms := make([]term, len(days))
	for i, day := range days {
		n, _ := strconv.Atoi(day) // as above
		terms[i] = term{all[fmt.Sprint("term ", i+1)], time.Date(number, time.Month(i/2+1), n, 0, 0, 0, 0, time.UTC)}
	}
	return terms
}

// termOf is the solar term that begins on the date of t, and the next that is to
// come after that date. One that is not known has no name.
func (all names) termOf(t time.Time) (today name, next term) {
	date := midnight(t)
	for _, term := range append(all.terms(t.Year()), all.terms(t.Year()+1)...) {
		if term.date.Equal(date) {
			today = term.name
		}
		if term.date.After(date) {
			return today, term
		}
	}
	return today, term{}
}
