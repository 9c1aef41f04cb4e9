// Package openmeteo is a fake of Open-Meteo: its search for places and its forecast, on one address.
package openmeteo

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// place is a place that the fake knows, by its names in lower case.
type place struct {
	names               []string
	english, chinese    string
	country, land       string // in English and Chinese
	code, state         string
	latitude, longitude float64
	zone                int // seconds east of Greenwich, the whole year
}

// placesFile has a line for each place: names, in English, in Chinese, country in both, its code, state, latitude, longitude, zone.
//
//go:embed places.txt
var placesFile string

func places() (all []place) {
	for line := range strings.Lines(placesFile) {
		f := strings.Split(strings.TrimSpace(line), "|")
		latitude, _ := strconv.ParseFloat(f[7], 64) // the file is right
		longitude, _ := strconv.ParseFloat(f[8], 64)
		zone, _ := strconv.Atoi(f[9])
		all = append(all, place{strings.Split(f[0], ","), f[1], f[2], f[3], f[4], f[5], f[6], latitude, longitude, zone})
	}
	return all
}

// Codes are the WMO codes of the days from today on, again and again, and Chances how likely rain is then, in percent.
var (
	Codes   = []int{3, 61, 0, 95, 75, 2, 45}
	Chances = []int{10, 80, 0, 90, 70, 40, 20}
)

// Fake is the server. Its methods may be called at the same time.
type Fake struct {
	*servicetest.Server
	now func() time.Time
}

// New starts the server, whose forecasts begin at now.
func New(t testing.TB, now func() time.Time) *Fake {
	t.Helper()
	f := &Fake{now: now}
	f.Server = servicetest.New(t, f.serve, servicetest.RateLimited, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return f
}

func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()})
	fault := f.Fault()
	if fault == servicetest.RateLimited {
		f.refuse(w, http.StatusTooManyRequests, "Minutely API request limit exceeded. Please try again in one minute.")
		return
	}
	var answer any
	var wrong string
	switch {
	case r.Method != http.MethodGet:
		wrong = "GET is wanted"
	case r.URL.Path == "/v1/search":
		answer, wrong = search(r.URL.Query())
	case r.URL.Path == "/v1/forecast":
		answer, wrong = f.forecast(r.URL.Query())
	default:
		http.NotFound(w, r)
		return
	}
	if wrong != "" {
		f.refuse(w, http.StatusBadRequest, wrong)
		return
	}
	raw, _ := json.Marshal(answer) // it can be encoded
	f.Send(w, r, fault, servicetest.Reply{Type: "application/json; charset=utf-8", Body: raw, Broken: []byte(`{"results":[{"id":1`), Filler: []byte(" ")})
}

func (f *Fake) refuse(w http.ResponseWriter, status int, reason string) {
	raw, _ := json.Marshal(map[string]any{"error": true, "reason": reason})
	f.Refuse(w, status, string(raw))
}

// search finds places: two signs must be the whole name, one finds nothing.
func search(q url.Values) (answer any, wrong string) {
	name := strings.ToLower(strings.TrimSpace(q.Get("name")))
	if name == "" {
		return nil, "Parameter 'name' is required"
	}
	count, err := strconv.Atoi(q.Get("count"))
	if q.Has("count") && (err != nil || count < 1 || count > 100) {
		return nil, "Parameter count must be between 1 and 100."
	}
	out := map[string]any{"generationtime_ms": 0.4}
	var found []map[string]any
	for i, p := range places() {
		if !slices.Contains(p.names, name) {
			continue
		}
		shown, country := p.english, p.country
		if q.Get("language") == "zh" {
			shown, country = p.chinese, p.land
		}
		found = append(found, map[string]any{
			"id": 1000 + i, "name": shown, "latitude": p.latitude, "longitude": p.longitude, "elevation": 10, "feature_code": "PPLA",
			"country_code": p.code, "country": country, "admin1": p.state, "timezone": "Etc/UTC", "population": 1000000, "postcodes": []string{"0"},
		})
	}
	if len(found) > 0 { // else the member is not there
		out["results"] = found
	}
	return out, ""
}

