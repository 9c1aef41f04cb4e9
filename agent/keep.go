package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"time"

	"xiaozhi/agent/think"
	"xiaozhi/agent/turn"
	"xiaozhi/audio"
	"xiaozhi/internal/text"
	"xiaozhi/internal/timeline"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/providers"
)

// Keeper keeps what one device has said and taught beyond the process. Its methods may be called at the same time;
// all but Load take a few microseconds and never wait.
type Keeper interface {
	// Load returns what was kept. Nothing having been kept is no error.
	Load(ctx context.Context) (Past, error)
	// NewID returns an id for a talk that no other has.
	NewID() string
	// Turn takes a finished turn, which belongs to the keeper from then on.
	Turn(t *Turn)
	// Learn takes what was learned of the device, in place of what was learned before. Its history is empty.
	Learn(m Memory)
	// Ended says that the connection has ended on which a talk was held. The talk may go on later.
	Ended(t Talk, at time.Time, cause error)
	// Erase forgets all turns of a talk: the user wants that.
	Erase(talkID string)
}

// Talk is a run of turns with one device, until the device has been away for ten minutes, or the user wants it
// forgotten.
type Talk struct {
	ID    string
	Began time.Time
	Turns int // that it has had
}

// Past holds all that a [Keeper] knows of a device.
type Past struct {
	Memory Memory
	Talk   Talk      // the last one, which the history of Memory is of; zero: none
	Left   time.Time // when its last turn, or the connection of it, has ended
}

// Turn is a finished turn, as it is kept.
type Turn struct {
	Talk     Talk // with this turn counted
	ID       uint64
	At       time.Time
	Kind     TurnKind
	Mode     wire.Mode // "": the device has not listened yet
	Agent    string    // name of whom it is of
	Revision int       // that one's, of the settings; 0: it has none
	Lang     text.Lang
	Heard    string // the user's words
	Speaker  mcp.Speaker
	Said     string // what the user heard of the reply
	Cause    error  // of its end
	Err      error  // what failed; nil: nothing
	Messages []providers.Message
	Figures  timeline.Figures
	Sound    Sound
	Dropped  bool // turns of before do not fit the history any more
}

// Record says whose sound of a turn the keeper is given.
type Record string

// What can be recorded.
const (
	RecordNone Record = ""
	RecordUser Record = "user" // what the microphone sent
	RecordBoth Record = "both" // and what was played
)

// Sound holds the packets of a turn, as they came and went. A side that is not recorded, or not there, is nil.
type Sound struct {
	User  *audio.Packets
	Reply *audio.Packets // as far as it was played
	Rate  int            // of the reply, in Hz
}

// TurnKind says what a turn answers.
type TurnKind string

// The kinds of turns.
const (
	TurnSaid   TurnKind = "user"   // what the user said
	TurnTyped  TurnKind = "typed"  // what was typed
	TurnServer TurnKind = "server" // nothing: the server spoke by itself
)

// kept remembers what the keeper was given last.
type kept struct {
	loaded  bool // it was asked, and has answered
	learned turn.Learned
	role    role
}

const (
	loadTime = 300 * time.Millisecond // the time that a device waits for what is kept of it
	maxLoads = 64                     // at the same time, of all devices; of more, each waits for its place
)

var errSlowKeeper = errors.New("what is kept of the device was not there in time")

// load fills a record with what is kept of the device, once. A device of which it is not there in time is served as a
// new one, and what it says is kept all the same; the next connection asks again.
func (d *Devices) load(ctx context.Context, dev *Device, k Keeper, log *slog.Logger) {
	if k == nil || dev.kept.loaded {
		return
	}
	ctx, stop := context.WithTimeoutCause(ctx, loadTime, errSlowKeeper)
	defer stop()
	past, err := d.loadInTime(ctx, k)
	if err != nil {
		log.Warn("the device is served as a new one", "err", err)
		return
	}
	dev.kept.loaded = true
	if dev.talk.ID != "" { // an earlier attempt failed, and it has talked since
		past.Memory.History = dev.history.Snapshot()
	} else if past.Memory.History, dev.talk = still(past, time.Now()); dev.talk.ID != "" {
		log.Debug("the talk goes on", "turns", past.Talk.Turns)
	}
	chosen := dev.role
	dev.recall(past.Memory)
	if dev.kept.learned, dev.kept.role = dev.learned, dev.role; chosen.name != "" { // after an earlier attempt failed
		dev.role = chosen
	}
}

