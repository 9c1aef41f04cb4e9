// Package openaitest is a server that speaks the OpenAI wire format on a real socket of 127.0.0.1, for tests,
// benchmarks and demonstrations. What it answers is scripted; what it was asked, and whether the client waited for
// the end, is recorded. It is written from the protocol's public description.
//
// All methods of [Server] may be called at any time by any goroutine.
package openaitest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
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
			Models:     func(*Request) Reply { return JSON(http.StatusOK, `{"object":"list","data":[{"id":"fake"}]}`) },
			Tags:       func(*Request) Reply { return JSON(http.StatusNotFound, `{"error":"not found"}`) },
		},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.handle(Chat))
	mux.HandleFunc("POST /v1/audio/transcriptions", s.handle(Transcribe))
	mux.HandleFunc("POST /v1/audio/speech", s.handle(Speak))
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
