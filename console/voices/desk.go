// Package voices is what people do with the people who are known by their voices: the page of them, and routes for programs.
package voices

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"

	"xiaozhi/audio"
	"xiaozhi/audio/file"
	"xiaozhi/internal/access"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/voices"
)

// Book knows people by their voices: a [voices.Book].
type Book interface {
	Engine() string
	People() []voices.Person
	Person(id string) (voices.Person, bool)
	Voices(person string) (all []voices.Voice, stale map[string]bool)
	Removals() []voices.Removal
	Add(ctx context.Context, name, account, by string) (voices.Person, error)
	Edit(ctx context.Context, id, name, account string) error
	Enrol(ctx context.Context, person string, source voices.Source, device string, pcm []int16) (voices.Voice, error)
	DeleteVoice(ctx context.Context, person, id string) (left bool, err error)
	Try(ctx context.Context, pcm []int16) (voices.Trial, error)
}

// Options say what the desk uses. All must be set.
type Options struct {
	Book   Book
	Forget func(ctx context.Context, id string, memories bool) (Forgotten, error) // deletes a person
	Named  func(device string) string                                             // what a device is called; "": nothing
	Log    *slog.Logger
}

// Forgotten says what is left of a person who was deleted.
type Forgotten struct {
	Left  bool     // a service has not forgotten a voice yet; it is asked again
	Files []string // that may still hold something of theirs
}

// Desk does what people ask for. Its methods may be called at the same time.
type Desk struct{ o Options }

// NewDesk returns a desk.
func NewDesk(o Options) *Desk { return &Desk{o} }

// Limits of what is sent as somebody's voice.
const (
	maxFile = 8 << 20                         // bytes
	longest = 2 * int(providers.MaxVoice/1e9) // seconds of sound that are read: pauses count too
)

var (
	errSound = errors.New("it is no sound that can be read")
	errLong  = errors.New("the file is too long")
)

// failures lists how errors are told.
func failures() []message.Failure {
	return []message.Failure{
		{Err: voices.ErrNobody, Status: http.StatusNotFound, ID: "household/nobody"},
		{Err: voices.ErrTaken, Status: http.StatusConflict, ID: "household/taken"},
		{Err: voices.ErrName, Status: http.StatusBadRequest, ID: "household/name"},
		{Err: voices.ErrFull, Status: http.StatusConflict, ID: "household/full"},
		{Err: voices.ErrOff, Status: http.StatusConflict, ID: "household/off"},
		{Err: voices.ErrShort, Status: http.StatusUnprocessableEntity, ID: "household/short"},
		{Err: voices.ErrQuiet, Status: http.StatusUnprocessableEntity, ID: "household/quiet"},
		{Err: voices.ErrUnlike, Status: http.StatusUnprocessableEntity, ID: "household/unlike"},
		{Err: errSound, Status: http.StatusUnsupportedMediaType, ID: "household/sound"},
		{Err: errLong, Status: http.StatusRequestEntityTooLarge, ID: "household/long"},
		{Err: errBody, Status: http.StatusBadRequest, ID: "api/body"},
	}
}

// reason returns the message that says why something was not done; 0: it is not for people.
func reason(err error) (status int, id string, args []any) {
	if other, ok := errors.AsType[*voices.OtherError](err); ok {
		return http.StatusConflict, "household/other", []any{other.Name}
	}
	if f, known := message.FailureOf(err, failures()); known {
		return f.Status, f.ID, nil
	}
	if _, ok := errors.AsType[*providers.Error](err); ok {
		return http.StatusBadGateway, "household/failed", nil
	}
	return 0, "", nil
}

// logged passes an error on; one of what tells people apart goes to the log.
func (d *Desk) logged(err error) error {
	if status, _, _ := reason(err); status == http.StatusBadGateway {
		d.o.Log.Warn("a voice cannot be looked at", "provider", d.o.Book.Engine(), "err", err)
	}
	return err
}

