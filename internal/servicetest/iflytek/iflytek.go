// Package iflytek is a fake of the speech services of iFlytek: recognition by IAT and by
// Spark IAT, and the voices of the online and of the super-humanoid service.
package iflytek

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// Idle is how long the service waits for a message: 10 to 15 s at the real one.
const Idle = time.Second

const (
	skew = 5 * time.Minute // that a signature may be off
	sid  = "iat000e0001@dx0123456789abcdef"
)

// fake is the service.
type fake struct{ *servicetest.Server }

// New starts the service. It takes the app [servicetest.ID] with [servicetest.Key],
// signed with [servicetest.Secret].
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{}
	mux := http.NewServeMux()
	mux.HandleFunc("/v2/iat", f.signed(func(l *servicetest.Line) { hear(l, classic{}) }))
	mux.HandleFunc("/v1", f.signed(func(l *servicetest.Line) { hear(l, spark{}) }))
	mux.HandleFunc("/v2/tts", f.signed(speakOnline))
	mux.HandleFunc("/v1/private/mcd9m97e6", f.signed(speakHumanoid))
	f.Server = servicetest.New(t, mux.ServeHTTP, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited,
		servicetest.WrongModel, servicetest.WrongVoice, servicetest.ClockAhead, servicetest.Slow, servicetest.Silent,
		servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd, servicetest.Ends,
		servicetest.Parts, servicetest.Late)
	return f.Server
}

// The ways in which a signature is refused.
const (
	noSignature    = "Unauthorized"
	unknownKey     = "HMAC signature cannot be verified"
	wrongSignature = "HMAC signature does not match"
	wrongDate      = "HMAC signature cannot be verified, a valid date or x-date header is required for HMAC Authentication"
)

// signed lets those in whose address is signed.
func (f *fake) signed(next func(*servicetest.Line)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		status, words := f.refusal(r)
		if status != 0 {
			f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone()})
			w.Header().Set("Date", f.Now().UTC().Format(http.TimeFormat))
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write(servicetest.JSON(map[string]string{"message": words}).Data)
			return
		}
		if l, ok := f.Line(w, r, nil); ok {
			defer l.Close()
			next(l)
		}
	}
}

// field matches the fields of an authorization.
var field = regexp.MustCompile(`(\w+)="([^"]*)"`)

// refusal says why a request is not let in, or 0.
func (f *fake) refusal(r *http.Request) (status int, words string) {
	q := r.URL.Query()
	if q.Get("authorization") == "" {
		return http.StatusUnauthorized, noSignature
	}
	date, err := http.ParseTime(q.Get("date"))
	if off := f.Now().Sub(date); err != nil || off > skew || off < -skew {
		return http.StatusForbidden, wrongDate
	}
	text, err := base64.StdEncoding.DecodeString(q.Get("authorization"))
	fields := map[string]string{}
	for _, m := range field.FindAllStringSubmatch(string(text), -1) {
		fields[m[1]] = m[2]
	}
	if err != nil || fields["api_key"] != servicetest.Key || fields["algorithm"] != "hmac-sha256" ||
		fields["headers"] != "host date request-line" || f.Fault() == servicetest.WrongKey {
		return http.StatusUnauthorized, unknownKey
	}
	host := q.Get("host")
	if host != r.Host && host != hostname(r.Host) || fields["signature"] != sign(host, q.Get("date"), r.URL.Path) {
		return http.StatusUnauthorized, wrongSignature
	}
	return 0, ""
}

// sign signs a request as the vendor does.
func sign(host, date, path string) string {
	h := hmac.New(sha256.New, []byte(servicetest.Secret))
	_, _ = h.Write([]byte("host: " + host + "\ndate: " + date + "\nGET " + path + " HTTP/1.1"))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

func hostname(host string) string {
	u := url.URL{Host: host}
	return u.Hostname()
}

// failure is a code of the service with its words.
type failure struct {
	code  int
	words string
}

// The failures.
var (
	unlicensed  = failure{11200, "auth no license"}
	exhausted   = failure{10010, "engine license exhausted"}
	missing     = failure{10006, "missing parameter"}
	illegal     = failure{10163, "parameter validate error"}
	noJSON      = failure{10160, "parse request json error"}
	noBase64    = failure{10161, "parse base64 string error"}
	badHandle   = failure{10165, "invalid handle"}
	timedOut    = failure{10200, "read data timeout"}
	tooLong     = failure{10114, "session timeout"}
	tooMuchText = failure{10109, "invalid text length"}
	strangeApp  = failure{10313, "appid and apikey do not match"}
	quiet       = failure{26005, "no input for too long"}
)

// admit says why an app may not do what it asks, if so.
func admit(app string, fault servicetest.Fault) *failure {
	switch {
	case app == "":
		return &missing
	case app != servicetest.ID:
		return &strangeApp
	case fault == servicetest.NoMoney:
		return &unlicensed
	case fault == servicetest.RateLimited:
		return &exhausted
	case fault == servicetest.WrongModel:
		return &illegal
	}
	return nil
}

// next takes a JSON message and reads it into v.
func next(l *servicetest.Line, v any, idle failure) (bad *failure, ok bool) {
	m, err := l.Next(Idle)
	switch {
	case errors.Is(err, servicetest.ErrIdle):
		return &idle, true
	case err != nil:
		return nil, false
	case m.Type != websocket.TextMessage || json.Unmarshal(m.Data, v) != nil:
		return &noJSON, true
	}
	return nil, true
}

// broken is no message of the service.
var broken = servicetest.Text(`{"code":0,"header":{"code":0,"status":1},"data":{"status":1,"audio":"`)

// words parts a text into the words of a result.
var words = regexp.MustCompile(` ?[A-Za-z]+|.`)

// utf8Coded says whether a coding of text is UTF-8, however it is written.
func utf8Coded(name string) bool { return strings.EqualFold(strings.ReplaceAll(name, "-", ""), "utf8") }
