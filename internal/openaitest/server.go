// Package openaitest is a server that speaks the OpenAI wire format on a real socket of 127.0.0.1, for tests,
// benchmarks and demonstrations. What it answers is scripted; what it was asked, and whether the client waited for
// the end, is recorded. It is written from the protocol's public description.
//
// All methods of [Server] may be called at any time by any goroutine.
package openaitest

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

const maxRecorded = 4096 // requests kept if nothing else is said; older ones are forgotten

// Script answers a request. It runs on the request's own goroutine.
type Script func(*Request) Reply

// Server is a fake cloud with scripted answers. Make it with [New] and end it with [Server.Close].
type Server struct {
	http   *http.Server
	addr   string
	served sync.WaitGroup

	mu       sync.Mutex
	keep     int // requests kept
	scripts  map[Role]Script
	requests []*Request
	total    int
	arrived  chan struct{} // closed and renewed at every request
}

// Role is one of the endpoints.
type Role string

// The endpoints.
const (
	Chat       Role = "chat"
	Transcribe Role = "transcribe"
	Speak      Role = "speak"
	Embed      Role = "embed"
	Models     Role = "models"
	Tags       Role = "tags" // Ollama's own list of models
)

// New starts a server on a free port of 127.0.0.1.
func New() (*Server, error) { return Listen("") }

// Listen starts a server on an address; empty: a free port of 127.0.0.1. Without a script it answers every chat with
// a short sentence, every utterance with "hello" and every sentence with a tone.
func Listen(address string) (*Server, error) {
	if address == "" {
		address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", address) //nolint:noctx // it returns at once
	if err != nil {
		return nil, fmt.Errorf("start fake server: %w", err)
	}
	s := &Server{
		addr:    listener.Addr().String(),
		arrived: make(chan struct{}), keep: maxRecorded,
		scripts: map[Role]Script{
			Chat:       func(*Request) Reply { return Text("Hello. ", "How are you?") },
			Transcribe: func(*Request) Reply { return JSON(http.StatusOK, `{"text":"hello"}`) },
			Speak:      defaultSpeech,
			Embed:      Vectors,
			Models:     func(*Request) Reply { return JSON(http.StatusOK, `{"object":"list","data":[{"id":"fake"}]}`) },
			Tags:       func(*Request) Reply { return JSON(http.StatusNotFound, `{"error":"not found"}`) },
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.handle(Chat))
	mux.HandleFunc("POST /v1/audio/transcriptions", s.handle(Transcribe))
	mux.HandleFunc("POST /v1/audio/speech", s.handle(Speak))
	mux.HandleFunc("POST /v1/embeddings", s.handle(Embed))
	mux.HandleFunc("GET /v1/models", s.handle(Models))
	mux.HandleFunc("GET /api/tags", s.handle(Tags))
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	s.served.Go(func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(fmt.Sprintf("fake server: %v", err)) // only a broken test machine gets here
		}
	})
	return s, nil
}

// URL returns the base URL with its version part.
func (s *Server) URL() string { return s.Root() + "/v1" }

// Root returns the URL without a path.
func (s *Server) Root() string { return "http://" + s.addr }

// Close cuts every connection and waits for the end of the server.
func (s *Server) Close() error {
	err := s.http.Close()
	s.served.Wait()
	return err
}

// Handle sets what answers the requests of a role from now on.
func (s *Server) Handle(role Role, script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[role] = script
}

// Reply sets the answers to the next requests of a role, in order. The last one is repeated for ever.
func (s *Server) Reply(role Role, replies ...Reply) {
	var mu sync.Mutex
	s.Handle(role, func(*Request) Reply {
		mu.Lock()
		defer mu.Unlock()
		next := replies[0]
		if len(replies) > 1 {
			replies = replies[1:]
		}
		return next
	})
}

// Requests returns all requests so far, of one role or of all ("").
func (s *Server) Requests(role Role) []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(r *Request) bool { return role != "" && r.Role != role })
}

// Await waits until there are n requests of a role and gives the last of them.
func (s *Server) Await(ctx context.Context, role Role, n int) (*Request, error) {
	for {
		s.mu.Lock()
		arrived := s.arrived
		s.mu.Unlock()
		if got := s.Requests(role); len(got) >= n {
			return got[n-1], nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for %s request %d: %w", role, n, ctx.Err())
		}
	}
}

// record keeps a request and wakes those that wait for it.
func (s *Server) record(r *Request) Script {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	s.requests = append(s.requests, r)
	if len(s.requests) > s.keep {
		s.requests = slices.Delete(s.requests, 0, len(s.requests)-s.keep/2)
	}
	close(s.arrived)
	s.arrived = make(chan struct{})
	return s.scripts[r.Role]
}

// Keep forgets all requests and limits those that are remembered from now on (4096
// if it is not called). A load of long uploads would fill the memory.
func (s *Server) Keep(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep, s.requests = max(n, 0), nil
}

// Total returns the number of requests so far, with those that are forgotten.
func (s *Server) Total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total
}

// Reply is one scripted answer. Its zero value is an empty reply of status 200.
type Reply struct {
	Status int               // 200 if 0
	Header map[string]string // Content-Type and the like
	Delay  time.Duration     // before the status is sent
	Hang   bool              // never even a status, until the client leaves
	Pieces []Piece
}

// Piece is a part of the body, sent at once when its delay is over.
type Piece struct {
	Delay time.Duration
	Data  string
	Hang  bool // after Data, nothing until the client leaves
	Cut   bool // after Data, break the connection
}

