package weather

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/lunar"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/text/spoken"
)

// Topic names what of the weather is asked for.
type Topic string

// The topics. Anything else is All.
const (
	All         Topic = "all"
	Rain        Topic = "rain" // and snow: whether an umbrella is needed
	Temperature Topic = "temperature"
	Wind        Topic = "wind"
	Sun         Topic = "sun" // when it rises and sets
)

// Question says what somebody wants to know.
type Question struct {
	Place string // "": the one that is set
	Day   string // in the user's words: tomorrow, 周六, the weekend; "": now and today
	About Topic
	Lang  text.Lang
}

// Tell answers a question in sentences that can be spoken. Beside the errors of [web.Client] there are [ErrWhere], [ErrNoPlace],
// [ErrDay] and [ErrFar].
func (s *Service) Tell(ctx context.Context, q Question) (string, error) {
	name := strings.TrimSpace(q.Place)
	if name == "" {
		name = s.options.Place
	}
	if name == "" {
		return "", ErrWhere
	}
	place, err := s.find(ctx, name, q.Lang)
	if err != nil {
		return "", err
	}
	f, err := s.forecast(ctx, place)
	if err != nil {
		return "", err
	}
	now := s.options.Now().In(time.FixedZone("", f.Offset))
	days := []time.Time{now}
	if words := strings.TrimSpace(q.Day); words != "" {
		var ok bool
		if days, ok = lunar.FindAll(words, now); !ok {
			return "", ErrDay
		}
	}
	a := answer{s, f, q, place, now}
	if name == s.options.Place {
		a.place.Name = ""
	}
	told := ""
	for i, day := range days {
		n := slices.Index(f.Daily.Time, day.Format(time.DateOnly))
		if n < 0 {
			return "", ErrFar
		}
		told = text.Join(told, a.day(n, day, i > 0, q.Day == ""))
	}
	return told, nil
}

// answer puts the weather in words.
type answer struct {
	*Service
	f     *forecast
	q     Question
	place Place
	now   time.Time // at the place
}

func (a answer) say(id string, args ...any) string {
	return message.In(a.q.Lang, id, args...)
}

// head begins a sentence: In Paris, tomorrow.
func (a answer) head(when string, more bool) string {
	place := a.place.Name
	if place != "" && a.place.Country != "" && a.place.Country != place {
		place = a.say("weather/within", place, a.place.Country)
	}
	if place != "" && !more {
		when = a.say("weather/in-place", place, when)
	}
	first, size := utf8.DecodeRuneInString(when)
	return string(unicode.ToUpper(first)) + when[size:]
}

// when names a day as people say it at the place.
func (a answer) when(day time.Time) string {
	switch day.Format(time.DateOnly) {
	case a.now.Format(time.DateOnly):
		return a.say("weather/today")
	case a.now.AddDate(0, 0, 1).Format(time.DateOnly):
		return a.say("weather/tomorrow")
	}
	if day.Sub(a.now) < 6*24*time.Hour {
		return spoken.SayWeekday(day, a.q.Lang)
	}
	return spoken.SayDay(day, a.q.Lang)
}

// day tells of the n-th day of the forecast. more says that another one was told of before; present that the weather now is wanted, too.
func (a answer) day(n int, day time.Time, more, present bool) string {
	head, now := a.head(a.when(day), more || present && a.q.About != Rain && a.q.About != Sun), ""
	if present {
		now = a.present(a.head(a.say("weather/now"), more))
	}
	sky, d := a.sky(n), a.f.Daily
	low, cold := at(d.Min, n)
	high, warm := at(d.Max, n)
	switch a.q.About {
	case Rain:
		return a.rain(n, head, sky)
	case Sun:
		rises, sets := hour(d.Sunrise, n), hour(d.Sunset, n)
		if rises == "" || sets == "" {
			return a.say("weather/day", head, sky, a.degrees(low), a.degrees(high))
		}
		return a.say("weather/sun", head, rises, sets)
	case Temperature:
		if !cold || !warm {
			return now
		}
		return text.Join(now, a.say("weather/temperature", head, a.degrees(low), a.degrees(high)))
	case Wind:
		if wind, ok := at(d.Wind, n); ok {
			return text.Join(now, a.say("weather/gusts", head, sky, a.speed(wind)))
		}
	case All:
	}
	if !cold || !warm {
		return now
	}
	told := text.Join(now, a.say("weather/day", head, sky, a.degrees(low), a.degrees(high)))
	if chance, ok := a.chance(n); ok && chance >= 20 && !more {
		told = text.Join(told, a.say("weather/chance", chance))
	}
	return told
}

