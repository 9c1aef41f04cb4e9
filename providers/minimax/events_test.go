package minimax

import (
	"bytes"
	"errors"
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

func TestLastEventRepeatsTheSound(t *testing.T) {
	for name, test := range map[string]struct {
		events []string
		want   []byte
	}{
		"it repeats all": {[]string{`{"data":{"audio":"0102","status":1}}`, `{"data":{"audio":"0102","status":2}}`}, []byte{1, 2}},
		"it is all":      {[]string{`{"data":{"audio":"0102","status":2}}`}, []byte{1, 2}},
		"it is empty":    {[]string{`{"data":{"audio":"0102","status":1}}`, `{"data":{"audio":"","status":2},"extra_info":{}}`}, []byte{1, 2}},
	} {
		open := events()
		var got []byte
		for i, e := range test.events {
			sound, last, err := open([]byte(e))
			if got = append(got, sound...); err != nil || last != (i == len(test.events)-1) {
				t.Errorf("%s: last %v, error %v", name, last, err)
			}
		}
		if !bytes.Equal(got, test.want) {
			t.Errorf("%s: %x, want %x", name, got, test.want)
		}
	}
}

func TestKindsOfFailures(t *testing.T) {
	for code, want := range map[int]providers.Kind{
		1004: providers.Unauthorized, 2049: providers.Unauthorized, 1008: providers.NoCredit, 1002: providers.RateLimited,
		1039: providers.RateLimited, 2013: providers.BadRequest, 20132: providers.BadRequest, 1000: providers.Unavailable,
	} {
		if got := kindOf(code); got != want {
			t.Errorf("%d: %v, want %v", code, got, want)
		}
	}
	_, _, err := events()([]byte(`{"base_resp":{"status_code":"2049","status_msg":"invalid api key"},"trace_id":"t"}`))
	if refused, ok := errors.AsType[*transport.Refusal](err); !ok || refused.Kind != providers.Unauthorized || refused.LogID != "t" {
		t.Errorf("error %v", err)
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"data":{"audio":"0102","status":1},"base_resp":{"status_code":0}}`))
	f.Add([]byte(`{"data":{"audio":"zz"}}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, event []byte) {
		open := events()
		first, _, err := open(event)
		again, last, _ := open(event)
		if err == nil && last && len(first) > 0 && len(again) > 0 {
			t.Error("the last event was taken twice")
		}
	})
}
