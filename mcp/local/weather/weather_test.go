package weather

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/openmeteo"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/local/web"
)

// clock is a Tuesday in Hangzhou at 15:04.
func clock() time.Time { return time.Date(2026, 11, 24, 7, 4, 0, 0, time.UTC) }

func service(t *testing.T, o Options) (*Service, *openmeteo.Fake) {
	t.Helper()
	f := openmeteo.New(t, clock)
	o.Base = f.URL()
	if o.Now == nil {
		o.Now = clock
	}
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s, f
}

// TestTell answers in sentences, in both languages.
func TestTell(t *testing.T) {
	s, _ := service(t, Options{Place: "杭州"})
	for _, test := range []struct {
		q    Question
		want string
	}{
		{Question{Lang: text.English}, "Now: partly cloudy, 12 degrees, feels like minus 1. Today: overcast, minus 3 to 15 degrees."},
		{Question{Lang: text.Chinese}, "现在：多云，12度，体感零下1度。今天：阴，零下3到15度。"},
		{Question{Day: "tomorrow", Lang: text.English}, "Tomorrow: light rain, minus 2 to 16 degrees. The chance of rain is 80 percent."},
		{Question{Day: "明天", Lang: text.Chinese}, "明天：小雨，零下2到16度。降水概率百分之80。"},
		{Question{Day: "friday", Lang: text.English}, "Friday: thunderstorms, 0 to 18 degrees. The chance of rain is 90 percent."},
		{Question{Day: "下周二", Lang: text.Chinese}, "12月1日：阴，零下3到15度。"},
		{Question{Day: "the weekend", Lang: text.English}, "Saturday: heavy snow, 1 to 19 degrees. The chance of rain is 70 percent. Sunday: partly cloudy, 2 to 20 degrees."},
		{Question{Day: "today", About: Rain, Lang: text.English}, "Today: no rain is expected, overcast, the chance of rain is 5 percent."},
		{Question{Day: "明天", About: Rain, Lang: text.Chinese}, "明天：要带伞，小雨，降水概率百分之80。"},
		{Question{Day: "saturday", About: Rain, Lang: text.English}, "Saturday: it will snow, heavy snow, the chance of rain is 70 percent."},
		{Question{Day: "sunday", About: Rain, Lang: text.English}, "Sunday: it may rain, better take an umbrella, partly cloudy, the chance of rain is 40 percent."},
		{Question{About: Rain, Lang: text.Chinese}, "今天：不会下雨，阴，降水概率百分之5。"},
		{Question{About: Temperature, Lang: text.English}, "Now: 12 degrees, feels like minus 1. Today: minus 3 to 15 degrees."},
		{Question{About: Wind, Day: "tomorrow", Lang: text.English}, "Tomorrow: light rain, wind up to 21 kilometers per hour."},
		{Question{About: Wind, Lang: text.Chinese}, "现在：风速每小时12公里。今天：阴，最大风速每小时20公里。"},
		{Question{About: Sun, Lang: text.English}, "Today: the sun rises at 06:41 and sets at 17:02."},
		{Question{Place: "Paris", Lang: text.English}, "In Paris, France, now: partly cloudy, 12 degrees, feels like minus 1. Today: overcast, minus 3 to 15 degrees."},
		{Question{Place: "Paris, Texas", Day: "tomorrow", Lang: text.English}, "In Paris, United States, tomorrow: light rain, minus 2 to 16 degrees. The chance of rain is 80 percent."},
		{Question{Place: "北京市", Lang: text.Chinese, Day: "明天"}, "北京（中国）明天：小雨，零下2到16度。降水概率百分之80。"},
		{Question{Place: "tromsø", About: Sun, Lang: text.English}, "In Tromsø, Norway, today: overcast, minus 3 to 15 degrees."},
		{Question{Place: "48.85, 2.35", Lang: text.English, Day: "today"}, "Today: overcast, minus 3 to 15 degrees."},
	} {
		got, err := s.Tell(t.Context(), test.q)
		if err != nil || got != test.want {
			t.Errorf("%+v: %q, %v, want %q", test.q, got, err, test.want)
		}
	}
	for name, test := range map[string]struct {
		q    Question
		want error
	}{
		"no such place": {Question{Place: "Atlantis"}, ErrNoPlace},
		"another land":  {Question{Place: "Paris, Peru"}, ErrNoPlace},
		"no day":        {Question{Day: "someday"}, ErrDay},
		"too far":       {Question{Day: "christmas"}, ErrFar},
		"yesterday":     {Question{Day: "yesterday"}, ErrFar},
		"a long name":   {Question{Place: strings.Repeat("x", 200)}, ErrNoPlace},
	} {
		if got, err := s.Tell(t.Context(), test.q); !errors.Is(err, test.want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	nowhere, _ := service(t, Options{})
	if got, err := nowhere.Tell(t.Context(), Question{}); !errors.Is(err, ErrWhere) || nowhere.HasPlace() {
		t.Errorf("no place: %q, %v", got, err)
	}
}

// TestTellTodayThere: today is that of the place, where it may be another day.
func TestTellTodayThere(t *testing.T) {
	night := func() time.Time { return time.Date(2026, 11, 24, 17, 0, 0, 0, time.UTC) } // 1:00 on Wednesday in Hangzhou
	f := openmeteo.New(t, night)
	s, err := New(Options{Base: f.URL(), Now: night})
	if err != nil {
		t.Fatal(err)
	}
	for place, day := range map[string]string{"Hangzhou": "thursday", "New York": "wednesday"} {
		if got, err := s.Tell(t.Context(), Question{Place: place, Day: day, Lang: text.English}); err != nil || !strings.Contains(got, "tomorrow: light rain") {
			t.Errorf("%s: %q, %v", place, got, err)
		}
	}
}

// TestImperial asks for degrees and miles as they are said there.
func TestImperial(t *testing.T) {
	s, f := service(t, Options{Place: "New York", Imperial: true})
	got, err := s.Tell(t.Context(), Question{About: Wind, Lang: text.English})
	if err != nil || got != "Now: wind at 12 miles per hour. Today: overcast, wind up to 20 miles per hour." {
		t.Errorf("%q, %v", got, err)
	}
	if got, err = s.Tell(t.Context(), Question{Lang: text.English}); err != nil || !strings.Contains(got, "Now: partly cloudy, 54 degrees") {
		t.Errorf("%q, %v", got, err)
	}
	if asked := f.Requests(); len(asked) != 2 || !strings.Contains(asked[1].Path, "wind_speed_unit=mph") {
		t.Errorf("%+v", asked)
	}
}

// TestCache: of a place is asked once in ten minutes, for a place once a day, and of no more places than are kept.
func TestCache(t *testing.T) {
	now := clock()
	s, f := service(t, Options{Now: func() time.Time { return now }})
	ask := func(place string) {
		if _, err := s.Tell(t.Context(), Question{Place: place, Lang: text.English}); err != nil && !errors.Is(err, ErrNoPlace) {
			t.Error(err)
		}
	}
	count := func(path string) (n int) {
		for _, r := range f.Requests() {
			if strings.HasPrefix(r.Path, path) {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		place             string
		after             time.Duration
		places, forecasts int // so many were asked for then
	}{
		{"Paris", 0, 1, 1}, {"paris", 9 * time.Minute, 1, 1}, {"Paris", 2 * time.Minute, 1, 2}, {"Hangzhou", 0, 2, 3}, {"Atlantis", 0, 3, 3}, {"Atlantis", time.Minute, 3, 3},
		{"Paris", 25 * time.Hour, 4, 4}, {"Paris", -time.Hour, 5, 5},
	} {
		now = now.Add(step.after)
		ask(step.place)
		if places, forecasts := count("/v1/search"), count("/v1/forecast"); places != step.places || forecasts != step.forecasts {
			t.Errorf("%+v: asked for %d places and %d forecasts", step, places, forecasts)
		}
	}
	for i := range 2 * keptWeathers {
		s.told.Put(fmt.Sprint(i), kept[*forecast]{}, 1)
		s.found.Put(fmt.Sprint(i), kept[Place]{}, 1)
	}
	if s.told.Len() > keptWeathers || s.found.Len() > keptPlaces {
		t.Errorf("%d forecasts and %d places are kept", s.told.Len(), s.found.Len())
	}
}

// TestFaults: whatever the service does wrong is an error, soon, and nothing of it is kept.
func TestFaults(t *testing.T) {
	for fault := servicetest.None; fault < servicetest.Last; fault++ {
		s, f := service(t, Options{Place: "Hangzhou", Timeout: 700 * time.Millisecond})
		if !f.Knows(fault) {
			continue
		}
		f.Fail(fault)
		begun := time.Now()
		got, err := s.Tell(t.Context(), Question{Lang: text.English})
		works := fault == servicetest.None || fault == servicetest.Slow || fault == servicetest.Odd
		if (err == nil) != works || time.Since(begun) > 3*time.Second {
			t.Errorf("%s: %q, %v after %s", fault, got, err, time.Since(begun))
		}
		if fault == servicetest.RateLimited && !strings.Contains(string(web.Refusal(err)), "Minutely API request limit") {
			t.Errorf("%s: %v", fault, err)
		}
		f.Fail(servicetest.None)
		if got, err := s.Tell(t.Context(), Question{Lang: text.English}); err != nil {
			t.Errorf("after %s: %q, %v", fault, got, err)
		}
	}
	s, _ := service(t, Options{Place: "Hangzhou"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Tell(ctx, Question{}); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}

// TestWords: every code has words, and what no sky has is told all the same.
func TestWords(t *testing.T) {
	for _, lang := range []text.Lang{text.English, text.Chinese} {
		a := answer{q: Question{Lang: lang}, Service: &Service{}}
		for _, code := range []int{0, 1, 2, 3, 45, 48, 51, 53, 55, 56, 57, 61, 63, 65, 66, 67, 71, 73, 75, 77, 80, 81, 82, 85, 86, 95, 96, 99} {
			if said := a.words(code); said == message.In(lang, "weather/code-other") || strings.Contains(said, "/") {
				t.Errorf("%s, %d: %s", lang, code, said)
			}
		}
		if a.words(42) != message.In(lang, "weather/code-other") || a.degrees(math.NaN()) == "" || a.degrees(-1e300) == "" {
			t.Error("odd values")
		}
	}
}
