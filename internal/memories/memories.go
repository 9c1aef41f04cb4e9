// Package memories keeps what is remembered of people in the store.
package memories

import (
	"context"
	"errors"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/store"
)

// Price tells what a run of reading a talk, or of making vectors, costs, in millionths of the currency; nil: it is not known.
type Price func(r memory.Run) *int

// Stored keeps memories in a table. Its methods may be called at any time.
type Stored struct {
	table *store.Memories
	price Price
}

var (
	_ memory.Store   = Stored{}
	_ memory.Vectors = Stored{}
	_ hosted.Desk    = Stored{}
)

// New returns what keeps memories in a table.
func New(table *store.Memories, price Price) Stored { return Stored{table, price} }

// Load implements [memory.Store].
func (s Stored) Load(ctx context.Context, o memory.Owner) (k memory.Known, err error) {
	rows, err := s.table.Of(ctx, o.Device, o.Agent)
	for _, r := range rows {
		if r.Kind == store.SummaryMemory {
			k.Summary = memory.Summary{Text: r.Text, At: r.At}
		} else {
			k.Facts = append(k.Facts, FactOf(r, o.Agent))
		}
	}
	return k, err
}

// FactOf is a row as a fact of an agent.
func FactOf(r store.Memory, agent string) memory.Fact {
	return memory.Fact{
		ID: r.ID, Owner: memory.Owner{Device: r.DeviceID, Agent: agent}, Person: r.Person, Text: r.Text, Keys: r.Keys, Slot: r.Slot, Lang: text.Lang(r.Language),
		Talk: r.ConversationID, Turn: r.TurnID, At: r.At, Sure: r.Sure, Told: r.Told, Ended: r.EndedAt, By: r.ByID,
	}
}

// Write implements [memory.Store].
func (s Stored) Write(ctx context.Context, c memory.Change) error {
	row := store.MemoryChange{
		DeviceID: c.Owner.Device, Agent: c.Owner.Agent, Renew: c.Renew, Replace: c.Replace, Most: memory.MaxFacts, Talk: c.Talk, Learned: c.Learned, Give: c.Give,
	}
	for _, f := range c.Add {
		row.Add = append(row.Add, store.Memory{
			ID: f.ID, Person: f.Person, Kind: store.FactMemory, Text: f.Text, Keys: f.Keys, Slot: f.Slot, Language: string(f.Lang), ConversationID: f.Talk, TurnID: f.Turn,
			At: f.At, Sure: f.Sure, Told: f.Told,
		})
	}
	if c.Summary != nil {
		row.Summary = &store.Memory{ID: store.NewID(), Kind: store.SummaryMemory, Text: c.Summary.Text, ConversationID: c.Talk, At: c.Summary.At, Sure: 100}
	}
	return unknown(s.table.Write(ctx, row))
}

// Edit implements [memory.Store].
func (s Stored) Edit(ctx context.Context, o memory.Owner, id, words string) error {
	return unknown(s.table.Edit(ctx, o.Device, o.Agent, id, words))
}

// Forget implements [memory.Store].
func (s Stored) Forget(ctx context.Context, o memory.Owner, ids []string) error {
	return unknown(s.table.Delete(ctx, o.Device, o.Agent, ids))
}

// ForgetAll implements [memory.Store].
func (s Stored) ForgetAll(ctx context.Context, o memory.Owner) (int, error) {
	return s.table.DeleteAll(ctx, o.Device, o.Agent)
}

// Open implements [memory.Store].
func (s Stored) Open(ctx context.Context, limit int) ([]memory.Talk, error) {
	rows, err := s.table.Unread(ctx, limit)
	return talksOf(rows), err
}

// Said implements [memory.Store].
func (s Stored) Said(ctx context.Context, talk string, after, limit int) ([]memory.Said, error) {
	rows, err := s.table.Said(ctx, talk, after, limit)
	said := make([]memory.Said, len(rows))
	for i, r := range rows {
		said[i] = memory.Said{ID: r.ID, Seq: r.Seq, At: r.At, Agent: r.Agent, Lang: text.Lang(r.Language), Heard: r.Heard, Reply: r.Said, Forgets: r.Forgets, Speaker: r.Speaker}
	}
	return said, err
}