// read reads the sound of a file: WAV, FLAC or Ogg Opus, at the rates of [audio.NewResampler]. The error is errSound or errLong.
func read(from io.Reader) (pcm []int16, err error) {
	content, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	if _, long := errors.AsType[*http.MaxBytesError](err); long || len(content) > maxFile {
		return nil, errLong
	}
	if err != nil {
		return nil, errSound
	}
	sound, rate := decoder(content)
	if sound == nil {
		return nil, errSound
	}
	to, err := audio.NewResampler(rate, providers.VoiceRate)
	if err != nil {
		return nil, errSound
	}
	part := make([]int16, 4096)
	for {
		n, err := sound.Read(part)
		pcm = append(pcm, part[:n]...)
		if len(pcm) > longest*rate {
			return nil, errLong
		}
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && len(pcm) > 0 { // what has come counts
			return to.Flush(to.Write(nil, pcm)), nil
		}
		if err != nil {
			return nil, errSound
		}
	}
}

// decoder opens the decoder of the kind that content begins with; nil: of none.
func decoder(content []byte) (sound interface{ Read([]int16) (int, error) }, rate int) {
	from := bytes.NewReader(content)
	switch {
	case bytes.HasPrefix(content, []byte("RIFF")):
		if w, err := file.NewWAVReader(from); err == nil {
			return w, w.Rate
		}
	case bytes.HasPrefix(content, []byte("fLaC")):
		if f, err := file.NewFLACReader(from); err == nil {
			return f, f.Rate()
		}
	case bytes.HasPrefix(content, []byte("OggS")):
		if o, err := file.NewOpusReader(from); err == nil {
			return o, o.Rate()
		}
	}
	return nil, 0
}

// person holds somebody with their voices.
type person struct {
	voices.Person

	Voices []voice
	Stale  bool // they have voices, and none of them is of use to the engine that counts
}

type voice struct {
	voices.Voice

	Where string // name of the device; "": none
	Stale bool   // it is of no use to the engine that counts
}

// people lists all with their voices.
func (d *Desk) people() []person {
	all := []person{}
	for _, p := range d.o.Book.People() {
		all = append(all, d.person(p))
	}
	return all
}

func (d *Desk) person(p voices.Person) person {
	one := person{Person: p}
	kept, stale := d.o.Book.Voices(p.ID)
	for _, v := range kept {
		shown := voice{Voice: v, Where: v.Device, Stale: stale[v.Print.ID]}
		if v.Device != "" {
			if name := d.o.Named(v.Device); name != "" {
				shown.Where = name
			}
		}
		one.Voices = append(one.Voices, shown)
	}
	one.Stale = len(one.Voices) > 0 && !slices.ContainsFunc(one.Voices, func(v voice) bool { return !v.Stale })
	return one
}

// rename changes the name of a person.
func (d *Desk) rename(ctx context.Context, id, name string) error {
	p, there := d.o.Book.Person(id)
	if !there {
		return voices.ErrNobody
	}
	return d.o.Book.Edit(ctx, id, name, p.Account)
}

// add adds a person.
func (d *Desk) add(r *http.Request, name string) (voices.Person, error) {
	return d.o.Book.Add(r.Context(), name, "", access.PersonOf(r).Name)
}

// enrol makes a print of somebody's voice in a file.
func (d *Desk) enrol(r *http.Request, id string, from io.Reader) (v voices.Voice, err error) {
	if _, there := d.o.Book.Person(id); !there {
		return v, voices.ErrNobody
	}
	pcm, err := read(from)
	if err != nil {
		return v, err
	}
	v, err = d.o.Book.Enrol(r.Context(), id, voices.File, "", pcm)
	return v, d.logged(err)
}

// try looks at a voice in a file.
func (d *Desk) try(r *http.Request, from io.Reader) (t voices.Trial, err error) {
	pcm, err := read(from)
	if err != nil {
		return t, err
	}
	t, err = d.o.Book.Try(r.Context(), pcm)
	return t, d.logged(err)
}
