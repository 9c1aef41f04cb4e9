package app

import (
	"context"
	"errors"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/connection/identity"
	"xiaozhi/internal/directory"
	"xiaozhi/mcp/gateway/catalog"
	"xiaozhi/mcp/gateway/offer"
)

// What programs have devices say and ask by the gateway goes by the office of letters. A device that is not known has none: it is
// spoken to directly, while it is connected.

func (o outside) acts() offer.Acts {
	return offer.Acts{Say: o.say, Ask: o.ask, Listen: o.listen, Abort: o.abort, Letter: o.letter, Sleeping: o.sleeping}
}

// sleeping lists the known devices that are not connected.
func (o outside) sleeping() (all []offer.Device) {
	for _, k := range o.all() {
		if k.State != identity.Paired.String() {
			continue
		}
		if _, err := o.devices.Find(k.ID); err != nil {
			all = append(all, offer.Device{ID: k.ID, Name: o.named(k.ID)})
		}
	}
	return all
}

func (o outside) say(ctx context.Context, id, words string, now bool) (offer.Said, error) {
	l, err := o.send(ctx, mail.Letter{Device: id, Kind: mail.Say, Text: words, Now: now})
	if errors.Is(err, mail.ErrNoDevice) {
		return with(ctx, o, id, func(d directory.Device) (offer.Said, error) {
			spoken, err := d.Say(ctx, words, now)
			return offer.Said{Heard: spoken.Heard, Whole: spoken.Whole}, err
		})
	}
	return fateOf(l), inLanguage(ctx, err)
}

func (o outside) ask(ctx context.Context, id, question string) (offer.Said, error) {
	l, err := o.send(ctx, mail.Letter{Device: id, Kind: mail.Ask, Text: question})
	if errors.Is(err, mail.ErrNoDevice) {
		return with(ctx, o, id, func(d directory.Device) (offer.Said, error) {
			answer, err := d.Ask(ctx, question)
			return offer.Said{Answer: answer}, err
		})
	}
	if err == nil && l.Fate == mail.Heard {
		err = remote.ErrNoAnswer
	}
	return fateOf(l), inLanguage(ctx, err)
}

// letter tells what has become of a letter that a program has sent.
func (o outside) letter(ctx context.Context, id string) (device string, said offer.Said, err error) {
	l, err := o.letters.Find(ctx, id)
	if err != nil {
		return "", said, err
	}
	said = fateOf(l)
	said.ID, said.Fate = l.ID, string(l.Fate)
	return l.Device, said, nil
}

// send sends a letter, and waits for its fate if its device is there and may speak. A caller who has left takes it back.
func (o outside) send(ctx context.Context, l mail.Letter) (mail.Letter, error) {
	if o.letters == nil {
		return mail.Letter{}, mail.ErrNoDevice
	}
	l.Source, l.By = "mcp", catalog.CallerFrom(ctx).Name()
	sent, err := o.letters.Send(ctx, l)
	if err != nil || !o.letters.There(l.Device) || o.quiet.Of(l.Device).On {
		return sent, err
	}
	sent, err = o.letters.Await(ctx, sent.ID)
	if err == nil && !sent.Fate.Over() && ctx.Err() != nil {
		if taken, terr := o.letters.Withdraw(context.WithoutCancel(ctx), sent.ID); terr == nil {
			return taken, context.Cause(ctx)
		}
		return sent, context.Cause(ctx)
	}
	return sent, err
}

// fateOf is what a program is told of a letter.
func fateOf(l mail.Letter) offer.Said {
	words := []rune(l.Text)
	s := offer.Said{Heard: string(words[:min(l.Heard, len(words))]), Whole: l.Heard > 0 && l.Heard >= len(words), Answer: l.Answer}
	if l.Fate == mail.Heard || l.Fate == mail.Answered || l.Fate == "" {
		return s
	}
	s.Fate, s.Why, s.ID = string(l.Fate), string(l.Why), l.ID
	if !l.Fate.Over() {
		s.Expires = l.Ends.Truncate(time.Second)
	}
	return s
}

