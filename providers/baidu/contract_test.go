package baidu

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	fake "xiaozhi/internal/servicetest/baidu"
	"xiaozhi/providers"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
)

// open makes a recogniser of a server.
func open(t *testing.T, url string) providers.ASR {
	t.Helper()
	a, err := Kind().ASR(service.Section{
		Name: "ears", Key: servicetest.Key, Secret: servicetest.Secret, BaseURL: url, Timeouts: service.Timeouts{First: 20 * time.Second},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// hear has sound recognised.
func hear(t *testing.T, a providers.ASR, pcm []int16) (providers.Transcript, error) {
	t.Helper()
	stream, err := a.Open(t.Context(), providers.ASRRequest{Rate: 16000, Language: "zh-CN"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.Write(pcm), stream.CloseWrite()); err != nil {
		t.Fatal(err)
	}
	for tr, err := range stream.Transcripts() {
		return tr, err
	}
	t.Fatal("nothing came")
	return providers.Transcript{}, nil
}

var tone = servicetest.Samples(servicetest.Speech(strings.Repeat("a", 30), 16000))

func TestContract(t *testing.T) {
	providertest.TestRecogniserContract(t, providertest.Case{
		Kind: Kind(), Fake: fake.New, Uploads: true, Reuses: true,
		Kinds: map[servicetest.Fault][]providers.Kind{servicetest.WrongModel: {providers.Unauthorized}},
	})
}

func TestSilenceAndLength(t *testing.T) {
	a := open(t, fake.New(t).URL())
	if tr, err := hear(t, a, make([]int16, 16000)); tr.Text != "" || err != nil {
		t.Errorf("of silence: %+v, %v", tr, err)
	}
	if tr, err := hear(t, a, append(make([]int16, 60*16000), tone...)); tr.Text != servicetest.Words || err != nil {
		t.Errorf("of a minute and more: %+v, %v", tr, err)
	}
}

// The service forgets every token here.
func TestTokensAreReplacedOnce(t *testing.T) {
	tokens, asked := 0, ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/oauth/2.0/token" {
			tokens++
			_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":2592000}`, tokens)
			return
		}
		asked = r.URL.Path
		_, _ = fmt.Fprint(w, `{"err_no":110,"err_msg":"Access token invalid or no longer valid token-2"}`)
	}))
	defer s.Close()
	_, err := hear(t, open(t, s.URL), tone)
	if tokens != 2 || asked != "/server_api" || err == nil || strings.Contains(err.Error(), "token-2") {
		t.Errorf("%d tokens, asked %s, %v", tokens, asked, err)
	}
}

// What is out of order for a moment is asked again, as often as the settings say.
func TestRetries(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/oauth/2.0/token" {
			_, _ = fmt.Fprint(w, `{"access_token":"token","expires_in":2592000}`)
		} else if asked++; asked == 1 {
			_, _ = fmt.Fprint(w, `{"err_no":3303,"err_msg":"backend"}`)
		} else {
			_, _ = fmt.Fprint(w, `{"err_no":0,"result":["hello"]}`)
		}
	}))
	defer s.Close()
	once := 1
	a, err := Kind().ASR(service.Section{Name: "ears", Key: servicetest.Key, Secret: servicetest.Secret, BaseURL: s.URL, Retries: &once})
	if err != nil {
		t.Fatal(err)
	}
	if tr, err := hear(t, a, tone); err != nil || tr.Text != "hello" || asked != 2 {
		t.Errorf("%+v after %d requests, %v", tr, asked, err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(`{"err_no":0,"result":["a"]}`)
	f.Add(`{"err_no":3301}`)
	f.Fuzz(func(t *testing.T, data string) {
		var a answer
		if readJSON(strings.NewReader(data), &a) == nil {
			if words, err := a.text(); words != "" && err != nil {
				t.Errorf("%q and %v", words, err)
			}
		}
	})
}

// The vendor's pages have the keys in the query: whoever goes by them looks nowhere else.
func TestKeysInTheQuery(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/oauth/2.0/token":
			_, _ = fmt.Fprint(w, `{"err_no":"0","err_msg":7,"result":["hello"],"sn":null}`)
		case r.URL.Query().Get("client_secret") != servicetest.Secret:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error":"invalid_client","error_description":"unknown client id"}`)
		default:
			_, _ = fmt.Fprint(w, `{"access_token":"token","expires_in":"2592000"}`)
		}
	}))
	defer s.Close()
	if tr, err := hear(t, open(t, "ws"+strings.TrimPrefix(s.URL, "http")+"/server_api"), tone); err != nil || tr.Text != "hello" {
		t.Errorf("%+v, %v", tr, err)
	}
}

// Tokens have a host of their own, whichever of the vendor's hosts is named.
func TestTokensHaveAHost(t *testing.T) {
	for in, want := range map[string]string{"": tokenAddress, "http://vop.baidu.com/server_api": tokenAddress, "http://[::1]:9/p/": "http://[::1]:9/p"} {
		if a := open(t, in).(*asr); a.tokens.url != want+"/oauth/2.0/token" {
			t.Errorf("%q: %s", in, a.tokens.url)
		}
	}
}