// After gives the same reply, its status later.
func (r Reply) After(delay time.Duration) Reply {
	r.Delay = delay
	return r
}

// Then gives the same reply with more pieces at its end.
func (r Reply) Then(pieces ...Piece) Reply {
	r.Pieces = append(slices.Clip(r.Pieces), pieces...)
	return r
}

// write sends the reply, and calls begins when its first piece goes out. It is
// false when the client has left before its end.
func (r Reply) write(ctx context.Context, w http.ResponseWriter, begins func()) bool {
	if r.Hang {
		<-ctx.Done()
	}
	if !wait(ctx, r.Delay) {
		return false
	}
	for key, value := range r.Header {
		w.Header().Set(key, value)
	}
	w.WriteHeader(max(r.Status, http.StatusOK))
	flusher := http.NewResponseController(w)
	for _, p := range r.Pieces {
		if !wait(ctx, p.Delay) {
			return false
		}
		begins()
		_, err := io.WriteString(w, p.Data)
		if err := errors.Join(err, flusher.Flush()); err != nil {
			return false
		}
		if p.Hang {
			<-ctx.Done()
			return false
		}
		if p.Cut {
			panic(http.ErrAbortHandler) // the HTTP server's own word for it
		}
	}
	return ctx.Err() == nil
}

// wait is false when ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// JSON makes a whole JSON reply.
func JSON(status int, body string) Reply {
	return Reply{
		Status: status, Header: map[string]string{"Content-Type": "application/json"},
		Pieces: []Piece{{Data: body}},
	}
}

// Failure makes an error reply as the format describes it.
func Failure(status int, message string) Reply {
	body, err := json.Marshal(map[string]any{"error": map[string]any{"message": message, "type": "error", "code": nil}})
	if err != nil {
		panic(err) // a string always has a JSON form
	}
	return JSON(status, string(body))
}

// Events makes an event stream of raw data lines, without its end mark.
func Events(data ...string) Reply {
	r := Reply{Header: map[string]string{"Content-Type": "text/event-stream"}}
	for _, d := range data {
		r.Pieces = append(r.Pieces, Event(d))
	}
	return r
}

// Event makes one event of a stream.
func Event(data string) Piece { return Piece{Data: "data: " + data + "\n\n"} }

// Done makes the piece that ends a stream.
func Done() Piece { return Event("[DONE]") }

// Text makes a chat answer in these pieces.
func Text(pieces ...string) Reply {
	var data []string
	for _, text := range pieces {
		data = append(data, chunk(map[string]any{"content": text}, nil))
	}
	return Events(append(data, Finish("stop"))...).Then(Done())
}

// TextEvery is [Text] with a pause before each piece.
func TextEvery(pause time.Duration, pieces ...string) Reply {
	r := Text(pieces...)
	for i := range pieces {
		r.Pieces[i].Delay = pause
	}
	return r
}

// Call is a tool call of a chat answer.
type Call struct{ ID, Name, Arguments string }

// Calls makes a chat answer that calls these tools, each in three pieces: its head, then its arguments in two halves.
func Calls(calls ...Call) Reply {
	var data []string
	for i, c := range calls {
		head := map[string]any{"index": i, "id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}}
		data = append(data, chunk(map[string]any{"tool_calls": []any{head}}, nil))
		middle := len(c.Arguments) / 2
		for _, part := range []string{c.Arguments[:middle], c.Arguments[middle:]} {
			piece := map[string]any{"index": i, "function": map[string]any{"arguments": part}}
			data = append(data, chunk(map[string]any{"tool_calls": []any{piece}}, nil))
		}
	}
	return Events(append(data, Finish("tool_calls"))...).Then(Done())
}

// Finish returns the data of the chunk that ends an answer.
func Finish(reason string) string { return chunk(map[string]any{}, reason) }

// Delta returns the data of a chunk whose delta is this JSON text.
func Delta(delta string) string { return chunk(json.RawMessage(delta), nil) }

func chunk(delta, finish any) string {
	data, err := json.Marshal(map[string]any{
		"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake",
		"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}},
	})
	if err != nil {
		panic(err) // a script whose delta is no JSON text
	}
	return string(data)
}

// Sound makes a speech reply of this media type, in pieces of size bytes.
func Sound(media string, data []byte, size int) Reply {
	r := Reply{Header: map[string]string{"Content-Type": media}}
	for part := range slices.Chunk(data, size) {
		r.Pieces = append(r.Pieces, Piece{Data: string(part)})
	}
	return r
}

// Tone returns d of a sine as 16 bit little endian mono PCM.
func Tone(rate int, hz float64, d time.Duration) []byte {
	n := int(int64(d) * int64(rate) / int64(time.Second))
	pcm := make([]byte, 0, 2*n)
	for i := range n {
		pcm = binary.LittleEndian.AppendUint16(pcm, uint16(int16(12000*math.Sin(2*math.Pi*hz*float64(i)/float64(rate)))))
	}
	return pcm
}

// defaultSpeech is a tone of 24 kHz PCM, 60 ms for each letter.
func defaultSpeech(r *Request) Reply {
	input, _ := r.JSON()["input"].(string)
	letters := utf8.RuneCountInString(strings.TrimSpace(input))
	return Sound("audio/pcm", Tone(24000, 440, time.Duration(letters)*60*time.Millisecond), 4800)
}
