package alarm

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/think"
	"xiaozhi/internal/text"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/prompts"
)

func TestIsMeant(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	tea := Reminder{Due: now.Add(10 * time.Minute), Length: 10 * time.Minute, Text: "Tea"}
	walk := Reminder{Due: now.Add(22 * time.Hour), Text: "遛狗"} // tomorrow at seven
	for words, want := range map[string][2]bool{
		"tea": {true, false}, "the tea timer": {true, false}, "10 minutes": {true, false}, "the 10 minute timer": {true, false},
		"10分钟": {true, false}, "110 minutes": {}, "1 minute": {}, "9:10": {true, false}, "09:10": {true, false},
		"遛狗": {false, true}, "遛狗的提醒": {false, true}, "明天7点": {false, true}, "7点": {false, true}, "17点": {}, "晚上7点": {},
		"早上七点": {false, true}, "明天早上七点": {false, true}, "后天早上七点": {}, "7 am": {false, true}, "7 oclock": {false, true}, "七点半": {},
		"tomorrow at 7:00": {false, true}, "tomorrow at seven": {false, true}, "coffee": {}, "": {},
		"tomorrow": {false, true}, "tomorrow morning": {false, true}, "明天早上": {false, true}, "明天": {false, true}, "tomorrow evening": {}, "后天": {}, "今天": {true, false}, "今天上午": {true, false},
	} {
		if got := [2]bool{tea.isMeant(words, now), walk.isMeant(words, now)}; got != want {
			t.Errorf("%q: %v, want %v", words, got, want)
		}
	}
}

// host is a conversation that takes as many announcements as it has room for.
type host struct {
	feature.Host
	device string
	texts  *prompts.Set
	zone   *time.Location

	loop sync.Mutex // held by what runs on the conversation's goroutine
	room int
	told []feature.Announcement
	gone []uint64 // withdrawn
}

func (h *host) Env() feature.Env {
	return feature.Env{Texts: h.texts, Zone: h.zone, Log: slog.New(slog.DiscardHandler), Session: wire.Session{DeviceID: h.device}}
}

func (h *host) Announce(a feature.Announcement) (uint64, error) {
	if len(h.told) >= h.room {
		return 0, feature.ErrQueueFull
	}
	h.told = append(h.told, a)
	return uint64(len(h.told)), nil
}

func (h *host) Withdraw(id uint64) { h.gone = append(h.gone, id) }

func (h *host) Post(f func()) {
	h.loop.Lock()
	defer h.loop.Unlock()
	f()
}

// words are what was announced.
func (h *host) words() (all []string) {
	h.loop.Lock()
	defer h.loop.Unlock()
	for _, a := range h.told {
		all = append(all, a.Text)
	}
	return all
}

// speaker is a connected device.
type speaker struct {
	*host
	in *alarms
}

func connect(t *testing.T, b *Book, device string) *speaker {
	t.Helper()
	set, err := prompts.Load("")
	if err != nil {
		t.Fatal(err)
	}
	h := &host{device: device, texts: set, zone: time.UTC, room: 100}
	in, ok := b.Attach(h, nil).(*alarms)
	if !ok {
		t.Fatal("another instance")
	}
	return &speaker{h, in}
}

// order gives an order in English, and returns what is said or told to the model.
func (s *speaker) order(t *testing.T, args mcp.TimerArgs) (string, error) {
	t.Helper()
	return s.orderIn(t.Context(), args)
}

func (s *speaker) orderIn(ctx context.Context, args mcp.TimerArgs) (string, error) {
	did, err := s.in.handle(feature.Caller{Lang: text.English}, args)
	if err == nil {
		var done think.Handled
		done, err = did.Finished(ctx)
		return done.Say + done.Result, err
	}
	return did.Say + did.Result, err
}

func (s *speaker) mustOrder(t *testing.T, args mcp.TimerArgs) string {
	t.Helper()
	said, err := s.order(t, args)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// hear has the newest announcement end as told says.
func (s *speaker) hear(told feature.Told) {
	s.loop.Lock()
	defer s.loop.Unlock()
	s.told[len(s.told)-1].Done(told)
}

func (s *speaker) leave() { s.in.Detach() }

func (s *speaker) said(part string) int {
	n := 0
	for _, words := range s.words() {
		if strings.Contains(words, part) {
			n++
		}
	}
	return n
}

// states lists the states of all reminders, in the order in which they are due.
func states(t *testing.T, b *Book) (all []State) {
	t.Helper()
	found, err := b.o.Store.Find(t.Context(), Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		all = append(all, r.State)
	}
	return all
}

func wantStates(t *testing.T, b *Book, want ...State) {
	t.Helper()
	if got := states(t, b); !slices.Equal(got, want) {
		t.Errorf("states %v, want %v", got, want)
	}
}

// broken is a store that fails when it is told to.
type broken struct {
	Store
	write atomic.Bool  // it takes nothing
	stall atomic.Int64 // how long it takes to take something
	lies  atomic.Bool  // it says once that it has failed where it has not
	slow  string       // a device of which it takes 5 s to add something
}

var (
	errDisk = errors.New("no space left on device")
	errGone = errors.New("the device has left")
)

func (s *broken) Add(ctx context.Context, r Reminder) error {
	if r.Device == s.slow {
		time.Sleep(5 * time.Second)
	}
	time.Sleep(time.Duration(s.stall.Load()))
	if s.write.Load() {
		return errDisk
	}
	return s.Store.Add(ctx, r)
}

func (s *broken) Change(ctx context.Context, all ...Change) ([]bool, error) {
	time.Sleep(time.Duration(s.stall.Load()))
	if s.write.Load() {
		return nil, errDisk
	}
	done, err := s.Store.Change(ctx, all...)
	if s.lies.Swap(false) {
		return nil, errDisk
	}
	return done, err
}
