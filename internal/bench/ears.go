package bench

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// ears is a recogniser that streams, by the protocol of a FunASR runtime (2pass): words as increments a while after
// they were said, and the whole text a while after the end mark.
type ears struct {
	listener net.Listener
	http     http.Server
	words    []string
	voiced   time.Duration // of the recording
	lag, end time.Duration // of a word, of the text
	asked    atomic.Int64  // utterances
}

// startEars starts one on a free port of 127.0.0.1.
func startEars(text string, voiced, lag, end time.Duration) (*ears, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &ears{listener: l, words: strings.Fields(text), voiced: voiced, lag: lag, end: end}
	e.http.Handler, e.http.ReadHeaderTimeout = http.HandlerFunc(e.serve), time.Second
	go func() { _ = e.http.Serve(l) }()
	return e, nil
}

func (e *ears) url() string { return "ws://" + e.listener.Addr().String() }

func (e *ears) close() { _ = e.http.Close() }

// serve hears the utterances of a connection.
func (e *ears) serve(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{Subprotocols: []string{"binary"}}
	c, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer c.Close()
	h := hearing{ears: e, conn: c}
	defer h.stop()
	for {
		kind, data, err := c.ReadMessage()
		if err != nil {
			return
		}
		if kind == websocket.BinaryMessage {
			h.sound(data)
			continue
		}
		var m struct {
			Name     string `json:"wav_name"`
			Speaking bool   `json:"is_speaking"`
		}
		if json.Unmarshal(data, &m) != nil {
			return
		}
		if m.Speaking {
			e.asked.Add(1)
			h.name, h.began, h.loud, h.told = m.Name, false, 0, 0
			continue
		}
		h.later(e.end, "2pass-offline", strings.Join(e.words, " "), true)
	}
}

// hearing is one utterance.
type hearing struct {
	*ears
	mu     sync.Mutex
	conn   *websocket.Conn
	name   string
	loud   time.Duration // how much voice there was
	began  bool
	told   int // words
	timers []*time.Timer
}

// sound takes samples; words follow at even distances from the first loud one.
func (h *hearing) sound(data []byte) {
	for i := 0; i+1 < len(data); i += 2 {
		if v := int16(binary.LittleEndian.Uint16(data[i:])); v > 300 || v < -300 {
			h.began = true
		}
	}
	if !h.began {
		return
	}
	h.loud += time.Duration(len(data)/2) * time.Second / time.Duration(uplink.Rate)
	text := ""
	for h.told < len(h.words) && h.loud >= h.voiced*time.Duration(h.told+1)/time.Duration(len(h.words)) {
		if h.told > 0 {
			text += " "
		}
		text += h.words[h.told]
		h.told++
	}
	if text != "" { // one message: two at the same time could overtake one another
		h.later(h.lag, "2pass-online", text, false)
	}
}

// later sends a message after a while.
func (h *hearing) later(d time.Duration, mode, text string, final bool) {
	m := map[string]any{"mode": mode, "text": text, "wav_name": h.name, "is_final": final, "slice_type": 1}
	h.timers = append(h.timers, time.AfterFunc(d, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		_ = h.conn.WriteJSON(m)
	}))
}

func (h *hearing) stop() {
	for _, t := range h.timers {
		t.Stop()
	}
}