// Spent implements [memory.Store].
func (s Stored) Spent(ctx context.Context, r memory.Run) error {
	row := store.MemoryRun{
		DeviceID: r.Owner.Device, ConversationID: r.Talk, At: r.At, Took: r.Took, LLM: r.Provider, TokensIn: r.Prompt, TokensOut: r.Answer, Facts: r.Facts,
	}
	if s.price != nil && r.Provider != "" {
		row.CostMicros = s.price(r)
	}
	if r.Err != nil {
		row.Fault = r.Err.Error()
	}
	return s.table.Spent(ctx, r.Owner.Agent, row)
}

// Vectors implements [memory.Vectors].
func (s Stored) Vectors(ctx context.Context, o memory.Owner, model string) (map[string][]byte, error) {
	rows, err := s.table.Vectors(ctx, o.Device, o.Agent, model)
	all := make(map[string][]byte, len(rows))
	for _, r := range rows {
		all[r.MemoryID] = r.Data
	}
	return all, err
}

// Unlike implements [memory.Vectors].
func (s Stored) Unlike(ctx context.Context, model string, bytes int, after string, limit int) ([]memory.Fact, error) {
	rows, err := s.table.Unlike(ctx, model, bytes, after, limit)
	facts := make([]memory.Fact, len(rows))
	for i, r := range rows {
		facts[i] = FactOf(r.Memory, r.Agent)
	}
	return facts, err
}

// SetVectors implements [memory.Vectors].
func (s Stored) SetVectors(ctx context.Context, model string, all []memory.Vector) error {
	rows := make([]store.Vector, len(all))
	for i, v := range all {
		rows[i] = store.Vector{MemoryID: v.Fact, Text: v.Text, Data: v.Data}
	}
	return s.table.SetVectors(ctx, model, rows)
}

// Settle implements [hosted.Desk].
func (s Stored) Settle(ctx context.Context, service string, o memory.Owner) error {
	return s.table.Put(ctx, store.Place{Service: service, DeviceID: o.Device, Agent: o.Agent})
}

// Errands implements [hosted.Desk].
func (s Stored) Errands(ctx context.Context, service string) ([]hosted.Errand, error) {
	rows, err := s.table.Places(ctx, service)
	all := make([]hosted.Errand, len(rows))
	for i, r := range rows {
		all[i] = hosted.Errand{Owner: memory.Owner{Device: r.DeviceID, Agent: r.Agent}, Fact: r.What}
		if talk, ok := strings.CutPrefix(r.What, store.TalkPlace); ok {
			all[i].Fact, all[i].Talk = "", talk
		}
	}
	return all, err
}

func place(service string, e hosted.Errand) store.Place {
	p := store.Place{Service: service, DeviceID: e.Owner.Device, Agent: e.Owner.Agent, What: e.Fact, Gone: true}
	if e.Talk != "" {
		p.What = store.TalkPlace + e.Talk
	}
	return p
}

// Want implements [hosted.Desk].
func (s Stored) Want(ctx context.Context, service string, e hosted.Errand) error {
	if e.Owner.Agent == "" {
		return s.table.Leave(ctx, service, e.Owner.Device)
	}
	return s.table.Put(ctx, place(service, e))
}

// Done implements [hosted.Desk].
func (s Stored) Done(ctx context.Context, service string, e hosted.Errand) error {
	return s.table.Left(ctx, place(service, e))
}

// Ungiven implements [hosted.Desk].
func (s Stored) Ungiven(ctx context.Context, limit int) ([]memory.Talk, error) {
	rows, err := s.table.Ungiven(ctx, limit)
	return talksOf(rows), err
}

// Given implements [hosted.Desk].
func (s Stored) Given(ctx context.Context, talk string, turn int) error {
	return s.table.Given(ctx, talk, turn)
}

func talksOf(rows []store.Unread) []memory.Talk {
	talks := make([]memory.Talk, len(rows))
	for i, r := range rows {
		talks[i] = memory.Talk{ID: r.ID, Owner: memory.Owner{Device: r.DeviceID}, Learned: r.Learned, Turns: r.Turns, LastAt: r.LastAt}
	}
	return talks
}

// unknown names what the table does not have as package memory does.
func unknown(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return memory.ErrUnknown
	}
	return err
}
