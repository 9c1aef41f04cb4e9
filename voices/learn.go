package voices

import (
	"context"
	"errors"
	"time"

	"xiaozhi/providers"
)

// Check returns how much is said in sound that is to be somebody's voice, pauses apart. The error is [ErrShort] or [ErrQuiet].
func Check(pcm []int16) (said time.Duration, err error) {
	_, said, err = spoken(atMost(pcm, providers.MaxVoice), MinEnrol)
	return said, err
}

// Learn makes prints of a person's voice in several samples and keeps them all, or none. Who is not there yet by that name is added. The
// error is that of [Book.Enrol] or of [Book.Add].
func (b *Book) Learn(ctx context.Context, name, by string, source Source, device string, samples [][]int16) (p Person, err error) {
	p, there := b.Named(name)
	if !there {
		if b.o.Engine() == nil {
			return p, ErrOff
		}
		if p, err = b.Add(ctx, name, "", by); err != nil {
			return p, err
		}
	}
	var made []Voice
	for _, pcm := range samples {
		v, err := b.Enrol(ctx, p.ID, source, device, pcm)
		if err == nil {
			made = append(made, v)
			continue
		}
		return p, errors.Join(err, b.undo(context.WithoutCancel(ctx), p, !there, made))
	}
	return p, nil
}

// undo deletes what was kept of somebody, or with whole the person too. It does not wait for the service, which forgets behind it.
func (b *Book) undo(ctx context.Context, p Person, whole bool, made []Voice) (err error) {
	ctx, cancel := context.WithTimeout(ctx, removeTime)
	defer cancel()
	if whole {
		err = b.o.Store.Delete(ctx, p.ID, false)
	} else {
		for _, v := range made {
			err = errors.Join(err, b.o.Store.DeleteVoice(ctx, p.ID, v.Print.ID))
		}
	}
	return errors.Join(err, b.noticed(ctx))
}
