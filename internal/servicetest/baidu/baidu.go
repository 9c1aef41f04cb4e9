// Package baidu is a fake of the recognition of short speech of Baidu, with its tokens.
package baidu

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"testing"

	"xiaozhi/internal/servicetest"
)

// The numbers of models: Mandarin and English with the plain address, Mandarin with the fast one.
const (
	mandarin = 1537
	english  = 1737
	fast     = 80001
)

const longest = 60 * 32000 // bytes of sound

// The codes of errors.
const (
	badParameter = 3300
	badSound     = 3301
	badToken     = 3302
	tooMany      = 3304
	overQuota    = 3305
	tooLong      = 3308
	badFormat    = 3312
	oldToken     = 111
	forbidden    = 6
)

// Expire is the query of an address that makes all tokens expire: GET URL()+Expire.
const Expire = "/expire"

// fake is the service.
type fake struct {
	*servicetest.Server

	mu     sync.Mutex
	tokens map[string]bool // false: it has expired
}

// New starts the service. Its key is [servicetest.Key] with [servicetest.Secret], which
// give a token.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{tokens: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/2.0/token", f.token)
	mux.HandleFunc("POST /server_api", func(w http.ResponseWriter, r *http.Request) { f.recognise(w, r, mandarin, english) })
	mux.HandleFunc("POST /pro_api", func(w http.ResponseWriter, r *http.Request) { f.recognise(w, r, fast) })
	mux.HandleFunc("GET "+Expire, func(http.ResponseWriter, *http.Request) { f.expire() })
	f.Server = servicetest.New(t, mux.ServeHTTP, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited,
		servicetest.WrongModel, servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed,
		servicetest.Broken, servicetest.Huge, servicetest.Odd, servicetest.Late)
	return f.Server
}

// answer answers in JSON.
func (f *fake) answer(w http.ResponseWriter, r *http.Request, fault servicetest.Fault, status int, v any) {
	f.Send(w, r, fault, servicetest.Reply{Status: status, Type: "application/json", Body: servicetest.JSON(v).Data, Broken: []byte(`{"err_no":0,"result":[`)})
}

// token gives a token for a key and a secret, of the form or of the query.
func (f *fake) token(w http.ResponseWriter, r *http.Request) {
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone()})
	get, fault := r.FormValue, f.Fault()
	switch {
	case get("grant_type") != "client_credentials":
		f.answer(w, r, servicetest.None, http.StatusBadRequest, map[string]string{"error": "unsupported_grant_type", "error_description": "The authorization grant type is not supported"})
	case get("client_id") != servicetest.Key || fault == servicetest.WrongKey:
		f.answer(w, r, servicetest.None, http.StatusUnauthorized, map[string]string{"error": "invalid_client", "error_description": "unknown client id"})
	case get("client_secret") != servicetest.Secret:
		f.answer(w, r, servicetest.None, http.StatusUnauthorized, map[string]string{"error": "invalid_client", "error_description": "Client authentication failed"})
	default:
		if fault != servicetest.Silent && fault != servicetest.Slow {
			fault = servicetest.None // the rest is of the recognition
		}
		f.answer(w, r, fault, http.StatusOK, map[string]any{"access_token": f.fresh(), "expires_in": 2592000, "scope": "audio_voice_assistant_get brain_all_scope"})
	}
}

// fresh makes a token.
func (f *fake) fresh() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	token := fmt.Sprintf("24.0123456789abcdef.%d", len(f.tokens))
	f.tokens[token] = true
	return token
}

func (f *fake) expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for token := range f.tokens {
		f.tokens[token] = false
	}
}

// known says whether a token was given, and whether it is still good.
func (f *fake) known(token string) (good, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	good, known = f.tokens[token]
	return good, known
}

// utterance is a request.
type utterance struct {
	Format  string
	Rate    int
	DevPID  int `json:"dev_pid"`
	CUID    string
	Channel int
	Token   string
	Speech  string
	Len     int

	pcm []byte
}

// read reads a request of either form. It returns the code of what is wrong with it.
func read(r *http.Request, body []byte) (u utterance, code int, words string) {
	kind, parameters, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind == "application/json" {
		if json.Unmarshal(body, &u) != nil || u.Channel != 1 {
			return u, badParameter, "json param error"
		}
		pcm, err := base64.StdEncoding.DecodeString(u.Speech)
		if err != nil || len(pcm) != u.Len {
			return u, badParameter, "param len error"
		}
		u.pcm = pcm
		return u, 0, ""
	}
	q := r.URL.Query()
	u = utterance{CUID: q.Get("cuid"), Token: q.Get("token"), pcm: body}
	if len(kind) > 6 && kind[:6] == "audio/" {
		u.Format = kind[6:]
	}
	u.Rate, _ = strconv.Atoi(parameters["rate"])
	u.DevPID, _ = strconv.Atoi(q.Get("dev_pid"))
	return u, 0, ""
}

// refusal says why a request fails, or 0.
func (f *fake) refusal(u utterance, fault servicetest.Fault, models []int) (code int, words string) {
	good, known := f.known(u.Token)
	model := u.DevPID == 0
	for _, m := range models {
		model = model || u.DevPID == m
	}
	switch {
	case !known:
		return badToken, "authentication failed."
	case !good:
		return oldToken, "Access token expired"
	case fault == servicetest.NoMoney:
		return overQuota, "open api characters limit reached"
	case fault == servicetest.RateLimited:
		return tooMany, "request qps exceed limit"
	case fault == servicetest.WrongModel:
		return forbidden, "No permission to access data"
	case u.CUID == "" || !model:
		return badParameter, "param error"
	case u.Format != "pcm" && u.Format != "wav" || u.Rate != 16000:
		return badFormat, "audio format error"
	case len(u.pcm) > longest:
		return tooLong, "speech too long"
	}
	return 0, ""
}

// recognise recognises one utterance.
func (f *fake) recognise(w http.ResponseWriter, r *http.Request, models ...int) {
	body, _ := io.ReadAll(r.Body)
	fault := f.Fault()
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body})
	if fault == servicetest.Late {
		fault = servicetest.Silent
	}
	u, code, words := read(r, body)
	if code == 0 {
		code, words = f.refusal(u, fault, models)
	}
	pcm := u.pcm
	if u.Format == "wav" && len(pcm) > 44 {
		pcm = pcm[44:]
	}
	if code == 0 && !servicetest.Loud(pcm) {
		code, words = badSound, "speech quality error."
	}
	answer := map[string]any{"err_no": code, "err_msg": words, "sn": "481D633F-73BA-726F-49EF-8659ACCC2F3D", "corpus_no": "6433214037620997779"}
	if code == 0 {
		answer["err_msg"], answer["result"] = "success.", []string{servicetest.Words}
	}
	if fault == servicetest.Odd {
		answer["unheard_of"] = []int{1}
	}
	f.answer(w, r, fault, http.StatusOK, answer) // failures too
}