// present tells the weather now, "" where that is not asked for.
func (a answer) present(head string) string {
	c := a.f.Current
	degrees, feels := a.degrees(*c.Temperature), a.degrees(*c.Temperature)
	if c.Feels != nil {
		feels = a.degrees(*c.Feels)
	}
	switch a.q.About {
	case Rain, Sun:
		return ""
	case Temperature:
		return a.say("weather/temperature-now", head, degrees, feels)
	case Wind:
		if c.Wind != nil {
			return a.say("weather/wind-now", head, a.speed(*c.Wind))
		}
	case All:
	}
	code := -1
	if c.Code != nil {
		code = *c.Code
	}
	return a.say("weather/now-all", head, a.words(code), degrees, feels)
}

// rain tells whether it will rain or snow, by how likely that is, or where nobody knows, by what the sky will be.
func (a answer) rain(n int, head, sky string) string {
	code, _ := at(a.f.Daily.Code, n)
	wet := code >= 51
	chance, known := a.chance(n)
	if known {
		sky = a.say("weather/with-chance", sky, chance)
	}
	switch {
	case known && chance < 25, !known && !wet:
		return a.say("weather/dry", head, sky)
	case code >= 71 && code <= 77 || code == 85 || code == 86:
		return a.say("weather/snow", head, sky)
	case known && chance < 55:
		return a.say("weather/perhaps", head, sky)
	}
	return a.say("weather/rain", head, sky)
}

// chance returns how likely it is to rain on the n-th day in percent: of today what is still to come.
func (a answer) chance(n int) (int, bool) {
	most, known := -1.0, false
	if today := a.now.Format(time.DateOnly); a.f.Daily.Time[n] == today {
		for i, when := range a.f.Hourly.Time {
			if v, ok := at(a.f.Hourly.Chance, i); ok && strings.HasPrefix(when, today) && when >= a.now.Format("2006-01-02T15") {
				most, known = max(most, v), true
			}
		}
	}
	if !known {
		most, known = at(a.f.Daily.Chance, n)
	}
	return min(max(round(most), 0), 100), known
}

// sky returns the weather of the n-th day in words.
func (a answer) sky(n int) string {
	code, ok := at(a.f.Daily.Code, n)
	if !ok {
		code = -1
	}
	return a.words(code)
}

// words returns what a code of the World Meteorological Organization (table 4677, as Open-Meteo uses it) means.
func (a answer) words(code int) string {
	for _, entry := range message.List(a.q.Lang, "weather/codes") {
		if number, words, _ := strings.Cut(entry, " "); number == strconv.Itoa(code) {
			return words
		}
	}
	return a.say("weather/code-other")
}

// degrees returns a temperature as people say it: minus 3, 零下3.
func (a answer) degrees(t float64) string {
	if n := round(t); n < 0 {
		return a.say("weather/minus", -n)
	}
	return strconv.Itoa(round(t))
}

// speed returns how fast the wind is.
func (a answer) speed(v float64) string {
	if a.options.Imperial {
		return a.say("weather/miles", round(v))
	}
	return a.say("weather/kilometers", round(v))
}

// round is the nearest whole number, of what no weather has the nearest that one could have.
func round(v float64) int { return int(math.Round(min(max(v, -999), 999))) }

// hour returns the time of day of the n-th of some local times: 2026-11-24T06:41 is 6:41. "": it is none.
func hour(times []string, n int) string {
	if n >= len(times) {
		return ""
	}
	t, err := time.Parse("2006-01-02T15:04", times[n])
	if err != nil {
		return ""
	}
	return t.Format("15:04")
}