// still returns the talk that a device may go on with. One that is far in the future was held while the clock was wrong.
func still(p Past, now time.Time) ([]providers.Message, Talk) {
	if p.Talk.ID == "" || now.Sub(p.Left).Abs() > keepDevice {
		return nil, Talk{}
	}
	return p.Memory.History, p.Talk
}

// loadInTime asks the keeper, and does not wait for it after ctx has ended: a disk may hold it up however long.
func (d *Devices) loadInTime(ctx context.Context, k Keeper) (Past, error) {
	select {
	case d.loading <- struct{}{}:
	case <-ctx.Done():
		return Past{}, context.Cause(ctx)
	}
	type answer struct {
		past Past
		err  error
	}
	got := make(chan answer, 1)
	d.loads.Go(func() {
		defer func() { <-d.loading }()
		past, err := k.Load(ctx)
		got <- answer{past, err}
	})
	select {
	case a := <-got:
		return a.past, a.err
	case <-ctx.Done():
		return Past{}, context.Cause(ctx)
	}
}

// keep hands a finished turn to the keeper, and what was learned by it.
func (c *Conversation) keep(r *reply, f timeline.Figures) {
	if c.o.Keeper == nil {
		return
	}
	c.learn()
	if errors.Is(r.out.cause, turn.ErrResumed) {
		c.void.Add(r.times)
	} else {
		f.Attempts = c.void.With(f.Attempts)
	}
	if r.marks.forgotten || r.private || c.whom.now().Forgets || errors.Is(r.out.cause, turn.ErrResumed) { // nothing of it was kept, or it was undone
		return
	}
	sound := c.soundOf(r)
	now, talk := time.Now(), &c.dev.talk
	if talk.ID == "" {
		*talk = Talk{ID: c.dialogue(), Began: now}
	}
	talk.Turns++
	c.o.Keeper.Turn(&Turn{
		Talk: *talk, ID: r.id, At: now, Kind: kindOf(&r.order), Mode: c.state.Mic.Mode, Agent: r.by.name, Revision: r.by.revision,
		Lang: r.order.Lang, Heard: r.marks.words, Speaker: c.speaking(r.marks.speaker),
		Said: text.Join(think.Answer(r.out.messages), r.out.beside), Cause: r.out.cause, Err: r.out.err, Messages: r.out.messages, Figures: f, Sound: sound, Dropped: r.marks.dropped,
	})
}

// soundOf returns what is recorded of a turn.
func (c *Conversation) soundOf(r *reply) (s Sound) {
	if r.record == RecordNone {
		return s
	}
	s.User = c.mic.heardOf(r.marks.heard)
	if r.sent != nil {
		if r.sent.Cut(r.out.played); r.sent.Length() > 0 {
			s.Reply, s.Rate = r.sent, c.o.Reply.Rate
		}
	}
	return s
}

// recorded is whose sound of a turn is kept, of that agent. A song is none of it: it is a file anyway.
func (c *Conversation) recorded(p Persona, o *order) Record {
	if c.whom.o.Load().Keeper == nil || p.Forgets || o.Music {
		return RecordNone
	}
	return p.Record
}

func kindOf(o *order) TurnKind {
	switch {
	case o.tells != nil || o.Words == "" && !o.Sound:
		return TurnServer
	case o.Typed:
		return TurnTyped
	}
	return TurnSaid
}

// learn tells the keeper what was learned of the device, if that has changed. While the keeper has not answered what it
// has, that is not overwritten.
func (c *Conversation) learn() {
	now := kept{loaded: true, learned: c.dev.learned, role: c.dev.role}
	now.learned.Empty = 0
	if c.o.Keeper == nil || !c.dev.kept.loaded || now == c.dev.kept {
		return
	}
	c.dev.kept = now
	c.o.Keeper.Learn(c.dev.learnedMemory())
}

// erase has the keeper forget the talk that goes on. What is said from now on is another.
func (c *Conversation) erase() {
	if c.o.Keeper != nil && c.dev.talk.ID != "" {
		c.o.Keeper.Erase(c.dev.talk.ID)
	}
	c.dev.endTalk()
}

// dialogue names the talk that goes on, or that begins with the next turn.
func (c *Conversation) dialogue() string {
	switch {
	case c.dev.talk.ID != "":
		return c.dev.talk.ID
	case c.dev.next != "":
	case c.o.Keeper != nil:
		c.dev.next = c.o.Keeper.NewID()
	default:
		c.dev.next = rand.Text()
	}
	return c.dev.next
}
