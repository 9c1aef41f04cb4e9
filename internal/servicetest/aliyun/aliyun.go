// Package aliyun is a fake of Aliyun's Intelligent Speech Interaction (NLS): tokens,
// recognition of short and long speech, voices whole and flowing, and voices by HTTP, all
// on one socket. Its access key id is servicetest.Key, its secret servicetest.Secret, and
// the application's key servicetest.ID.
package aliyun

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

const (
	window = 5 * time.Minute // by which the clocks of a signed request may differ
	life   = 24 * time.Hour  // of a token
)

// fake is the service.
type fake struct {
	*servicetest.Server

	mu     sync.Mutex
	tokens map[string]time.Time // and until when they are valid
	nonces map[string]bool
	ended  int // sessions that were ended in the middle, or went on after that
}

// New starts the fake. Beside the vendor's paths it has /forget, which makes all tokens
// invalid.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{tokens: map[string]time.Time{}, nonces: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", f.token)
	mux.HandleFunc("/ws/v1", f.socket)
	mux.HandleFunc("POST /stream/v1/tts", f.speech)
	mux.HandleFunc("GET /forget", func(http.ResponseWriter, *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		clear(f.tokens)
	})
	f.Server = servicetest.New(t, mux.ServeHTTP,
		servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongVoice, servicetest.ClockAhead,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge,
		servicetest.Odd, servicetest.Stale, servicetest.Ends, servicetest.Parts, servicetest.Late)
	return f.Server
}

// escape encodes a parameter as the vendor's signature has it.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// sign returns the signature of a query.
func sign(q url.Values, secret string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(q)) {
		if k != "Signature" {
			pairs = append(pairs, escape(k)+"="+escape(q.Get(k)))
		}
	}
	mac := hmac.New(sha1.New, []byte(secret+"&"))
	_, _ = mac.Write([]byte("GET&%2F&" + escape(strings.Join(pairs, "&"))))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// token gives a token to whoever signs as the vendor wants it.
func (f *fake) token(w http.ResponseWriter, r *http.Request) {
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header})
	if f.Fault() == servicetest.Silent {
		f.Wait(r.Context(), time.Hour)
		return
	}
	if status, code, message := f.judge(r.URL.Query()); status != http.StatusOK {
		f.Refuse(w, status, fmt.Sprintf(`{"RequestId":"5C1F8A2E","HostId":"nls-meta.cn-shanghai.aliyuncs.com","Code":%q,"Message":%q}`, code, message))
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := fmt.Sprintf("token%032x", len(f.nonces))
	f.tokens[id] = f.Now().Add(life)
	f.Refuse(w, http.StatusOK, fmt.Sprintf(`{"NlsRequestId":"dd05a301","RequestId":"E2A1","ErrMsg":"","Token":{"ExpireTime":%d,"Id":%q,"UserId":"1001"}}`, f.tokens[id].Unix(), id))
}

// judge says with which status and words a request for a token is answered.
func (f *fake) judge(q url.Values) (status int, code, message string) {
	at, err := time.Parse("2006-01-02T15:04:05Z", q.Get("Timestamp"))
	f.mu.Lock()
	nonce := q.Get("SignatureNonce")
	used := f.nonces[nonce]
	f.nonces[nonce] = true
	f.mu.Unlock()
	switch {
	case q.Get("Action") != "CreateToken" || q.Get("Version") != "2019-02-28" || q.Get("Format") != "JSON" || q.Get("RegionId") == "":
		return http.StatusBadRequest, "InvalidParameter", "The specified parameter is not valid."
	case q.Get("SignatureMethod") != "HMAC-SHA1" || q.Get("SignatureVersion") != "1.0" || nonce == "" || err != nil:
		return http.StatusBadRequest, "IncompleteSignature", "The request signature does not conform to Aliyun standards."
	case q.Get("AccessKeyId") != servicetest.Key || f.Fault() == servicetest.WrongKey:
		return http.StatusNotFound, "InvalidAccessKeyId.NotFound", "Specified access key is not found."
	case q.Get("Signature") != sign(q, servicetest.Secret):
		return http.StatusBadRequest, "SignatureDoesNotMatch", "Specified signature is not matched with our calculation."
	case f.Now().Sub(at).Abs() > window:
		return http.StatusBadRequest, "InvalidTimeStamp.Expired", "Specified time stamp or date value is expired."
	case used:
		return http.StatusBadRequest, "SignatureNonceUsed", "Specified signature nonce was used already."
	}
	return http.StatusOK, "", ""
}

// known says whether a token is one that was given and is still valid.
func (f *fake) known(token string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	until, ok := f.tokens[token]
	return ok && f.Now().Before(until) && f.Fault() != servicetest.WrongKey
}

// speech is a voice by HTTP.
func (f *fake) speech(w http.ResponseWriter, r *http.Request) {
	var req struct {
		AppKey     string `json:"appkey"`
		Token      string `json:"token"`
		Text       string `json:"text"`
		Format     string `json:"format"`
		SampleRate int    `json:"sample_rate"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&req)
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header, Body: []byte(req.Text)})
	refuse := func(status, code int, message string) {
		f.Refuse(w, status, fmt.Sprintf(`{"task_id":"0","result":"","status":%d,"message":%q}`, code, message))
	}
	code, message := f.refusal(true)
	switch {
	case err != nil:
		refuse(http.StatusBadRequest, 40000002, "MESSAGE_INVALID")
	case !f.known(req.Token):
		refuse(http.StatusForbidden, 40000001, "ACCESS_DENIED:The token '...' is invalid!")
	case req.AppKey != servicetest.ID:
		refuse(http.StatusBadRequest, 40020106, "APPKEY_UNKNOWN")
	case code != 0:
		refuse(http.StatusBadRequest, code, message)
	case req.Text == "" || len([]rune(req.Text)) > maxText:
		refuse(http.StatusBadRequest, 41020001, "TTS:TtsClientError:text is empty or too long")
	default:
		rate := req.SampleRate
		if rate == 0 {
			rate = 16000
		}
		sound := servicetest.Speech(req.Text, rate)
		if req.Format != "pcm" {
			sound = append(servicetest.WAV(rate, uint32(len(sound))), sound...)
		}
		f.Send(w, r, f.Fault(), servicetest.Reply{Type: "audio/mpeg", Body: sound, Piece: 3200, Broken: []byte("<html>bad gateway</html>"), Filler: sound})
	}
}

// refusal is the code with which a task fails that the fault does not let begin, or 0.
func (f *fake) refusal(voice bool) (code int, message string) {
	switch fault := f.Fault(); {
	case fault == servicetest.NoMoney:
		return 40000010, "Gateway:FREE_TRIAL_EXPIRED:The free trial has expired!"
	case fault == servicetest.RateLimited:
		return 40000005, "Gateway:TOO_MANY_REQUESTS:Too many requests!"
	case fault == servicetest.WrongVoice && voice:
		return 41020001, "TTS:TtsClientError:Engine return error code: 418"
	}
	return 0, ""
}
