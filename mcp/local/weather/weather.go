// Package weather tells the weather of places from Open-Meteo, which wants no key: it finds a place by its name in any
// language, and has the present weather and a forecast of 15 days.
package weather

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/lru"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/local/web"
)

// The addresses of Open-Meteo (https://open-meteo.com/en/docs, https://open-meteo.com/en/docs/geocoding-api).
const (
	forecastBase = "https://api.open-meteo.com"
	placesBase   = "https://geocoding-api.open-meteo.com"
)

// Days is how many days the forecast has, today among them.
const Days = 15

const (
	hoursAhead   = 24
	keepForecast = 10 * time.Minute
	keepPlace    = 24 * time.Hour
	keptPlaces   = 512
	keptWeathers = 256
	maxPlace     = 100 // bytes of a place's name
)

// Options configure a [Service].
type Options struct {
	Base     string           // of a server that answers both for places and for forecasts; "": those of Open-Meteo
	Place    string           // where none is named: a name, or "latitude,longitude"; "": the user must name one
	Imperial bool             // degrees Fahrenheit and miles
	Timeout  time.Duration    // of one request; 0: 10 s
	Now      func() time.Time // nil: time.Now
}

// Service tells the weather. All methods may be called at the same time.
type Service struct {
	options           Options
	places, forecasts *web.Client
	found             *lru.Cache[string, kept[Place]]
	told              *lru.Cache[string, kept[*forecast]]
}

// kept holds something that was found at a time.
type kept[T any] struct {
	value T
	at    time.Time
	none  bool // there is no such place
}

// Place is a place on earth.
type Place struct {
	Name      string
	Country   string
	Latitude  float64
	Longitude float64
}

var (
	// ErrNoPlace says that there is no place of a name.
	ErrNoPlace = errors.New("no such place")
	// ErrWhere says that no place was named, and none is set.
	ErrWhere = errors.New("no place is named")
	// ErrDay says that words are no day.
	ErrDay = errors.New("no day")
	// ErrFar says that a day is not in the forecast.
	ErrFar = errors.New("the day is not in the forecast")
)

// New checks the options.
func New(o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{options: o, found: lru.New[string, kept[Place]](keptPlaces, 0), told: lru.New[string, kept[*forecast]](keptWeathers, 0)}
	var err error
	if s.places, err = web.NewClient(web.ClientOptions{Base: cmp.Or(o.Base, placesBase), Timeout: o.Timeout}); err != nil {
		return nil, err
	}
	s.forecasts, err = web.NewClient(web.ClientOptions{Base: cmp.Or(o.Base, forecastBase), Timeout: o.Timeout})
	return s, err
}

// HasPlace reports whether there is a place where none is named.
func (s *Service) HasPlace() bool { return s.options.Place != "" }

// find returns the place of a name. It asks once a day.
func (s *Service) find(ctx context.Context, name string, lang text.Lang) (Place, error) {
	if at, ok := coordinates(name); ok {
		return at, nil
	}
	if len(name) > maxPlace {
		return Place{}, ErrNoPlace
	}
	language := lang.Pick("zh", cmp.Or(string(lang.Base()), "en"))
	key := language + " " + strings.ToLower(name)
	if k, ok := s.found.Get(key); ok && s.fresh(k.at, keepPlace) {
		if k.none {
			return Place{}, ErrNoPlace
		}
		return k.value, nil
	}
	for _, spelling := range spellings(name) {
		place, err := s.ask(ctx, spelling, language)
		switch {
		case err == nil:
			s.found.Put(key, kept[Place]{value: place, at: s.options.Now()}, 1)
			return place, nil
		case !errors.Is(err, ErrNoPlace):
			return Place{}, err
		}
	}
	s.found.Put(key, kept[Place]{at: s.options.Now(), none: true}, 1)
	return Place{}, ErrNoPlace
}

// fresh reports whether what is known since at may still be told. A clock that was set back does not keep it for long.
func (s *Service) fresh(at time.Time, keep time.Duration) bool {
	age := s.options.Now().Sub(at)
	return age >= 0 && age < keep
}

