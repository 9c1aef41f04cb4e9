package knowledge

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"xiaozhi/knowledge/reader"
)

// Options of a [Library]. Store, NewID, Read and Folders must be set.
type Options struct {
	Store Store
	NewID func() string
	// Read reads a document from its beginning; f is closed by the library. The error is a [*reader.FaultError], or it is read
	// again later.
	Read func(ctx context.Context, f *os.File, name string) (reader.Document, error)
	// Folders returns the folders of each agent as they are now, by absolute paths. It does not wait.
	Folders func() map[string][]string
	// Gone reports whether an agent was deleted, whose documents go with it; nil: none was.
	Gone     func(ctx context.Context, agent string) (bool, error)
	Incoming string             // folder of uploads until they are read; "": nothing can be uploaded
	Embedder func() Embedder    // that finds by meaning; nil, or one that returns nil: words alone do
	Changed  func(agent string) // is told that documents of an agent are others; it must not wait. nil: nobody is
	Every    time.Duration      // between two looks at the folders; 0: half a minute
	Log      *slog.Logger       // nil: nothing is logged
}

// Library owns the documents of all agents, the indexes of their words, and the goroutine that reads them one after the other.
// Its methods may be called at the same time.
type Library struct {
	o    Options
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	wg   sync.WaitGroup
	seed maphash.Seed
	wake chan struct{} // room for one: there may be something to do

	loaded   chan struct{} // closed when the indexes of what was kept are made
	changing sync.Mutex    // held from the look at what a document is now to the change of the store and of all

	kept    *catalogue
	changes int // of the store when it was read last
}

// Folder describes a folder as it was seen last.
type Folder struct {
	Path   string
	Err    error // why it could not be looked through; nil: it was
	Others int   // files of kinds that are not read
	Beyond int   // documents beyond [MaxDocuments]
	Looked time.Time

	emptied time.Time // since when it has nothing although documents of it are known; zero: it has something
}

// Open makes a library of what is kept. Start has it read; Close ends it.
func Open(ctx context.Context, o Options) (*Library, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Embedder == nil {
		o.Embedder = func() Embedder { return nil }
	}
	if o.Gone == nil {
		o.Gone = func(context.Context, string) (bool, error) { return false, nil }
	}
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	if o.Every == 0 {
		o.Every = 30 * time.Second
	}
	all, changes, err := o.Store.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the documents: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	l := &Library{
		o: o, ctx: ctx, stop: stop, seed: maphash.MakeSeed(), wake: make(chan struct{}, 1), loaded: make(chan struct{}),
		kept: newCatalogue(), changes: changes,
	}
	for _, d := range all {
		l.kept.set(d, nil)
	}
	return l, nil
}

// Start has a goroutine read documents until Close. It is called once.
func (l *Library) Start() { l.wg.Go(l.run) }

// Close ends what the library does, and waits for it.
func (l *Library) Close() {
	l.stop()
	l.wg.Wait()
}

// Look has the folders looked at soon. It does not wait.
func (l *Library) Look() {
	select {
	case l.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// Has reports whether something can be found in documents of an agent. It does not wait.
func (l *Library) Has(agent string) bool { return l.kept.has(agent) }

// Documents lists those of an agent: uploads first, then those of folders, by name.
func (l *Library) Documents(agent string) []Document { return l.kept.documents(agent) }

// Folders lists those of an agent as they were seen last.
func (l *Library) Folders(agent string) (all []Folder) {
	for _, path := range l.o.Folders()[agent] {
		f := l.kept.folder(folderKey{agent, path})
		f.Path = path
		all = append(all, f)
	}
	return all
}

// Document returns one of an agent's documents with its pieces.
func (l *Library) Document(ctx context.Context, agent, id string) (Document, []Piece, error) {
	d, ok := l.kept.document(agent, id)
	if !ok {
		return d, nil, ErrUnknown
	}
	pieces, err := l.o.Store.Pieces(ctx, id)
	return d, pieces, err
}

// Delete deletes an upload for good. A file of a folder stays: [ErrInFolder].
func (l *Library) Delete(ctx context.Context, agent, id string) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	d, ok := l.kept.document(agent, id)
	switch {
	case !ok:
		return ErrUnknown
	case !d.Uploaded():
		return ErrInFolder
	}
	return l.drop(ctx, agent, d)
}

// Drop deletes all documents of an agent for good; the files of its folders stay.
func (l *Library) Drop(ctx context.Context, agent string) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	return l.drop(ctx, agent, l.Documents(agent)...)
}

// drop deletes documents of an agent. The caller holds changing.
func (l *Library) drop(ctx context.Context, agent string, all ...Document) error {
	if len(all) == 0 {
		return nil
	}
	var ids []string
	for i := range all {
		ids = append(ids, all[i].ID)
	}
	if err := l.o.Store.Delete(ctx, ids...); err != nil {
		return fmt.Errorf("delete documents: %w", err)
	}
	for i := range all {
		l.kept.remove(agent, all[i].ID)
		if all[i].Uploaded() {
			l.discard(all[i].ID)
		}
	}
	l.o.Changed(agent)
	return nil
}

// discard deletes the file of an upload.
func (l *Library) discard(id string) {
	if err := os.Remove(filepath.Join(l.o.Incoming, id)); l.o.Incoming != "" && err != nil && !errors.Is(err, os.ErrNotExist) {
		l.o.Log.Warn("the file of an upload is left", "document", id, "err", err)
	}
}

// volumes returns the indexes of an agent. It waits for those that are being made since the program has begun.
func (l *Library) volumes(ctx context.Context, agent string) ([]volume, error) {
	if !l.kept.has(agent) {
		return nil, nil
	}
	select {
	case <-l.loaded:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(loadingTime):
		return nil, ErrLoading
	}
	return l.kept.volumes(agent), nil
}
