package volcengine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/volcframe"
)

// oldEars is a server of the old service: it answers each packet, the last one with a
// negative number.
func oldEars(t *testing.T, code int) string {
	t.Helper()
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) {
		l, ok := s.Line(w, r, nil)
		if !ok {
			return
		}
		defer l.Close()
		if r.URL.Path != oldHearPath || r.Header.Get("Authorization") != "Bearer; "+servicetest.Key {
			t.Errorf("%s with %q", r.URL, r.Header.Get("Authorization"))
		}
		for n := 1; ; n++ {
			m, err := l.Next(0)
			if err != nil {
				return
			}
			if n == 1 {
				var h oldHearing
				if err := json.Unmarshal(m.Data[8:], &h); err != nil || h.App.ID != servicetest.ID || h.App.Token != servicetest.Key || h.Request.Sequence != 1 {
					t.Errorf("the first message is %s, %v", m.Data[8:], err)
				}
			}
			words, sequence := strings.Repeat("a", n-1), n
			if m.Data[1]&volcframe.FlagLast != 0 {
				sequence = -n
			} else if code == 1013 {
				continue // that nothing was said is known at the end
			}
			if code == 1013 {
				words = ""
			}
			payload := fmt.Appendf(nil, `{"reqid":"r","code":%d,"message":"m","sequence":%d,"result":[{"text":%q}]}`, code, sequence, words)
			l.Say(servicetest.Binary(volcframe.Frame{Kind: volcframe.TypeAnswer, JSON: true, Payload: payload}.Bytes()))
		}
	})
	return s.URL()
}

func TestOldRecogniser(t *testing.T) {
	for code, want := range map[int]string{1000: "", 1013: "", 1002: "unauthorized", 1003: "rate_limited", 1004: "no_credit", 1012: "bad_request", 1022: "unavailable"} {
		a := open(t, service.Section{
			Name: "volc", Key: servicetest.Key, ID: servicetest.ID, BaseURL: oldEars(t, code), Settings: map[string]any{"mode": oldMode},
		})
		partials, tr, err := hear(t.Context(), t, a, tone)
		failed, _ := errors.AsType[*providers.Error](err)
		switch {
		case want != "" && (failed == nil || failed.Kind.String() != want):
			t.Errorf("%d: failed with %v, want %s", code, err, want)
		case code == 1000 && (err != nil || partials < 4 || tr.Text != strings.Repeat("a", partials)):
			t.Errorf("heard %+v after %d partial texts, %v", tr, partials, err)
		case code == 1013 && (err != nil || tr.Text != ""):
			t.Errorf("of silence: %+v, %v", tr, err)
		}
	}
}
