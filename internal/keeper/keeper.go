// Package keeper keeps in the store what a device says and teaches on one connection, and gives back what it has said and taught
// before.
package keeper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/lab"
	"xiaozhi/internal/recording"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/router"
	"xiaozhi/memory"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// Options say what a [Keeper] keeps, and where. Store, Device, Valid and Price must be set.
type Options struct {
	Store   *store.Store
	Device  string                     // its id
	Valid   func(keep func())          // runs keep unless the device was forgotten
	Sources []mcp.Source               // of the device's tools
	Sound   *recording.Recorder        // nil: none is kept
	Price   lab.Prices                 // of services, by name
	Known   *memory.Book               // is told of talks that are deleted, or grow too long; nil: nobody is
	Caller  func(callID string) string // who has made a call from outside, as the store names them; nil: a program
}

// Keeper keeps what one connection brings. nil keeps nothing, and so does one whose device was forgotten meanwhile. Its methods may be
// called at the same time.
type Keeper struct {
	o Options

	mu    sync.Mutex
	calls map[string]router.Record // that have ended, by id; at most maxKeptCalls
	open  []openCall               // that go on after their turns; at most maxKeptCalls, the oldest make room
}

// New returns the keeper of a connection, and keeps that it has begun.
func New(o Options) *Keeper {
	if o.Caller == nil {
		o.Caller = func(string) string { return outside }
	}
	k := &Keeper{o: o, calls: map[string]router.Record{}}
	o.Valid(func() { o.Store.Log.Seen(o.Device, store.Seen{HelloAt: time.Now()}) })
	return k
}

// openCall is a call that went on when its turn was kept.
type openCall struct {
	id  string // of the model
	row string // of the store
}

var _ agent.Keeper = (*Keeper)(nil)

const (
	maxKeptCalls = 64 // of a turn that have ended
	keptTurns    = 64 // turns of which a dialogue is restored; its budget of tokens holds fewer
	learnedName  = "learned"
	outside      = "outside" // who calls, of a call from outside
)

// Names of what the store keeps of the tools of devices, in their own forms.
const (
	Tools  = "tools"  // of the standard dialect: [device.Client]
	Things = "things" // of older firmware: [iot.Source]
)

// OrNone is the keeper, or none.
func (k *Keeper) OrNone() agent.Keeper {
	if k == nil {
		return nil
	}
	return k
}

// ErrForgotten says that the device was forgotten since the connection has begun.
var ErrForgotten = errors.New("the device was forgotten")

// Load returns what was learned of the device, and its last talk. Its sources get what the device offered before.
func (k *Keeper) Load(ctx context.Context) (past agent.Past, err error) {
	docs, err := k.o.Store.Devices.Learned(ctx, k.o.Device)
	if err != nil {
		return past, err
	}
	err = ErrForgotten
	k.o.Valid(func() { err = k.restore(docs) }) // else a slow disk brings back what the device offered before
	if err != nil {
		return past, err
	}
	if doc := docs[learnedName]; doc != "" {
		if err := json.Unmarshal([]byte(doc), &past.Memory); err != nil {
			return past, err
		}
	}
	d, err := k.o.Store.Turns.Dialogue(ctx, k.o.Device, keptTurns)
	if errors.Is(err, store.ErrNotFound) {
		return past, nil
	}
	if err != nil {
		return past, err
	}
	past.Talk = agent.Talk{ID: d.Conversation.ID, Began: d.Conversation.BeganAt, Turns: d.Last.Seq}
	past.Left = d.Last.At
	if d.Conversation.EndedAt.After(past.Left) {
		past.Left = d.Conversation.EndedAt
	}
	for _, m := range d.Messages {
		message, err := ReadMessage(m)
		if err != nil {
			return past, err
		}
		past.Memory.History = append(past.Memory.History, message)
	}
	return past, nil
}

// restore gives the sources what the device offered before the program was started.
func (k *Keeper) restore(docs map[string]string) (err error) {
	for _, source := range k.o.Sources {
		switch s := source.(type) {
		case *device.Client:
			if doc := docs[Tools]; doc != "" {
				err = errors.Join(err, s.Restore(doc))
			}
		case *iot.Source:
			if doc := docs[Things]; doc != "" {
				err = errors.Join(err, s.Restore(doc))
			}
		}
	}
	return err
}

