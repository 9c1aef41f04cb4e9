package generation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// Fault holds the words of a service for a failure, in a body or an event.
type Fault struct {
	Kind  providers.Kind
	Sure  bool // Kind is known, if the status says otherwise
	Code  string
	Text  string
	LogID string
	After time.Duration
}

// Refusal returns the fault as an error.
func (f *Fault) Refusal() *transport.Refusal {
	return &transport.Refusal{Kind: f.Kind, Code: f.Code, Text: f.Text, LogID: f.LogID, After: f.After}
}

// complete adds what a fault says to the refusal of a status.
func (f *Fault) complete(r *transport.Refusal) {
	vague := f.Kind == providers.BadRequest && (r.Status == http.StatusUnauthorized || r.Status == http.StatusPaymentRequired || r.Status == http.StatusTooManyRequests)
	if (f.Sure || r.Status < 300) && !vague { // "invalid_request_error" stands beside any status
		r.Kind = f.Kind
	}
	r.Text, r.Code = cmp.Or(f.Text, r.Text), cmp.Or(r.Code, f.Code)
	r.LogID, r.After = cmp.Or(r.LogID, f.LogID), cmp.Or(r.After, f.After)
}

// faultBody holds the shapes in which services tell of failures.
type faultBody struct {
	Error     json.RawMessage `json:"error"` // an object or a text
	Object    string          `json:"object"`
	Message   string          `json:"message"`
	Msg       string          `json:"msg"`
	Code      json.RawMessage `json:"code"` // a text or a number
	RequestID string          `json:"request_id"`
	Detail    json.RawMessage `json:"detail"`
	BaseResp  struct {
		Code int    `json:"status_code"`
		Text string `json:"status_msg"`
	} `json:"base_resp"`
	Response struct {
		Error struct {
			Code, Message string
		}
	}
	Choices json.RawMessage `json:"choices"`
}

// faultError is the object under error.
type faultError struct {
	Message string          `json:"message"`
	Code    json.RawMessage `json:"code"`
	Type    string          `json:"type"`
	Status  string          `json:"status"`
	Details []struct {
		Reason     string `json:"reason"`
		RetryDelay string `json:"retryDelay"`
	} `json:"details"`
}

// FaultOf finds the failure that a body or an event of JSON tells of; nil if there is
// none. It knows the shapes {"error": {…}}, {"error": "…"}, [{"error": …}], {"code": …,
// "message": …}, {"base_resp": …}, {"Response": {"Error": …}}, {"object": "error"} and
// a bare text.
func FaultOf(raw []byte) *Fault {
	raw = bytes.TrimSpace(raw)
	switch {
	case bytes.HasPrefix(raw, []byte{'"'}):
		var plain string
		if json.Unmarshal(raw, &plain) == nil && plain != "" {
			return &Fault{Text: plain, Kind: providers.Unavailable}
		}
	case bytes.HasPrefix(raw, []byte{'['}):
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
			raw = list[0]
		}
	}
	var body faultBody
	if !mayBeFault(raw) || json.Unmarshal(raw, &body) != nil {
		return nil
	}
	f := body.fault()
	if f == nil {
		return nil
	}
	f.LogID = body.RequestID
	if kind, ok := kindOfCode(f.Code); ok && !f.Sure {
		f.Kind, f.Sure = kind, true
	}
	if strings.Contains(f.Text, "API key not valid") { // Gemini says so with status 400
		f.Kind, f.Sure = providers.Unauthorized, true
	}
	return f
}

// mayBeFault saves most events from being read twice.
func mayBeFault(raw []byte) bool {
	for _, sign := range []string{`"error"`, `"Error"`, `"code"`, `"base_resp"`} {
		if bytes.Contains(raw, []byte(sign)) {
			return true
		}
	}
	return false
}

// fault finds the failure in one of the shapes; nil: there is none.
func (b *faultBody) fault() *Fault {
	words := cmp.Or(b.Message, b.Msg)
	code := plainCode(b.Code)
	switch {
	case len(b.Error) > 0 && string(b.Error) != "null" && string(b.Error) != "false" && string(b.Error) != "{}" && string(b.Error) != `""`:
		return faultIn(b.Error, code)
	case b.BaseResp.Code != 0:
		kind, ok := minimaxKinds()[b.BaseResp.Code]
		return &Fault{Text: b.BaseResp.Text, Code: strconv.Itoa(b.BaseResp.Code), Kind: kind, Sure: ok}
	case b.Response.Error.Code != "":
		return &Fault{Text: b.Response.Error.Message, Code: b.Response.Error.Code, Kind: providers.Unavailable}
	case b.Object == "error":
		return &Fault{Text: words, Code: code, Kind: kindOfNumber(code)}
	case code != "" && code != "0" && code != "200" && words != "" && len(b.Choices) == 0:
		return &Fault{Text: words, Code: code, Kind: kindOfNumber(code)}
	}
	return nil
}