// known are the variables that the fake has of those that can be asked for.
var known = map[string][]string{
	"current": {"temperature_2m", "apparent_temperature", "weather_code", "wind_speed_10m", "relative_humidity_2m"},
	"hourly":  {"precipitation_probability", "temperature_2m"},
	"daily":   {"weather_code", "temperature_2m_max", "temperature_2m_min", "precipitation_probability_max", "wind_speed_10m_max", "sunrise", "sunset"},
}

// forecast tells the weather of a place that is known.
func (f *Fake) forecast(q url.Values) (answer any, wrong string) {
	latitude, err := strconv.ParseFloat(q.Get("latitude"), 64)
	longitude, err2 := strconv.ParseFloat(q.Get("longitude"), 64)
	days, err3 := strconv.Atoi(q.Get("forecast_days"))
	switch {
	case err != nil || err2 != nil:
		return nil, "Parameter 'latitude' and 'longitude' must have the same number of elements"
	case latitude < -90 || latitude > 90:
		return nil, fmt.Sprintf("Latitude must be in range of -90 to 90°. Given: %v.", latitude)
	case err3 != nil || days < 0 || days > 16:
		return nil, fmt.Sprintf("Forecast days is invalid. Allowed range 0 to 16. Given %v.", q.Get("forecast_days"))
	case q.Has("daily") && q.Get("timezone") == "":
		return nil, "Timezone is required"
	}
	for part, names := range known {
		for name := range strings.SplitSeq(q.Get(part), ",") {
			if name != "" && !slices.Contains(names, name) {
				return nil, fmt.Sprintf("Data corrupted at path ''. Cannot initialize SurfacePressureAndHeightVariable from invalid String value %s.", name)
			}
		}
	}
	zone := 0
	for _, p := range places() {
		if p.latitude-latitude < 0.01 && latitude-p.latitude < 0.01 && p.longitude-longitude < 0.01 && longitude-p.longitude < 0.01 {
			zone = p.zone
		}
	}
	scale := func(celsius float64) float64 {
		if q.Get("temperature_unit") == "fahrenheit" {
			return celsius*9/5 + 32
		}
		return celsius
	}
	now := f.now().In(time.FixedZone("", zone))
	daily := map[string]any{}
	add := func(name string, v any) {
		list, _ := daily[name].([]any)
		daily[name] = append(list, v)
	}
	for i := range days {
		day, n := now.AddDate(0, 0, i).Format(time.DateOnly), i%len(Codes)
		add("time", day)
		add("weather_code", Codes[n])
		add("temperature_2m_max", scale(float64(15+n)+0.4))
		add("temperature_2m_min", scale(float64(n)-2.6))
		add("precipitation_probability_max", Chances[n])
		add("wind_speed_10m_max", 20.4+float64(n))
		if latitude > 66 { // it does not rise in winter
			add("sunrise", "")
			add("sunset", "")
			continue
		}
		add("sunrise", day+"T06:41")
		add("sunset", day+"T17:02")
	}
	if f.Fault() == servicetest.Odd {
		daily["wind_speed_10m_max"], daily["extra"] = []any{nil}, "?"
	}
	hourly := map[string][]any{}
	for i := range 24 {
		hourly["time"] = append(hourly["time"], now.Add(time.Duration(i)*time.Hour).Format("2006-01-02T15:00"))
		hourly["precipitation_probability"] = append(hourly["precipitation_probability"], 5)
	}
	return map[string]any{
		"latitude": latitude, "longitude": longitude, "generationtime_ms": 0.1, "utc_offset_seconds": zone, "timezone": "Etc/UTC", "timezone_abbreviation": "GMT", "elevation": 10,
		"current_units": map[string]any{"temperature_2m": "°C"},
		"current":       map[string]any{"time": now.Format("2006-01-02T15:04"), "interval": 900, "temperature_2m": scale(12.4), "apparent_temperature": scale(-0.6), "weather_code": 2, "wind_speed_10m": 11.7},
		"hourly":        hourly, "daily": daily,
	}, ""
}