// NewID returns an id for a talk.
func (k *Keeper) NewID() string { return store.NewID() }

// Learn hands over what was learned of the device.
func (k *Keeper) Learn(m agent.Memory) {
	if doc, err := json.Marshal(m); err == nil { // it always has a form
		k.o.Valid(func() { k.o.Store.Log.Learned(k.o.Device, learnedName, string(doc)) })
	}
}

// Ended hands over that a connection has ended.
func (k *Keeper) Ended(t agent.Talk, at time.Time, cause error) {
	k.o.Store.Log.Ended(t.ID, at, errorText(cause))
}

// Erase has a talk deleted.
func (k *Keeper) Erase(talkID string) {
	k.o.Store.Log.Erase(talkID)
	k.o.Sound.Erase(k.o.Device, talkID)
	if k.o.Known != nil {
		k.o.Known.Erased(k.o.Device)
	}
}

// Turn hands over a finished turn.
func (k *Keeper) Turn(t *agent.Turn) {
	f := &t.Figures
	e := &store.Entry{
		Conversation: store.Conversation{ID: t.Talk.ID, DeviceID: k.o.Device, BeganAt: t.Talk.Began}, Agent: t.Agent,
		Turn: store.Turn{
			ID: store.NewID(), Seq: t.Talk.Turns, At: t.At, Kind: string(t.Kind), Mode: string(t.Mode), AgentRev: t.Revision, Language: string(t.Lang), Heard: t.Heard, Said: t.Said,
			Cause: cmp.Or(errorText(t.Cause), "done"), Fault: errorText(t.Err),
			EOU: f.EOU, ASR: f.ASR, TTFT: f.TTFT, TTFS: f.TTFS, TTFB: f.TTFB, Added: f.Added, E2E: f.E2E, LeadMin: f.LeadMin,
			Frames: f.Frames, Underruns: f.Underruns, Steps: f.Steps, Speculation: f.Speculation, ASRName: f.ASRName, LLMName: f.LLMName, TTSName: f.TTSName,
		},
	}
	if s := t.Speaker; t.Kind == agent.TurnSaid {
		if e.Turn.Speaker = s.ID; s.Other {
			e.Turn.Speaker = store.StrangerSpoke
		}
		if s.Told() { // else it says nothing of this voice
			e.Turn.SpeakerSure = s.Sure
		}
	}
	if f.E2E > 0 { // in whole milliseconds they still add up
		rest := f.E2E.Truncate(time.Millisecond)
		for _, part := range []time.Duration{f.EOU, f.ASR, f.TTFS, f.TTFB} {
			rest -= part.Truncate(time.Millisecond)
		}
		e.Turn.Added = rest
	}
	calls, messages, at := k.ended(), t.Messages, t.At
	k.spent(&e.Turn, f, calls)
	open := openCalls(messages, calls)
	e.Rest = func(e *store.Entry) {
		e.Messages, e.Calls = storedMessages(messages), storedCalls(messages, calls, open, at)
	}
	for i := range messages {
		m := &messages[i]
		if e.RestSize += 128 + len(m.Content); len(m.Images) > 0 { // they need not wait in memory with it
			e.Rest(e)
			e.Rest, e.RestSize = nil, 0
			break
		}
		for _, c := range m.ToolCalls {
			e.RestSize += 256 + 2*len(c.Arguments)
		}
	}
	sound := recording.Turn{Device: k.o.Device, Talk: t.Talk.ID, ID: e.Turn.ID, At: t.At, User: t.Sound.User, Reply: t.Sound.Reply, Rate: t.Sound.Rate}
	k.o.Valid(func() {
		k.o.Store.Log.Put(e)
		k.o.Sound.Put(sound)
	})
	k.await(open)
	if t.Dropped && k.o.Known != nil {
		k.o.Known.Overflows(t.Talk.ID)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Call keeps what is known of a call until its turn has ended. One from outside belongs to none.
func (k *Keeper) Call(rec router.Record) {
	if k == nil {
		return
	}
	if rec.By.Outside() {
		c := CallOf(&rec)
		c.DeviceID, c.Caller, c.At = k.o.Device, k.o.Caller(rec.CallID), time.Now().Add(-rec.Took)
		k.o.Valid(func() { k.o.Store.Log.Call(c) })
		return
	}
	if row := k.taken(&rec); row != "" {
		k.over(row, &rec)
	}
}

// taken keeps a call until its turn has ended. Where that has ended it returns the row of the call.
func (k *Keeper) taken(rec *router.Record) (row string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if i := slices.IndexFunc(k.open, func(c openCall) bool { return c.id == rec.CallID }); i >= 0 {
		row = k.open[i].row
		k.open = slices.Delete(k.open, i, i+1)
		return row
	}
	if len(k.calls) < maxKeptCalls {
		k.calls[rec.CallID] = *rec
	}
	return ""
}

// await has calls that go on kept when they end, or now if they just have.
func (k *Keeper) await(open []openCall) {
	for _, c := range open {
		k.mu.Lock()
		rec, over := k.calls[c.id]
		if over {
			delete(k.calls, c.id)
		} else {
			k.open = append(k.open, c)
			k.open = slices.Delete(k.open, 0, max(0, len(k.open)-maxKeptCalls))
		}
		k.mu.Unlock()
		if over {
			k.over(c.row, &rec)
		}
	}
}

// over keeps the end of a call whose turn was kept.
func (k *Keeper) over(row string, rec *router.Record) {
	c := CallOf(rec)
	k.o.Valid(func() {
		k.o.Store.Log.CallOver(store.CallEnd{
			ID: row, DeviceID: k.o.Device, Name: c.Name, Source: c.Source, Kind: c.Kind, At: c.At, Took: c.Took, Result: c.Result, ResultDigest: c.ResultDigest, Fault: c.Fault, Refusal: c.Refusal, Late: c.Late,
		})
	})
}

// openCalls lists the calls of a turn that go on, with the rows that they get.
func openCalls(messages []providers.Message, ended map[string]router.Record) (open []openCall) {
	for i := range messages {
		for _, c := range messages[i].ToolCalls {
			if _, over := ended[c.ID]; !over {
				open = append(open, openCall{c.ID, store.NewID()})
			}
		}
	}
	return open
}

// ended returns what is known of the calls of the turn that has ended, by their ids.
func (k *Keeper) ended() map[string]router.Record {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.calls) == 0 {
		return nil
	}
	calls := k.calls
	k.calls = map[string]router.Record{}
	return calls
}

// storedCalls makes the rows of the calls of a turn. Those that go on have no times, and the rows that open says.
func storedCalls(messages []providers.Message, known map[string]router.Record, open []openCall, at time.Time) (calls []store.Call) {
	for i := range messages {
		for _, c := range messages[i].ToolCalls {
			rec := known[c.ID]
			call := CallOf(&rec)
			call.Caller, call.Name, call.Result = "model", cmp.Or(rec.Tool, c.Name), resultOf(messages, c.ID)
			if call.At.IsZero() {
				call.At = at
			}
			if i := slices.IndexFunc(open, func(o openCall) bool { return o.id == c.ID }); i >= 0 {
				call.ID, call.ArgumentsDigest = open[i].row, router.DigestOf(c.Arguments)
			}
			calls = append(calls, call)
		}
	}
	return calls
}

// CallOf makes the row of a call. Its arguments are there if they may be shown.
func CallOf(rec *router.Record) store.Call {
	c := store.Call{
		ID: store.NewID(), At: rec.Started, Name: rec.Tool, Source: rec.Source, Kind: string(rec.Kind), Arguments: rec.Arguments, Result: rec.Result, Took: rec.Took,
		ArgumentsDigest: rec.ArgumentsDigest, ResultDigest: rec.ResultDigest, Refusal: string(rec.Refusal), Late: rec.Late,
	}
	if rec.Outcome == mcp.ActionTypeError.String() || rec.Outcome == mcp.ActionTypeNotFound.String() {
		c.Fault = rec.Outcome
	}
	return c
}

// resultOf finds the text that the model was given for a call.
func resultOf(messages []providers.Message, callID string) string {
	for i := range messages {
		if messages[i].ToolCallID == callID {
			return messages[i].Content
		}
	}
	return ""
}
