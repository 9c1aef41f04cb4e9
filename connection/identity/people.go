package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxName is how long the name of a device may be, in bytes.
const maxName = 64

// Known is a device as people see it.
type Known struct {
	ID       string    `json:"id"`
	State    string    `json:"state"`
	Name     string    `json:"name,omitempty"`
	Board    string    `json:"board,omitempty"`
	Firmware string    `json:"firmware,omitempty"`
	By       string    `json:"by,omitempty"`
	Token    string    `json:"token"` // none, offered or used
	First    time.Time `json:"first"`
	Seen     time.Time `json:"seen"`
	Code     string    `json:"code,omitempty"` // that it waits with
	Remote   string    `json:"remote,omitempty"`
}

// Why something is not done for a person.
var (
	ErrNoSuchDevice = errors.New("no device is known by this id")
	ErrNoName       = errors.New("a name has letters or digits, and at most 64 bytes")
	ErrNotWritten   = errors.New("nothing has changed, because it could not be written down")
	ErrTaken        = errors.New("this device is known already; only an owner can accept it again")
)

// List describes all devices in the order of their ids.
func (b *Book) List() []Known {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expire(time.Now())
	list := make([]Known, 0, len(b.byID))
	for id, e := range b.byID {
		k := Known{
			ID: id, State: e.State.String(), Name: e.Name, Board: e.Board, Firmware: e.Firmware, By: e.By,
			Token: "none", First: e.First, Seen: e.Seen,
		}
		switch {
		case e.Tokens.Used != "":
			k.Token = "used"
		case len(e.Tokens.Offered) > 0:
			k.Token = "offered"
		}
		if p := b.desk.byID[id]; p != nil {
			k.Code, k.Remote = p.Code, p.Remote
		}
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b Known) int { return strings.Compare(a.ID, b.ID) })
	return list
}

// Name returns the name that a person has given to a device; "" for none.
func (b *Book) Name(id string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.byID[id]; e != nil {
		return e.Name
	}
	return ""
}

// ParseID returns the id that a person has typed, in any spelling.
func ParseID(typed string) string {
	address, rest, strange := strings.Cut(strings.TrimSpace(typed), mark)
	if !strange {
		return Canonical(address)
	}
	return Canonical(address) + mark + strings.ToLower(rest)
}

// Accept makes the device with a code, or with an id, the one that holds its address.
// Another pair that held it is forgotten; what is kept of the device stays. by is who
// asks for it, and how often he may guess. It returns the device's id.
//
// A device that is known already gets a new token when it asks the next time.
func (b *Book) Accept(ctx context.Context, codeOrID, by string) (id string, err error) {
	return b.accept(ctx, by, func() (string, error) { return b.meant(codeOrID, by) })
}

// Claim is [Book.Accept] for somebody who may not take over what others have: by a code only, of a device whose address
// nobody holds. Otherwise it is [ErrTaken], and the code can still be used.
func (b *Book) Claim(ctx context.Context, code, by string) (id string, err error) {
	return b.accept(ctx, by, func() (string, error) {
		digits := plainCode(code)
		if !isCode(digits) {
			return "", ErrNotACode
		}
		id, err := b.desk.accept(digits, by, time.Now())
		if err != nil {
			return "", err
		}
		if holder := b.byID[AddressOf(id)]; holder != nil && holder.State.known() {
			return "", ErrTaken
		}
		return id, nil
	})
}

func (b *Book) accept(ctx context.Context, by string, meant func() (string, error)) (id string, err error) {
	before := ""
	err = b.act(ctx, commitTime, func() (string, error) {
		b.expire(time.Now())
		if id, err = meant(); err != nil {
			return "", err
		}
		e := *b.byID[id]
		before, id = id, e.Address
		e.State, _ = Next(e.State, Accepted, Sight{Page: e.State == Browser})
		e.By, e.Since, e.Tokens, e.token, e.failed = by, time.Now(), Tokens{}, "", false
		if old := b.byID[e.Address]; old != nil && e.Name == "" {
			e.Name = old.Name
		}
		b.settle(&e)
		return before, nil
	})
	if err != nil {
		return "", err
	}
	b.o.Expel(id)
	if before != id {
		b.o.Expel(before)
	}
	return id, nil
}

