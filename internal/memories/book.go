package memories

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/memory"
	"xiaozhi/memory/hosted"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// Options say what a [Book] is made of. Store, Mode, Model, Embedder, Zone and Price must be set.
type Options struct {
	Store    *store.Store
	Service  hosted.Service // keeps facts in the place of the store; nil: none does
	Mode     func(memory.Owner) memory.Mode
	Model    func(memory.Owner) providers.LLM
	Embedder func() providers.Embedder // of no use beside a Service, which finds facts by itself
	Zone     func(memory.Owner) *time.Location
	Price    func(name string) (p config.Price, known bool) // of the services that read talks and make vectors
	Changed  func(device string)                            // as [memory.Options] has it
	Log      *slog.Logger
}

// Book keeps what is remembered in the store, or in the store and by a service.
type Book struct {
	*memory.Book
	at *hosted.Store // nil: no service keeps anything
}

// Open makes a book. What it does by itself has the values of ctx.
func Open(ctx context.Context, o Options) *Book {
	kept := New(o.Store.Memories, func(r memory.Run) *int { return costOf(r, o.Price) })
	of := memory.Options{
		Store: kept, Vectors: kept, Embedder: o.Embedder, NewID: store.NewID, Flush: o.Store.Log.Flush, Mode: o.Mode, Model: o.Model, Zone: o.Zone, Changed: o.Changed, Log: o.Log,
	}
	b := &Book{}
	if o.Service != nil {
		b.at = hosted.New(ctx, hosted.Options{Desk: kept, Service: o.Service, Mode: o.Mode, Log: o.Log, Changed: func(o memory.Owner) { b.Reread(o) }})
		of.Store, of.Vectors, of.Embedder = b.at, nil, nil
		of.Find, of.Warm, of.Fresh, of.Erased, of.Elsewhere = b.at.Finder(), b.at.Warm, b.at.Fresh, b.at.Wake, true
	}
	b.Book = memory.New(ctx, of)
	return b
}

// Start begins to read talks that are over, and to ask the service. It is called once.
func (b *Book) Start(ctx context.Context) (err error) {
	if b.at != nil {
		err = b.at.Start(ctx)
	}
	b.Book.Start()
	return err
}

// Close ends what the book does, and waits for it.
func (b *Book) Close() {
	b.Book.Close()
	if b.at != nil {
		b.at.Close()
	}
}

// Drop says that a device was forgotten. A service that has not deleted yet what it keeps is asked until it has, which the log tells.
func (b *Book) Drop(ctx context.Context, device string) (err error) {
	if b.at != nil {
		if err = b.at.Forgotten(ctx, device); errors.Is(err, memory.ErrLater) {
			err = nil
		}
	}
	b.Refresh(device)
	return err
}

// costOf tells what reading a talk, or making vectors, has cost, in millionths of the currency; nil: it is not known.
func costOf(r memory.Run, price func(name string) (config.Price, bool)) *int {
	p, known := price(r.Provider)
	money := p.Tokens(providers.Usage{Prompt: r.Prompt, Completion: r.Answer})
	if r.Vectors {
		money = p.Embedding(r.Prompt)
	}
	cost := int(money*1e6 + 0.5)
	if !known || cost == 0 && p != (config.Price{}) {
		return nil
	}
	return &cost
}
