// Package tencent is a fake of Tencent Cloud's speech: streaming recognition, streaming
// voices, and both as single requests, all on one socket. Its SecretId is
// servicetest.Key, its SecretKey servicetest.Secret, and the AppId servicetest.ID.
// Signatures may be made for the vendor's host or for the fake's.
package tencent

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

const (
	window = 5 * time.Minute      // by which the clocks of a signed request may differ
	early  = 5 * time.Millisecond // in which a client that does not wait for an answer shows itself
	idle   = 3 * time.Second      // without sound; 15 s with the vendor
	asr    = "asr.cloud.tencent.com"
	tts    = "tts.cloud.tencent.com"
)

// fake is the service.
type fake struct {
	*servicetest.Server

	mu    sync.Mutex
	spent map[string]bool // voice ids and session ids that were used
	ended int             // sessions that were ended in the middle, or went on after that
}

// New starts the fake.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{spent: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/asr/v2/{app}", f.hearing)
	mux.HandleFunc("/stream_wsv2", f.flowing)
	mux.HandleFunc("/stream_ws", f.whole)
	mux.HandleFunc("POST /{$}", f.request)
	f.Server = servicetest.New(t, mux.ServeHTTP,
		servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel, servicetest.WrongVoice,
		servicetest.ClockAhead, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken,
		servicetest.Huge, servicetest.Odd, servicetest.Ends, servicetest.Parts, servicetest.Late)
	return f.Server
}

// sign returns the signature of a query for what stands before it: host and path, with
// the method for voices.
func sign(before string, q url.Values, secret string) string {
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(q)) {
		if !strings.EqualFold(k, "signature") {
			pairs = append(pairs, k+"="+q.Get(k))
		}
	}
	mac := hmac.New(sha1.New, []byte(secret))
	_, _ = mac.Write([]byte(before + "?" + strings.Join(pairs, "&")))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// signed says whether a request has the right signature, for the vendor's host or ours.
func signed(r *http.Request, method, host, given string) bool {
	q := r.URL.Query()
	return given == sign(method+host+r.URL.Path, q, servicetest.Secret) || given == sign(method+r.Host+r.URL.Path, q, servicetest.Secret)
}

// current says whether a query's times are right for the server's clock.
func (f *fake) current(from, until string) bool {
	a, err1 := strconv.ParseInt(from, 10, 64)
	b, err2 := strconv.ParseInt(until, 10, 64)
	at := time.Unix(a, 0)
	return err1 == nil && err2 == nil && f.Now().Sub(at).Abs() <= window && b > a && time.Unix(b, 0).Before(at.AddDate(0, 0, 90))
}

// take says whether an id is new.
func (f *fake) take(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	used := f.spent[id]
	f.spent[id] = true
	return id != "" && len(id) <= 128 && !used
}

// line takes a WebSocket whose answer says what the time is.
func (f *fake) line(w http.ResponseWriter, r *http.Request) (*servicetest.Line, bool) {
	return f.Line(w, r, http.Header{"Date": {f.Now().UTC().Format(http.TimeFormat)}})
}

// missing returns the name of the first parameter that is not there, or "".
func missing(q url.Values, names ...string) string {
	for _, n := range names {
		if q.Get(n) == "" {
			return n
		}
	}
	return ""
}

// judge returns the code with which a session of recognition is refused, or 0.
func (f *fake) judge(r *http.Request) (code int, message string) {
	q := r.URL.Query()
	nonce, fault := q.Get("nonce"), f.Fault()
	model := q.Get("engine_model_type")
	switch gone := missing(q, "secretid", "timestamp", "expired", "nonce", "engine_model_type", "voice_id", "signature"); {
	case gone != "":
		return 4001, "parameter is missing: " + gone
	case len(nonce) > 10:
		return 4001, "parameter is wrong: nonce"
	case fault == servicetest.WrongKey || r.PathValue("app") != servicetest.ID || q.Get("secretid") != servicetest.Key || !signed(r, "", asr, q.Get("signature")):
		return 4002, "authentication failed: signature error"
	case !f.current(q.Get("timestamp"), q.Get("expired")):
		return 4002, "authentication failed: signature expired"
	case fault == servicetest.NoMoney:
		return 4005, "the account is in arrears"
	case fault == servicetest.RateLimited:
		return 4006, "the number of concurrent requests exceeds the limit"
	case fault == servicetest.WrongModel || !strings.HasPrefix(model, "16k_") && !strings.HasPrefix(model, "8k_"):
		return 4001, "parameter is wrong: engine_model_type"
	case !f.take(q.Get("voice_id")):
		return 4001, "parameter is wrong: voice_id has been used"
	}
	return 0, ""
}

// judgeVoice returns the code with which a voice is refused, or 0. That of an account in
// arrears is not documented; its words are those of the single request.
func (f *fake) judgeVoice(r *http.Request, action string) (code int, message string) {
	q := r.URL.Query()
	fault := f.Fault()
	switch gone := missing(q, "AppId", "SecretId", "Timestamp", "Expired", "SessionId", "Signature"); {
	case gone != "":
		return 10001, "parameter is missing: " + gone
	case q.Get("Action") != action:
		return 10001, "parameter is wrong: Action"
	case fault == servicetest.WrongKey || q.Get("AppId") != servicetest.ID || q.Get("SecretId") != servicetest.Key || !signed(r, "GET", tts, q.Get("Signature")):
		return 10003, "AuthFailure.SignatureFailure: authentication failed"
	case !f.current(q.Get("Timestamp"), q.Get("Expired")):
		return 10003, "AuthFailure.SignatureExpire: signature expired"
	case fault == servicetest.NoMoney:
		return 10003, "UnsupportedOperation.AccountArrears: the account is in arrears"
	case fault == servicetest.RateLimited:
		return 10002, "concurrency limit exceeded"
	case fault == servicetest.WrongVoice || fault == servicetest.WrongModel:
		return 10001, "parameter is wrong: VoiceType"
	case !slices.Contains([]string{"", "pcm", "mp3"}, q.Get("Codec")):
		return 10001, "parameter is wrong: Codec"
	case !slices.Contains([]string{"", "8000", "16000", "24000"}, q.Get("SampleRate")):
		return 10001, "parameter is wrong: SampleRate"
	case !f.take(q.Get("SessionId")):
		return 10001, fmt.Sprintf("parameter is wrong: SessionId %q has been used", q.Get("SessionId"))
	}
	return 0, ""
}
