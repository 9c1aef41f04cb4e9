// Package embeddings is a fake of POST /embeddings as OpenAI documents it and many servers have it: an array of texts in, and
// out come vectors, in any order, each with the index of its text.
package embeddings

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/servicetest"
)

// Dimensions is how many numbers a vector has, unless fewer are asked for.
const Dimensions = 256

// Options say how a server differs from OpenAI's. The zero value is that one.
type Options struct {
	Most    int  // texts in one request; 0: 2048
	Status  int  // of the refusal of more; 0: 400
	Packed  bool // vectors come as base64 of float32, also if nobody asks for it
	Bare    bool // vectors come in order, without an index
	OfError bool // what is refused is refused with status 200
}

// Server is the fake.
type Server struct {
	*servicetest.Server

	o     Options
	mu    sync.Mutex
	dims  int
	texts []string
}

// New starts OpenAI's own service.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	return With(t, Options{}).Server
}

// With starts a server of other options.
func With(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Most == 0 {
		o.Most = 2048
	}
	if o.Status == 0 {
		o.Status = http.StatusBadRequest
	}
	s := &Server{o: o, dims: Dimensions}
	s.Server = servicetest.New(t, s.serve, servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel, servicetest.Slow,
		servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd)
	return s
}

// Resize has vectors have another number of dimensions from now on, as when another model is loaded under the same name.
func (s *Server) Resize(dims int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dims = dims
}

// Texts lists what vectors were made of so far.
func (s *Server) Texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.texts)
}

// request holds the members of a client's request.
type request struct {
	Model      string          `json:"model"`
	Input      json.RawMessage `json:"input"`
	Dimensions *int            `json:"dimensions"`
	Encoding   string          `json:"encoding_format"`
}

// texts are those of the input: one or several.
func (q *request) texts() (all []string, ok bool) {
	var one string
	if json.Unmarshal(q.Input, &one) == nil {
		return []string{one}, one != ""
	}
	err := json.Unmarshal(q.Input, &all)
	return all, err == nil && len(all) > 0 && !slices.Contains(all, "")
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body := s.Take(w, r)
	refuse := func(status int, code, words string) {
		if s.o.OfError {
			status = http.StatusOK
		}
		s.Refuse(w, status, string(servicetest.JSON(map[string]any{"error": map[string]any{"message": words, "type": "invalid_request_error", "param": nil, "code": code}}).Data))
	}
	var q request
	err := json.Unmarshal(body, &q)
	texts, plain := q.texts()
	switch f := s.Fault(); {
	case !strings.HasSuffix(r.URL.Path, "/embeddings"):
		refuse(http.StatusNotFound, "", "Invalid URL ("+r.Method+" "+r.URL.Path+")")
	case r.Method != http.MethodPost:
		refuse(http.StatusMethodNotAllowed, "", "Only POST requests are accepted.")
	case f == servicetest.WrongKey || r.Header.Get("Authorization") != "Bearer "+servicetest.Key:
		refuse(http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided: "+servicetest.Key)
	case f == servicetest.NoMoney:
		refuse(http.StatusTooManyRequests, "insufficient_quota", "You exceeded your current quota, please check your plan and billing details.")
	case f == servicetest.RateLimited:
		refuse(http.StatusTooManyRequests, "rate_limit_exceeded", "Rate limit reached for requests.")
	case err != nil:
		refuse(http.StatusBadRequest, "", "We could not parse the JSON body of your request.")
	case f == servicetest.WrongModel || q.Model == "":
		refuse(http.StatusNotFound, "model_not_found", "The model `"+q.Model+"` does not exist or you do not have access to it.")
	case !plain:
		refuse(http.StatusBadRequest, "", "'$.input' is invalid.")
	case len(texts) > s.o.Most:
		refuse(s.o.Status, "", "Too many inputs in one request.")
	default:
		s.answer(w, r, f, &q, texts)
	}
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, f servicetest.Fault, q *request, texts []string) {
	s.mu.Lock()
	dims := s.dims
	s.texts = append(s.texts, texts...)
	s.mu.Unlock()
	if q.Dimensions != nil {
		dims = *q.Dimensions
	}
	type item struct {
		Object    string `json:"object"`
		Index     *int   `json:"index,omitempty"`
		Embedding any    `json:"embedding"`
	}
	var data []item
	tokens := 0
	for i, text := range texts {
		v := servicetest.Vector(text, dims)
		one := item{"embedding", &i, v}
		if s.o.Packed || q.Encoding == "base64" {
			one.Embedding = packed(v)
		}
		if s.o.Bare {
			one.Index = nil
		}
		data = append(data, one)
		tokens += 1 + len(text)/4
	}
	if !s.o.Bare {
		slices.Reverse(data) // the index says which is whose
	}
	whole := servicetest.JSON(map[string]any{
		"object": "list", "data": data, "model": q.Model, "usage": map[string]any{"prompt_tokens": tokens, "total_tokens": tokens}, "later": nil,
	}).Data
	s.Send(w, r, f, servicetest.Reply{Type: "application/json", Body: whole, Broken: bytes.Replace(whole, []byte(`"embedding":[`), []byte(`"embedding":{`), 1), Filler: []byte("0.25,")})
}

// packed is a vector as base64.
func packed(v []float32) string {
	raw := make([]byte, 0, 4*len(v))
	for _, n := range v {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(n))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
