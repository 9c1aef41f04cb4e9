package dashscope

import (
	"testing"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

func TestKindsOfFailures(t *testing.T) {
	for code, want := range map[string]providers.Kind{
		"InvalidApiKey": providers.Unauthorized, "Model.AccessDenied": providers.Unauthorized, "Arrearage": providers.NoCredit,
		"AllocationQuota.FreeTierOnly": providers.NoCredit, "Throttling.RateQuota": providers.RateLimited, "InvalidParameter": providers.BadRequest,
		"ModelNotFound": providers.BadRequest, "UNSUPPORTED_FORMAT": providers.BadRequest, "InternalError": providers.Unavailable,
	} {
		if got := kindOf(code, ""); got != want {
			t.Errorf("%s: %v, want %v", code, got, want)
		}
	}
	for words, want := range map[string]providers.Kind{
		"[tts:]Engine return error code: 418": providers.BadRequest, "request timeout after 23 seconds.": providers.Unavailable,
		"Requests rate limit exceeded, please try again later.": providers.RateLimited,
	} {
		if got := kindOf("CLIENT_ERROR", words); got != want {
			t.Errorf("%s: %v, want %v", words, got, want)
		}
	}
	r := judged(&transport.Refusal{Status: 400, Kind: providers.BadRequest, Text: `{"code":"Arrearage","message":"no money","request_id":"r"}`})
	if r.Kind != providers.NoCredit || r.Code != "Arrearage" || r.Text != "no money" || r.LogID != "r" {
		t.Errorf("got %+v", r)
	}
}

func TestSentenceEnds(t *testing.T) {
	yes, no, at := true, false, transport.Int(5)
	for _, test := range []struct {
		s    sentence
		want bool
	}{
		{sentence{SentenceEnd: &yes}, true}, {sentence{SentenceEnd: &no, EndTime: &at}, false}, {sentence{EndTime: &at}, true}, {sentence{}, false},
	} {
		if got := test.s.ended(); got != test.want {
			t.Errorf("%+v: %v", test.s, got)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"output":{"audio":{"data":"AQI="},"finish_reason":"stop"}}`))
	f.Add([]byte(`{"code":"InvalidParameter","message":"m"}`))
	f.Add([]byte(`{"output":{"audio":{"data":"!"},"finish_reason":null}}`))
	f.Fuzz(func(t *testing.T, event []byte) {
		if sound, _, err := open(event); err == nil && len(sound) > len(event) {
			t.Errorf("%d bytes of sound in an event of %d", len(sound), len(event))
		}
	})
}

// TestAddressOfAPage: an address may be copied from the vendor's pages, with the path of a service.
func TestAddressOfAPage(t *testing.T) {
	for in, want := range map[string]string{
		"": china, "wss://dashscope.aliyuncs.com/api-ws/v1/inference/": "wss://dashscope.aliyuncs.com", "https://h.cn:8443/api/v1": "https://h.cn:8443",
		"https://dashscope-intl.aliyuncs.com/compatible-mode/v1": international, "ws://[::1]:9/proxy/": "ws://[::1]:9/proxy",
	} {
		at, err := newSite(service.Section{BaseURL: in})
		if err != nil || at.address != want {
			t.Errorf("%s: %+v, %v", in, at, err)
		}
	}
}
