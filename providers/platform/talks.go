package platform

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"xiaozhi/internal/lru"
	"xiaozhi/providers"
)

// maxTalks bounds the dialogues that are remembered: the one that was held least recently
// is forgotten.
const maxTalks = 4096

// talk holds the state of a dialogue.
type talk struct {
	id       string // as the service calls it
	waits    string // the answer that waits for what tools give; "" if none does
	last     time.Time
	stopping <-chan struct{} // closed when the answer before was stopped; nil: it came to its end
}

// talks remembers the dialogues of devices and agents. All methods may be called at the
// same time.
type talks struct {
	idle  time.Duration
	known *lru.Cache[string, talk]
}

func newTalks(idle time.Duration) *talks {
	return &talks{idle: idle, known: lru.New[string, talk](maxTalks, 0)}
}

// keyOf names the dialogue of a request; "" if nobody is named, whose words are a dialogue
// each.
func keyOf(req providers.LLMRequest) string {
	if req.DeviceID == "" && req.Conversation == "" {
		return ""
	}
	return req.DeviceID + "\x00" + req.AgentID + "\x00" + req.Conversation
}

// hashed makes a name that tells nothing of what it stands for.
func hashed(prefix, what string) string {
	sum := sha256.Sum256([]byte(what))
	return prefix + hex.EncodeToString(sum[:10])
}

// turn begins a turn of a dialogue.
func (s *talks) turn(key string, req providers.LLMRequest) *Turn {
	t := &Turn{LLMRequest: req, User: hashed("xiaozhi-", req.DeviceID)}
	if key == "" {
		t.Own = hashed("xiaozhi-", time.Now().String())
		return t
	}
	t.Own = hashed("xiaozhi-", key)
	if known, ok := s.known.Get(key); ok && time.Since(known.last) < s.idle {
		t.Talk = known.id
	}
	return t
}

// keep remembers what the service calls the dialogue of a turn, and whether it waits.
func (s *talks) keep(key string, t *Turn) {
	if key == "" || t.Talk == "" {
		return
	}
	s.known.Update(key, func(old talk) (talk, int) {
		old.id, old.last, old.waits = t.Talk, time.Now(), ""
		if t.Waits {
			old.waits = t.Run
		}
		return old, 1
	})
}

// waiting returns the turn of a dialogue that waits for what tools give; it is one that
// cannot be stopped if none does.
func (s *talks) waiting(key string, req providers.LLMRequest) *Turn {
	t := s.turn(key, req)
	known, _ := s.known.Peek(key)
	t.Run = known.waits
	return t
}

// forget drops a dialogue.
func (s *talks) forget(key string) { s.known.Remove(key) }

// stopping notes that the answer of a dialogue is being stopped, until the function that
// it returns is called.
func (s *talks) stopping(key string) func() {
	stopped := make(chan struct{})
	if key != "" {
		s.known.Update(key, func(old talk) (talk, int) {
			old.stopping = stopped
			return old, 1
		})
	}
	return sync.OnceFunc(func() { close(stopped) })
}

// settle waits until the answer before was stopped, but not for long.
func (s *talks) settle(ctx context.Context, key string) error {
	known, _ := s.known.Peek(key)
	if known.stopping == nil {
		return ctx.Err()
	}
	timer := time.NewTimer(stopPause)
	defer timer.Stop()
	select {
	case <-known.stopping:
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}
