package recording

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xiaozhi/audio"
	"xiaozhi/store"
)

// The sides of a turn, as the store names them.
const (
	sideUser  = "user"
	sideReply = "reply"
)

const page = 50 // rows that are read at once

var errQuota = errors.New("it is larger than all recordings together may be")

// record writes the files of turns, then their rows. What fails is not recorded.
func (r *Recorder) record(ctx context.Context, turns []Turn) {
	if len(turns) == 0 {
		return
	}
	var rows []store.Recording
	var failed error
	written := len(turns)
	for i := range turns {
		of, err := r.files(ctx, &turns[i])
		if err != nil {
			failed = err
			written--
			r.mu.Lock()
			r.drop(1)
			r.mu.Unlock()
			continue
		}
		rows = append(rows, of...)
	}
	if err := r.rows(ctx, rows); err != nil {
		failed = err
		r.mu.Lock()
		r.drop(written)
		r.mu.Unlock()
	}
	r.note(&r.writing, failed)
}

// files writes the files of one turn: all, or none.
func (r *Recorder) files(ctx context.Context, t *Turn) (rows []store.Recording, err error) {
	if err := r.makeRoom(ctx, int64(t.bytes())+int64(t.bytes())/16+4096); err != nil {
		return nil, err
	}
	for _, side := range []struct {
		name    string
		packets *audio.Packets
		rate    int
	}{{sideUser, t.User, audio.Recognition.Rate}, {sideReply, t.Reply, t.Rate}} {
		if side.packets == nil || side.packets.Length() <= 0 {
			continue
		}
		path := name(t.Device) + "/" + name(t.Talk) + "/" + name(t.ID) + "-" + side.name + suffix
		size, err := r.o.write(path, side.packets, side.rate)
		if err != nil {
			return nil, errors.Join(err, r.remove(rows))
		}
		rows = append(rows, store.Recording{
			TurnID: t.ID, Side: side.name, Path: path, Length: side.packets.Length(), Bytes: int(size), EndsAt: t.At.Add(time.Duration(r.keep.Load())),
		})
	}
	return rows, nil
}

// rows names files in the store. Those of turns that are not there, because they were erased or dropped, are deleted.
func (r *Recorder) rows(ctx context.Context, rows []store.Recording) error {
	if len(rows) == 0 {
		return nil
	}
	err := r.o.Flush(ctx)
	var kept []bool
	if err == nil {
		kept, err = r.o.Table.Put(ctx, rows)
	}
	if err != nil {
		return errors.Join(err, r.remove(rows))
	}
	turns := map[string]bool{}
	for i := range rows {
		if !kept[i] {
			err = errors.Join(err, r.remove(rows[i:i+1]))
			continue
		}
		turns[rows[i].TurnID] = true
	}
	r.mu.Lock()
	r.stats.Written += uint64(len(turns))
	r.mu.Unlock()
	return err
}

// remove deletes files, not their rows.
func (r *Recorder) remove(rows []store.Recording) (err error) {
	for i := range rows {
		err = errors.Join(err, r.dir.remove(rows[i].Path))
	}
	return err
}

// makeRoom deletes the oldest recordings until there is room for so many bytes more.
func (r *Recorder) makeRoom(ctx context.Context, more int64) error {
	if more > r.quota.Load() {
		return fmt.Errorf("%w: %d bytes", errQuota, more)
	}
	used, err := r.o.Table.Bytes(ctx)
	if err != nil {
		return err
	}
	for over := int64(used) + more - r.quota.Load(); over > 0; {
		old, err := r.o.Table.Oldest(ctx, page)
		if err != nil || len(old) == 0 {
			return err
		}
		n := 0
		for ; n < len(old) && over > 0; n++ {
			over -= int64(old[n].Bytes)
		}
		if err := r.delist(ctx, old[:n]); err != nil {
			return err
		}
	}
	return nil
}

// delist deletes recordings: first the rows, then the files, so that no row names what is not there. A file that is left
// is swept later.
func (r *Recorder) delist(ctx context.Context, old []store.Recording) error {
	if len(old) == 0 {
		return nil
	}
	if err := r.o.Table.DeleteAll(ctx, old); err != nil {
		return err
	}
	return r.remove(old)
}

// tidy deletes what is too old, what is too much, and files that no row names.
func (r *Recorder) tidy(ctx context.Context) error {
	if err := r.o.Table.Shorten(ctx, time.Duration(r.keep.Load())); err != nil { // a device may have got fewer days
		return err
	}
	for {
		old, err := r.o.Table.Ended(ctx, page)
		if err != nil {
			return err
		}
		if err := r.delist(ctx, old); err != nil {
			return err
		}
		if len(old) < page {
			break
		}
	}
	if err := r.makeRoom(ctx, 0); err != nil {
		return err
	}
	return r.dir.sweep(func(talk string) (map[string]bool, error) {
		rows, err := r.o.Table.OfConversation(ctx, talk)
		named := map[string]bool{}
		for i := range rows {
			named[rows[i].Path] = true
		}
		return named, err
	})
}
