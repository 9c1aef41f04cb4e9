package baidu

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"xiaozhi/internal/servicetest"
)

// answer is one to either request.
type answer struct {
	Token  string   `json:"access_token"`
	Error  string   `json:"error"`
	Code   int      `json:"err_no"`
	Result []string `json:"result"`
}

func post(t *testing.T, address, kind, body string) (a answer) {
	t.Helper()
	resp, err := http.Post(address, kind, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		t.Error(err)
	}
	return a
}

func token(t *testing.T, s *servicetest.Server, secret string) answer {
	t.Helper()
	form := url.Values{"grant_type": {"client_credentials"}, "client_id": {servicetest.Key}, "client_secret": {secret}}
	return post(t, s.URL()+"/oauth/2.0/token", "application/x-www-form-urlencoded", form.Encode())
}

func request(token string, pcm []byte) string {
	m := map[string]any{"format": "pcm", "rate": 16000, "dev_pid": mandarin, "cuid": "me", "channel": 1, "token": token}
	m["speech"], m["len"] = base64.StdEncoding.EncodeToString(pcm), len(pcm)
	return string(servicetest.JSON(m).Data)
}

func TestItHears(t *testing.T) {
	t.Parallel()
	s := New(t)
	a := token(t, s, servicetest.Secret)
	speech := servicetest.Speech("hello", 16000)
	for name, got := range map[string]answer{
		"JSON": post(t, s.URL()+"/server_api", "application/json", request(a.Token, speech)),
		"raw":  post(t, s.URL()+"/pro_api?cuid=me&dev_pid=80001&token="+a.Token, "audio/pcm; rate=16000", string(speech)),
	} {
		if got.Code != 0 || len(got.Result) != 1 || got.Result[0] != servicetest.Words {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := post(t, s.URL()+"/server_api", "application/json", request(a.Token, make([]byte, 640))); got.Code != badSound {
		t.Errorf("silence: %+v", got)
	}
}

func TestItRefuses(t *testing.T) {
	t.Parallel()
	s := New(t)
	if a := token(t, s, "wrong"); a.Error != "invalid_client" || a.Token != "" {
		t.Errorf("a wrong secret: %+v", a)
	}
	a := token(t, s, servicetest.Secret)
	speech := servicetest.Speech("hello", 16000)
	if got := post(t, s.URL()+"/server_api", "application/json", request("another", speech)); got.Code != badToken {
		t.Errorf("another token: %+v", got)
	}
	resp, err := http.Get(s.URL() + Expire)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := post(t, s.URL()+"/server_api", "application/json", request(a.Token, speech)); got.Code != oldToken {
		t.Errorf("an expired token: %+v", got)
	}
	a = token(t, s, servicetest.Secret)
	for f, want := range map[servicetest.Fault]int{servicetest.NoMoney: overQuota, servicetest.RateLimited: tooMany} {
		s.Fail(f)
		if got := post(t, s.URL()+"/server_api", "application/json", request(a.Token, speech)); got.Code != want {
			t.Errorf("%v: %+v", f, got)
		}
	}
}