// faultIn reads what stands under error. code is what stands beside it.
func faultIn(raw json.RawMessage, code string) *Fault {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return &Fault{Text: text, Code: code, Kind: kindOfNumber(code)}
	}
	var e faultError
	if json.Unmarshal(raw, &e) != nil {
		return &Fault{Text: string(raw), Code: code}
	}
	own := plainCode(e.Code)
	f := &Fault{Text: e.Message, Code: cmp.Or(own, e.Type, e.Status, code), Kind: kindOfNumber(own)}
	if _, known := kindOfCode(own); !known { // numbers and the like: the words beside it may say more
		for _, other := range []string{e.Status, e.Type} {
			if kind, ok := kindOfCode(other); ok {
				f.Kind, f.Sure = kind, true
			}
		}
	}
	for _, d := range e.Details {
		if after, err := time.ParseDuration(d.RetryDelay); err == nil && after > 0 && after <= time.Hour {
			f.After = after
		}
		if d.Reason == "API_KEY_INVALID" {
			f.Kind, f.Sure = providers.Unauthorized, true
		}
	}
	if f.Text == "" {
		f.Text = string(raw)
	}
	return f
}

// plainCode returns a code that may be a text or a number; "" for none.
func plainCode(raw json.RawMessage) string {
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &text) == nil:
		return text
	}
	return string(raw)
}

// kindOfNumber takes a code that is an HTTP status for one.
func kindOfNumber(code string) providers.Kind {
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
		return transport.KindOf(n)
	}
	return providers.Unavailable
}

// kindsOfCodes lists the codes whose kind is not that of the status they come with. The
// first that a code contains, in lower case, counts.
func kindsOfCodes() []struct {
	part string
	kind providers.Kind
} {
	return []struct {
		part string
		kind providers.Kind
	}{
		{"arrear", providers.NoCredit}, {"overdue", providers.NoCredit}, {"insufficient_quota", providers.NoCredit},
		{"insufficient_balance", providers.NoCredit}, {"insufficientbalance", providers.NoCredit}, {"billing", providers.NoCredit},
		{"payment", providers.NoCredit}, {"credit", providers.NoCredit},
		{"insufficient_system_resource", providers.Unavailable}, {"overloaded", providers.Unavailable}, {"unavailable", providers.Unavailable},
		{"internal", providers.Unavailable}, {"api_error", providers.Unavailable}, {"timeout", providers.Unavailable}, {"server_error", providers.Unavailable},
		{"tool_use_failed", providers.Unavailable}, // Groq: the model has written a broken call, and may write a better one
		{"rate_limit", providers.RateLimited}, {"ratelimit", providers.RateLimited}, {"ratequota", providers.RateLimited},
		{"throttling", providers.RateLimited}, {"limit_requests", providers.RateLimited}, {"limit_burst", providers.RateLimited},
		{"too_many_requests", providers.RateLimited}, {"resource_exhausted", providers.RateLimited}, {"quotaexceeded", providers.RateLimited},
		{"requestlimitexceeded", providers.RateLimited},
		{"api_key", providers.Unauthorized}, {"apikey", providers.Unauthorized}, {"authentication", providers.Unauthorized},
		{"unauthenticated", providers.Unauthorized}, {"authfailure", providers.Unauthorized},
		{"modelnotopen", providers.BadRequest}, {"model_not_found", providers.BadRequest}, {"notfound", providers.BadRequest}, {"not_found", providers.BadRequest},
		{"unsupported_country", providers.BadRequest}, {"data_inspection", providers.BadRequest}, {"datainspection", providers.BadRequest},
		{"sensitive", providers.BadRequest}, {"content_filter", providers.BadRequest}, {"content_policy", providers.BadRequest},
		{"context_length", providers.BadRequest}, {"exceed_context", providers.BadRequest}, {"too_large", providers.BadRequest},
		{"invalid_request", providers.BadRequest}, {"invalid_argument", providers.BadRequest}, {"invalidparameter", providers.BadRequest},
		{"invalid_parameter", providers.BadRequest}, {"failed_precondition", providers.BadRequest},
	}
}

// kindOfCode returns the kind of a code in words, or of one of the numbers of Zhipu's
// models, which others do not use.
func kindOfCode(code string) (providers.Kind, bool) {
	if len(code) == 4 && code[0] == '1' {
		if kind, ok := zhipuKinds()[code]; ok {
			return kind, true
		}
	}
	code = strings.ToLower(code)
	for _, known := range kindsOfCodes() {
		if strings.Contains(code, known.part) {
			return known.kind, true
		}
	}
	return providers.Unavailable, false
}

// KindOfCode returns the kind of failure that a vendor's code in words stands for;
// [providers.Unavailable] if it tells nothing.
func KindOfCode(code string) providers.Kind {
	kind, _ := kindOfCode(code)
	return kind
}

func zhipuKinds() map[string]providers.Kind {
	return map[string]providers.Kind{
		"1000": providers.Unauthorized, "1001": providers.Unauthorized, "1002": providers.Unauthorized, "1003": providers.Unauthorized, "1004": providers.Unauthorized,
		"1113": providers.NoCredit, "1210": providers.BadRequest, "1211": providers.BadRequest, "1214": providers.BadRequest,
		"1261": providers.BadRequest, "1301": providers.BadRequest,
		"1302": providers.RateLimited, "1303": providers.RateLimited, "1305": providers.RateLimited,
	}
}

func minimaxKinds() map[int]providers.Kind {
	return map[int]providers.Kind{
		1002: providers.RateLimited, 1004: providers.Unauthorized, 1008: providers.NoCredit, 1026: providers.BadRequest, 1027: providers.BadRequest,
		1039: providers.BadRequest, 2013: providers.BadRequest, 2049: providers.Unauthorized,
	}
}
