package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent"
	"xiaozhi/connection"
	"xiaozhi/console/tools"
	"xiaozhi/internal/config"
	"xiaozhi/internal/lab"
	"xiaozhi/internal/recording"
	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
	"xiaozhi/mcp/device"
	"xiaozhi/mcp/iot"
	"xiaozhi/mcp/router"
	"xiaozhi/memory"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// keeper keeps in the store what a device says and teaches on one connection. nil keeps nothing, and so does one whose
// device was forgotten meanwhile.
type keeper struct {
	store    *store.Store
	deviceID string
	valid    func(keep func())   // runs keep unless the device was forgotten
	sources  []mcp.Source        // of the device's tools
	sound    *recording.Recorder // nil: none is kept
	price    lab.Prices          // of services, by name
	known    *memory.Book

	mu    sync.Mutex
	calls map[string]router.Record // that have ended, by id; at most maxKeptCalls
	open  []openCall               // that go on after their turns; at most maxKeptCalls, the oldest make room
}

// openCall is a call that went on when its turn was kept.
type openCall struct {
	id  string // of the model
	row string // of the store
}

var _ agent.Keeper = (*keeper)(nil)

const (
	maxKeptCalls = 64 // of a turn that have ended
	keptTurns    = 64 // turns of which a dialogue is restored; its budget of tokens holds fewer
	learnedName  = "learned"
	toolsName    = "tools"
	thingsName   = "things"
)

// keeper makes the keeper of a session with the sources of its device's tools; nil without a store and for devices that are
// not known: they have no history.
func (a *App) keeper(s wire.Session, sources ...mcp.Source) *keeper {
	if a.stored == nil || s.Unknown || s.Private {
		return nil
	}
	k := &keeper{
		store: a.stored, sound: a.recorders.turns, deviceID: s.DeviceID, valid: a.forgetting.since(s.DeviceID), sources: sources, price: func(name string) (config.Price, bool) { return priceOf(a.base(), name) }, calls: map[string]router.Record{}, known: a.outside.known,
	}
	k.valid(func() { k.store.Log.Seen(s.DeviceID, store.Seen{HelloAt: time.Now()}) })
	return k
}

// orNone is the keeper, or none.
func (k *keeper) orNone() agent.Keeper {
	if k == nil {
		return nil
	}
	return k
}

var errForgotten = errors.New("the device was forgotten")

// Load returns what was learned of the device, and its last talk. Its sources get what the device offered before.
func (k *keeper) Load(ctx context.Context) (past agent.Past, err error) {
	docs, err := k.store.Devices.Learned(ctx, k.deviceID)
	if err != nil {
		return past, err
	}
	err = errForgotten
	k.valid(func() { err = k.restore(docs) }) // else a slow disk brings back what the device offered before
	if err != nil {
		return past, err
	}
	if doc := docs[learnedName]; doc != "" {
		if err := json.Unmarshal([]byte(doc), &past.Memory); err != nil {
			return past, err
		}
	}
	d, err := k.store.Turns.Dialogue(ctx, k.deviceID, keptTurns)
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
		message, err := readMessage(m)
		if err != nil {
			return past, err
		}
		past.Memory.History = append(past.Memory.History, message)
	}
	return past, nil
}

// restore gives the sources what the device offered before the program was started.
func (k *keeper) restore(docs map[string]string) (err error) {
	for _, source := range k.sources {
		switch s := source.(type) {
		case *device.Client:
			if doc := docs[toolsName]; doc != "" {
				err = errors.Join(err, s.Restore(doc))
			}
		case *iot.Source:
			if doc := docs[thingsName]; doc != "" {
				err = errors.Join(err, s.Restore(doc))
			}
		}
	}
	return err
}

// keeping returns what keeps the newest state of a known device under a name; nil: nothing does.
func (a *App) keeping(s wire.Session, name string) func(doc string) {
	if a.stored == nil || s.Unknown {
		return nil
	}
	valid := a.forgetting.since(s.DeviceID)
	return func(doc string) {
		valid(func() { a.stored.Log.Learned(s.DeviceID, name, doc) })
	}
}

// askedOf returns what keeps that a device has asked where to connect, and the language that it named.
func askedOf(s *store.Store) func(deviceID, language string) {
	if s == nil {
		return nil
	}
	return func(deviceID, language string) {
		s.Log.Seen(deviceID, store.Seen{AskedAt: time.Now(), Language: language})
	}
}

// languages gives the registry the languages that devices have named: they tell them when they are switched on only.
func languages(ctx context.Context, s *store.Store, devices *connection.Registry) error {
	if s == nil {
		return nil
	}
	return eachDevice(ctx, s, func(d *store.Device) { devices.SetLanguage(d.ID, d.Language) })
}

// NewID returns an id for a talk.
func (k *keeper) NewID() string { return store.NewID() }

// Learn hands over what was learned of the device.
func (k *keeper) Learn(m agent.Memory) {
	if doc, err := json.Marshal(m); err == nil { // it always has a form
		k.valid(func() { k.store.Log.Learned(k.deviceID, learnedName, string(doc)) })
	}
}

// Ended hands over that a connection has ended.
func (k *keeper) Ended(t agent.Talk, at time.Time, cause error) {
	k.store.Log.Ended(t.ID, at, errorText(cause))
}

