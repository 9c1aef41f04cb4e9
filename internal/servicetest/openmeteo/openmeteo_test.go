package openmeteo

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestFake(t *testing.T) {
	f := New(t, func() time.Time { return time.Date(2026, 11, 24, 7, 4, 0, 0, time.UTC) })
	for path, want := range map[string]string{
		"/v1/search?name=杭州&language=zh&count=1": `"country":"中国"`,
		"/v1/search?name=nowhere":                `{"generationtime_ms":0.4}`,
		"/v1/search?name=":                       `"error":true`,
		"/v1/forecast?latitude=30.2937&longitude=120.1614&daily=weather_code&timezone=auto&forecast_days=2": `"weather_code":[3,61]`,
		"/v1/forecast?latitude=30.2937&longitude=120.1614&daily=weather_code&forecast_days=2":               "Timezone is required",
		"/v1/forecast?latitude=300&longitude=120&forecast_days=2":                                           "Latitude must be in range",
		"/v1/forecast?latitude=30&longitude=120&forecast_days=20":                                           "Forecast days is invalid",
		"/v1/forecast?latitude=30&longitude=120&forecast_days=2&current=colour":                             "colour",
	} {
		resp, err := http.Get(f.URL() + path) //nolint:noctx // a test
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(body), want) {
			t.Errorf("%s: %s", path, body)
		}
	}
}