// meant returns the id of the device that a person means. What has six digits is a
// code, so that no device can be called like the code of another. The caller holds mu.
func (b *Book) meant(codeOrID, by string) (id string, err error) {
	digits := plainCode(codeOrID)
	switch id = ParseID(codeOrID); {
	case isCode(digits):
		return b.desk.accept(digits, by, time.Now())
	case b.byID[id] != nil:
		return id, nil
	case digitsOnly(digits):
		return "", ErrNotACode
	default:
		return "", ErrNoSuchDevice
	}
}

// plainCode returns a code as it is kept, without what people put between its digits.
func plainCode(code string) string { return strings.NewReplacer(" ", "", "-", "").Replace(code) }

// Rename gives a device a name.
func (b *Book) Rename(ctx context.Context, id, name string) error {
	name, ok := plainName(name)
	return b.act(ctx, commitTime, func() (string, error) {
		e := b.byID[id]
		switch {
		case e == nil:
			return "", ErrNoSuchDevice
		case !ok:
			return "", ErrNoName
		}
		renamed := *e
		renamed.Name = name
		b.keep(&renamed)
		return id, nil
	})
}

// Refuse turns a device away from now on.
func (b *Book) Refuse(ctx context.Context, id, by string) error {
	err := b.act(ctx, commitTime, func() (string, error) {
		if b.byID[id] == nil {
			return "", ErrNoSuchDevice
		}
		e := *b.byID[id]
		e.State, _ = Next(e.State, Rejected, Sight{})
		e.By, e.Since, e.Tokens, e.token = by, time.Now(), Tokens{}, ""
		b.desk.settle(id, ErrCodeExpired)
		b.keep(&e)
		return id, nil
	})
	if err == nil {
		b.o.Expel(id)
	}
	return err
}

// Forget drops all that is kept of a device here. It is as new when it comes again.
func (b *Book) Forget(ctx context.Context, id string) error {
	err := b.act(ctx, forgetTime, func() (string, error) {
		if b.byID[id] == nil {
			return "", ErrNoSuchDevice
		}
		b.drop(id, ErrCodeExpired)
		return id, nil
	})
	if err == nil {
		b.o.Expel(id)
	}
	return err
}

// act does what a person wants and returns when it is written down. With an error
// nothing has changed. do is called with mu held; it puts changed copies in the place
// of entries, and returns the id that it has changed beside that entry's address.
func (b *Book) act(ctx context.Context, limit time.Duration, do func() (id string, err error)) error {
	b.mu.Lock()
	entries, pairings, spent := clone(b.byID), clone(b.desk.byID), b.desk.spent
	id, err := do()
	touched := clone(b.dirty)
	b.mu.Unlock()
	if err != nil {
		return err
	}
	failed, err := b.flush(ctx, limit)
	if err := cmp.Or(err, failed[id], failed[AddressOf(id)]); err != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		for t := range touched {
			if t == id || t == AddressOf(id) {
				put(b.byID, t, entries[t])
				put(b.desk.byID, t, pairings[t])
				b.touch(t) // others may be writing down what is no more
			}
		}
		b.desk.spent = spent
		return fmt.Errorf("%w: %w", ErrNotWritten, err)
	}
	return nil
}

// AddressOf returns the Device-Id of a device by its id.
func AddressOf(id string) string {
	address, _, _ := strings.Cut(id, mark)
	return address
}

func clone[V any](m map[string]V) map[string]V {
	c := make(map[string]V, len(m))
	maps.Copy(c, m)
	return c
}

// put sets a value; nil removes it.
func put[V any](m map[string]*V, key string, value *V) {
	if value == nil {
		delete(m, key)
		return
	}
	m[key] = value
}

// plainName returns a name in one line without signs that steer, or not ok.
func plainName(name string) (plain string, ok bool) {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, name)
	name = strings.Join(strings.Fields(name), " ")
	ok = len(name) <= maxName && utf8.ValidString(name) && strings.ContainsFunc(name, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) })
	return name, ok
}