// ask asks for the places of a name, of which the first is the best known. Of "Paris, Texas" what stands behind
// the comma must be its country or a part of that.
func (s *Service) ask(ctx context.Context, name, language string) (Place, error) {
	town, within, _ := strings.Cut(name, ",")
	within = strings.ToLower(strings.TrimSpace(within))
	var found struct {
		Results []struct {
			Name      string  `json:"name"`
			Latitude  float64 `json:"latitude"`
			Longitude float64 `json:"longitude"`
			Country   string  `json:"country"`
			Code      string  `json:"country_code"`
			Admin1    string  `json:"admin1"`
			Admin2    string  `json:"admin2"`
		} `json:"results"`
	}
	err := s.places.JSON(ctx, web.Request{Path: "/v1/search", Query: url.Values{
		"name": {strings.TrimSpace(town)}, "count": {"10"}, "language": {language}, "format": {"json"},
	}}, &found)
	if err != nil {
		return Place{}, err
	}
	for _, r := range found.Results {
		around := strings.ToLower(strings.Join([]string{r.Country, r.Code, r.Admin1, r.Admin2}, "\n"))
		if r.Name != "" && (within == "" || strings.Contains(around, within)) {
			return Place{Name: text.Cut(r.Name, maxPlace), Country: text.Cut(r.Country, maxPlace), Latitude: r.Latitude, Longitude: r.Longitude}, nil
		}
	}
	return Place{}, ErrNoPlace
}

// spellings returns a name as it was said, and without what places are called by beside their name: 杭州市.
func spellings(name string) []string {
	all := []string{name}
	for _, ending := range append(message.List(text.Chinese, "weather/place-endings"), message.List(text.English, "weather/place-endings")...) {
		if short, ok := strings.CutSuffix(name, ending); ok && len(short) > 1 {
			all = append(all, short)
		}
	}
	return all
}

// coordinates reads "52.52,13.41".
func coordinates(name string) (Place, bool) {
	north, east, ok := strings.Cut(name, ",")
	latitude, err := strconv.ParseFloat(strings.TrimSpace(north), 64)
	longitude, wrong := strconv.ParseFloat(strings.TrimSpace(east), 64)
	if !ok || err != nil || wrong != nil || math.Abs(latitude) > 90 || math.Abs(longitude) > 180 || math.IsNaN(latitude+longitude) {
		return Place{}, false
	}
	return Place{Latitude: latitude, Longitude: longitude}, true
}

// forecast is the weather of a place, as its service tells it. What it does not know is missing.
type forecast struct {
	Offset  int `json:"utc_offset_seconds"`
	Current struct {
		Temperature *float64 `json:"temperature_2m"`
		Feels       *float64 `json:"apparent_temperature"`
		Code        *int     `json:"weather_code"`
		Wind        *float64 `json:"wind_speed_10m"`
	} `json:"current"`
	Hourly struct {
		Time   []string   `json:"time"`
		Chance []*float64 `json:"precipitation_probability"`
	} `json:"hourly"`
	Daily struct {
		Time    []string   `json:"time"`
		Code    []*int     `json:"weather_code"`
		Max     []*float64 `json:"temperature_2m_max"`
		Min     []*float64 `json:"temperature_2m_min"`
		Chance  []*float64 `json:"precipitation_probability_max"`
		Wind    []*float64 `json:"wind_speed_10m_max"`
		Sunrise []string   `json:"sunrise"`
		Sunset  []string   `json:"sunset"`
	} `json:"daily"`
}

// forecast returns the weather of a place. It asks every ten minutes at most.
func (s *Service) forecast(ctx context.Context, p Place) (*forecast, error) {
	key := fmt.Sprintf("%.2f,%.2f", p.Latitude, p.Longitude)
	if k, ok := s.told.Get(key); ok && s.fresh(k.at, keepForecast) {
		return k.value, nil
	}
	query := url.Values{
		"latitude": {strconv.FormatFloat(p.Latitude, 'f', 4, 64)}, "longitude": {strconv.FormatFloat(p.Longitude, 'f', 4, 64)},
		"current":  {"temperature_2m,apparent_temperature,weather_code,wind_speed_10m"},
		"hourly":   {"precipitation_probability"},
		"daily":    {"weather_code,temperature_2m_max,temperature_2m_min,precipitation_probability_max,wind_speed_10m_max,sunrise,sunset"},
		"timezone": {"auto"}, "forecast_days": {strconv.Itoa(Days)}, "forecast_hours": {strconv.Itoa(hoursAhead)},
	}
	if s.options.Imperial {
		query.Set("temperature_unit", "fahrenheit")
		query.Set("wind_speed_unit", "mph")
	}
	f := new(forecast)
	if err := s.forecasts.JSON(ctx, web.Request{Path: "/v1/forecast", Query: query}, f); err != nil {
		return nil, err
	}
	if len(f.Daily.Time) == 0 || f.Current.Temperature == nil || f.Offset < -86400 || f.Offset > 86400 {
		return nil, web.ErrJSON
	}
	s.told.Put(key, kept[*forecast]{value: f, at: s.options.Now()}, 1)
	return f, nil
}

// at returns the i-th value of a list that may be shorter, or hold gaps.
func at[T any](list []*T, i int) (v T, ok bool) {
	if i < 0 || i >= len(list) || list[i] == nil {
		return v, false
	}
	return *list[i], true
}
