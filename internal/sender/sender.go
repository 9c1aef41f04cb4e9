// Package sender has all devices that an address means say, ask or play something.
package sender

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/spoken"
)

// Errors of orders, beside those of package mail and of addresses.
var (
	ErrAt   = errors.New("the time is none, or is over")
	ErrLang = errors.New("the language is none")
)

// maxAt bounds the words of a time, in bytes.
const maxAt = 100

// Letters keeps what devices are to be told: a [mail.Office].
type Letters interface {
	SendAll(ctx context.Context, all []mail.Letter) (kept []mail.Letter, failed []error, err error)
	Await(ctx context.Context, id string) (mail.Letter, error)
}

// Fleet tells of devices: a [fleet.Fleet].
type Fleet interface {
	List(ctx context.Context) ([]fleet.Device, error)
}

// Options say what a [Sender] uses. All must be set.
type Options struct {
	Letters Letters
	Fleet   Fleet
	Groups  func(id string) []string       // of a device
	Zone    func(id string) *time.Location // of a device
	HasSong func(song string) error        // nil, or [mail.ErrNoSong], as far as that can be told at once
}

// Sender sends. Its methods may be called at the same time.
type Sender struct{ o Options }

// New makes a sender.
func New(o Options) *Sender { return &Sender{o} }

// Order says what devices are to do.
type Order struct {
	To       string // as [fleet.Meant] reads it
	Kind     mail.Kind
	Text     string
	Prompt   string
	Song     string
	Lang     string        // a tag; "": the text tells it, or the device
	Now      bool          // a device that is there does not wait for a pause
	At       string        // RFC 3339, or words such as "tomorrow at 7" by the clocks of each device; "": at once
	Expires  time.Duration // after At; 0: 24 hours
	Priority mail.Priority
	Source   string
	By       string
	Key      string
}

// Sent is a letter with its device.
type Sent struct {
	mail.Letter

	Device fleet.Device
	Err    error // why it is not kept; nil: it is
}

// Meant returns the devices that an address means, of those that somebody may speak to. The error is [fleet.ErrNobody] if there is
// none.
func (s *Sender) Meant(ctx context.Context, to string, may func(d fleet.Device) bool) ([]fleet.Device, error) {
	all, err := s.o.Fleet.List(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(d fleet.Device) bool { return !may(d) })
	return fleet.Meant(to, all, s.o.Groups)
}

// Send sends a letter to each device that is meant. For one device its error is that of Send.
func (s *Sender) Send(ctx context.Context, o Order, may func(d fleet.Device) bool) ([]Sent, error) {
	devices, err := s.Meant(ctx, o.To, may)
	if err != nil {
		return nil, err
	}
	return s.SendTo(ctx, o, devices)
}

// SendTo is Send for devices that are known already, of which there is at least one.
func (s *Sender) SendTo(ctx context.Context, o Order, devices []fleet.Device) ([]Sent, error) {
	lang := text.Lang("")
	if o.Lang != "" {
		var err error
		if lang, err = text.ParseLang(o.Lang); err != nil {
			return nil, ErrLang
		}
	}
	if o.Kind == mail.Play && strings.TrimSpace(o.Song) != "" {
		if err := s.o.HasSong(o.Song); err != nil {
			return nil, err
		}
	}
	now, letters := time.Now(), make([]mail.Letter, len(devices))
	for i, d := range devices {
		at, err := readAt(o.At, now.In(cmp.Or(s.o.Zone(d.ID), time.UTC)))
		if err != nil {
			return nil, err
		}
		l := mail.Letter{
			Device: d.ID, Kind: o.Kind, Text: o.Text, Prompt: o.Prompt, Song: o.Song, Lang: lang, Now: o.Now, At: at, Priority: o.Priority, Source: o.Source, By: o.By, Key: o.Key,
		}
		if o.Expires > 0 {
			if l.At.IsZero() {
				l.At = now
			}
			l.Ends = l.At.Add(o.Expires)
		}
		letters[i] = l
	}
	kept, failed, err := s.o.Letters.SendAll(ctx, letters)
	if err != nil {
		return nil, err
	}
	if len(failed) == 1 && failed[0] != nil {
		return nil, failed[0]
	}
	sent := make([]Sent, len(kept))
	for i, l := range kept {
		sent[i] = Sent{l, devices[i], failed[i]}
	}
	return sent, nil
}

// Await waits until all letters are over, or ctx ends, which is no error.
func (s *Sender) Await(ctx context.Context, all []Sent) error {
	for i := range all {
		if all[i].Err != nil {
			continue
		}
		l, err := s.o.Letters.Await(ctx, all[i].ID)
		if err != nil {
			return err
		}
		all[i].Letter = l
	}
	return nil
}

// readAt reads a time; zero: none is given.
func readAt(words string, now time.Time) (time.Time, error) {
	words = strings.TrimSpace(words)
	if words == "" {
		return time.Time{}, nil
	}
	if len(words) > maxAt {
		return time.Time{}, ErrAt
	}
	at, err := time.Parse(time.RFC3339, words)
	if err != nil {
		var rule string
		if at, rule, err = spoken.When(words, now); err != nil || rule != "" {
			return time.Time{}, ErrAt
		}
	}
	if at.Before(now.Add(-time.Minute)) { // clocks differ by a little
		return time.Time{}, ErrAt
	}
	return at, nil
}