// Erase has a talk deleted.
func (k *keeper) Erase(talkID string) {
	k.store.Log.Erase(talkID)
	k.sound.Erase(k.deviceID, talkID)
	if k.known != nil {
		k.known.Erased(k.deviceID)
	}
}

// Turn hands over a finished turn.
func (k *keeper) Turn(t *agent.Turn) {
	f := &t.Figures
	e := &store.Entry{
		Conversation: store.Conversation{ID: t.Talk.ID, DeviceID: k.deviceID, BeganAt: t.Talk.Began}, Agent: t.Agent,
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
	sound := recording.Turn{Device: k.deviceID, Talk: t.Talk.ID, ID: e.Turn.ID, At: t.At, User: t.Sound.User, Reply: t.Sound.Reply, Rate: t.Sound.Rate}
	k.valid(func() {
		k.store.Log.Put(e)
		k.sound.Put(sound)
	})
	k.await(open)
	if t.Dropped && k.known != nil {
		k.known.Overflows(t.Talk.ID)
	}
}

// storedMessages makes the rows of the messages of a turn.
func storedMessages(messages []providers.Message) []store.Message {
	rows := make([]store.Message, 0, len(messages))
	for i := range messages {
		if m := &messages[i]; m.Content != "" || len(m.ToolCalls) > 0 || m.ToolCallID != "" {
			rows = append(rows, store.Message{Role: string(m.Role), Body: messageBody(m)})
		}
	}
	return rows
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// call keeps what is known of a call until its turn has ended. One from outside belongs to none.
func (k *keeper) call(rec router.Record) {
	if k == nil {
		return
	}
	if rec.By.Outside() {
		c := callOf(&rec)
		c.DeviceID, c.Caller, c.At = k.deviceID, "outside", time.Now().Add(-rec.Took)
		if strings.HasPrefix(rec.CallID, tools.CallPrefix) {
			c.Caller = "console"
		}
		k.valid(func() { k.store.Log.Call(c) })
		return
	}
	if row := k.taken(&rec); row != "" {
		k.over(row, &rec)
	}
}

// taken keeps a call until its turn has ended. Where that has ended it returns the row of the call.
func (k *keeper) taken(rec *router.Record) (row string) {
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
func (k *keeper) await(open []openCall) {
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
func (k *keeper) over(row string, rec *router.Record) {
	c := callOf(rec)
	k.valid(func() {
		k.store.Log.CallOver(store.CallEnd{
			ID: row, DeviceID: k.deviceID, Name: c.Name, Source: c.Source, Kind: c.Kind, At: c.At, Took: c.Took, Result: c.Result, ResultDigest: c.ResultDigest, Fault: c.Fault, Refusal: c.Refusal, Late: c.Late,
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
func (k *keeper) ended() map[string]router.Record {
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
			call := callOf(&rec)
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

// callOf makes the row of a call. Its arguments are there if they may be shown.
func callOf(rec *router.Record) store.Call {
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

// body is the JSON form of a message that has more than words. One that has only words is a JSON string. Pictures are
// not kept.
type body struct {
	Text   string     `json:"text,omitempty"`
	Calls  []bodyCall `json:"calls,omitempty"`
	CallID string     `json:"call_id,omitempty"`
	Echo   *bodyEcho  `json:"echo,omitempty"`
}

type bodyCall struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Arguments string    `json:"arguments"`
	Echo      *bodyEcho `json:"echo,omitempty"`
}

type bodyEcho struct {
	Owner string          `json:"owner"`
	JSON  json.RawMessage `json:"json"`
}

// storedEcho is the form of an echo; nil for none.
func storedEcho(e providers.Echo) *bodyEcho {
	if e.JSON == "" {
		return nil
	}
	return &bodyEcho{e.Owner, json.RawMessage(e.JSON)}
}

// echo undoes storedEcho.
func (e *bodyEcho) echo() providers.Echo {
	if e == nil {
		return providers.Echo{}
	}
	return providers.NewEcho(e.Owner, string(e.JSON))
}

func messageBody(m *providers.Message) string {
	var v any = m.Content
	if len(m.ToolCalls) > 0 || m.ToolCallID != "" || m.Echo.JSON != "" {
		b := body{Text: m.Content, CallID: m.ToolCallID, Echo: storedEcho(m.Echo)}
		for _, c := range m.ToolCalls {
			b.Calls = append(b.Calls, bodyCall{c.ID, c.Name, c.Arguments, storedEcho(c.Echo)})
		}
		v = b
	}
	data, err := json.Marshal(v)
	if err != nil {
		return `""` // strings always have a form
	}
	return string(data)
}

// readMessage undoes messageBody.
func readMessage(row store.Message) (providers.Message, error) {
	m := providers.Message{Role: providers.Role(row.Role)}
	if json.Unmarshal([]byte(row.Body), &m.Content) == nil {
		return m, nil
	}
	var b body
	if err := json.Unmarshal([]byte(row.Body), &b); err != nil {
		return m, err
	}
	m.Content, m.ToolCallID, m.Echo = b.Text, b.CallID, b.Echo.echo()
	for _, c := range b.Calls {
		m.ToolCalls = append(m.ToolCalls, providers.ToolCall{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Echo: c.Echo.echo()})
	}
	return m, nil
}
