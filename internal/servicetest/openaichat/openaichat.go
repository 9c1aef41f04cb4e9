// Package openaichat is a fake of chat completions as OpenAI and those who follow it serve
// them, with what each vendor does in its own way.
package openaichat

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// Vendor is one whose ways the server has.
type Vendor int

// The vendors.
const (
	OpenAI     Vendor = iota
	DeepSeek          // wants its thoughts back where there are tools
	Mistral           // takes ids of nine letters only, and gives content as arrays
	Qwen              // gives empty ids in later pieces of a call
	GLM               // gives calls in one piece and finishes for its own reasons; its codes are digits
	MiniMax           // fails with status 200
	Groq              // fails for calls that its models broke, and takes no fields that it does not know
	OpenRouter        // sends comments while it waits, and fails amid an answer
	Gemini            // errors are arrays, signatures of thoughts must come back
	Kimi              // fixes the temperature and wants its thoughts back
)

// fake is the server.
type fake struct {
	*servicetest.Server

	vendor Vendor
	fails  bool
}

// New starts a server with the ways of OpenAI.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	return As(t, OpenAI)
}

// As starts a server with the ways of a vendor.
func As(t testing.TB, v Vendor) *servicetest.Server {
	t.Helper()
	return start(t, &fake{vendor: v})
}

// Failing starts a server whose answers fail with status 200 or amid them, each in the way
// of its vendor: [Groq] with a call that is broken, [GLM] and [DeepSeek] with a reason to
// finish, [Qwen] for what it may not say, the others with an error.
func Failing(t testing.TB, v Vendor) *servicetest.Server {
	t.Helper()
	return start(t, &fake{vendor: v, fails: true})
}

func start(t testing.TB, f *fake) *servicetest.Server {
	t.Helper()
	f.Server = servicetest.New(t, f.serve, servicetest.ThinkFaults()...)
	return f.Server
}

type object = map[string]any

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	body := f.Take(w, r)
	if !strings.HasSuffix(r.URL.Path, "/chat/completions") || r.Method != http.MethodPost {
		f.refuse(w, problem{http.StatusNotFound, "", "not_found", "Invalid URL"})
		return
	}
	if p := f.account(r); p != nil {
		f.refuse(w, *p)
		return
	}
	var q request
	if p := q.read(body, f.vendor); p != nil {
		f.refuse(w, *p)
		return
	}
	f.answer(w, r, &q)
}

// problem is a refusal: its code is the vendor's, its kind that of OpenAI.
type problem struct {
	status     int
	code, kind string
	words      string
}

// account says what is wrong with the key, the money, the pace or the model.
func (f *fake) account(r *http.Request) *problem {
	switch fault := f.Fault(); {
	case fault == servicetest.WrongKey || r.Header.Get("Authorization") != "Bearer "+servicetest.Key:
		return &problem{http.StatusUnauthorized, pick(f.vendor, GLM, "1000", MiniMax, "1004"), "invalid_api_key", "Incorrect API key provided."}
	case fault == servicetest.NoMoney && f.vendor == Qwen:
		return &problem{http.StatusBadRequest, "Arrearage", "Arrearage", "Access denied, please make sure your account is in good standing."}
	case fault == servicetest.NoMoney && (f.vendor == DeepSeek || f.vendor == OpenRouter):
		return &problem{http.StatusPaymentRequired, "", "invalid_request_error", "Insufficient Balance"}
	case fault == servicetest.NoMoney:
		return &problem{http.StatusTooManyRequests, pick(f.vendor, GLM, "1113", MiniMax, "1008"), "insufficient_quota", "You exceeded your current quota, please check your plan and billing details: insufficient balance."}
	case fault == servicetest.RateLimited:
		return &problem{http.StatusTooManyRequests, pick(f.vendor, GLM, "1302", MiniMax, "1002"), "rate_limit_exceeded", "Rate limit reached for requests."}
	case fault == servicetest.WrongModel:
		return &problem{http.StatusNotFound, pick(f.vendor, GLM, "1211", MiniMax, "2013"), "model_not_found", "The model `x` does not exist or you do not have access to it."}
	}
	return nil
}

// pick returns the word of a vendor among pairs of vendors and words, or "".
func pick(v Vendor, pairs ...any) string {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == v {
			word, _ := pairs[i+1].(string)
			return word
		}
	}
	return ""
}

// refuse answers with an error in the way of the vendor.
func (f *fake) refuse(w http.ResponseWriter, p problem) {
	code := p.code
	if code == "" {
		code = p.kind
	}
	var v any = object{"error": object{"message": p.words, "type": "invalid_request_error", "param": nil, "code": code}}
	switch {
	case f.vendor == MiniMax && p.code != "":
		f.Refuse(w, http.StatusOK, string(servicetest.JSON(object{"id": "x", "choices": nil, "base_resp": object{"status_code": json.RawMessage(p.code), "status_msg": p.words}}).Data))
		return
	case f.vendor == Gemini:
		v = []any{object{"error": object{"code": p.status, "message": p.words, "status": "INVALID_ARGUMENT"}}}
	case f.vendor == Mistral && p.status == http.StatusUnprocessableEntity:
		v = object{"detail": []any{object{"type": "extra_forbidden", "msg": p.words, "loc": []string{"body"}}}}
	case f.vendor == OpenRouter:
		v = object{"error": object{"code": p.status, "message": p.words}}
	}
	f.Refuse(w, p.status, string(servicetest.JSON(v).Data), "Retry-After", "0.3")
}

// answer streams what the model says.
func (f *fake) answer(w http.ResponseWriter, r *http.Request, q *request) {
	words, told := q.newest()
	a := &answer{vendor: f.vendor, model: q.Model}
	var tools []servicetest.Tool
	for _, t := range q.Tools {
		tools = append(tools, servicetest.Tool{Name: t.Function.Name, Schema: t.Function.Parameters})
	}
	if tools = servicetest.Asked(words, tools); told || strings.Contains(string(q.Choice), "none") {
		tools = nil
	}
	a.begin(q)
	reason := "stop"
	if len(tools) > 0 {
		a.calls(tools)
		if f.vendor != Gemini {
			reason = "tool_calls"
		}
	} else {
		a.text(servicetest.Answer(words))
	}
	if f.fails {
		if p := a.fail(); p != nil {
			f.refuse(w, *p)
			return
		}
	} else {
		a.end(reason, q.Options.Usage)
	}
	list := a.list
	if fault := f.Fault(); fault == servicetest.Cut || fault == servicetest.Closed || fault == servicetest.Huge {
		n := min(4, len(list)-2) // so that there was text
		var first []byte
		for _, e := range list[:n] {
			first = append(first, e...)
		}
		list = append([][]byte{first}, list[n:]...)
	}
	f.Stream(w, r, f.Fault(), servicetest.Events{List: list, Pause: time.Millisecond, Broken: []byte("data: {\"choices\":[{\"delta\n\n"),
		Filler: a.chunk(object{"content": servicetest.More}, nil, nil)})
}
