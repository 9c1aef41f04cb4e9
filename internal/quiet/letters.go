package quiet

import (
	"sync"
	"time"
)

// untilSwitchedOff is how long letters are kept for a quiet mode that has no end.
const untilSwitchedOff = 30 * 24 * time.Hour

// Letters wait to be told.
type Letters interface {
	// Hold has letters of a device, "" all, told from a time on only; zero: they may be told.
	Hold(device string, until time.Time)
}

// holding holds letters back where quiet mode was switched on.
type holding struct {
	mode    *Mode
	letters Letters

	mu   sync.Mutex
	held map[string]bool // devices, "" all
}

// HoldBack has letters wait for the end of quiet mode, also of one that is switched on later, as long as the program runs.
func (m *Mode) HoldBack(letters Letters) {
	h := &holding{mode: m, letters: letters, held: map[string]bool{}}
	h.look()
	m.Follow(h.look)
}

// look holds back what is to wait now, and lets go of what need not any more.
func (h *holding) look() {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.mode.Switched()
	all[""] = h.mode.State()
	for device, s := range all {
		until := s.Until
		if s.On && until.IsZero() {
			until = time.Now().Add(untilSwitchedOff)
		}
		h.letters.Hold(device, until)
	}
	for device := range h.held {
		if !all[device].On {
			h.letters.Hold(device, time.Time{})
		}
	}
	clear(h.held)
	for device := range all {
		h.held[device] = true
	}
}
