package talks

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/store"
)

// Routes serve sound and what is taken out.
func (t *Talks) Routes() []access.Route {
	own := account.Need{Role: account.Member, Scope: account.Read, Own: true}
	fresh := account.Need{Role: account.Member, Own: true, Fresh: true}
	return []access.Route{
		{Pattern: "GET /console/media/{turn}/{side}", For: access.People, Need: own, Owner: t.OwnerOfTurn, Handler: http.HandlerFunc(t.media)},
		{Pattern: "GET /console/conversations/{talk}/export/{form}", For: access.People, Need: fresh, Owner: t.OwnerOfTalk, Use: access.Export, Handler: http.HandlerFunc(t.export)},
		{Pattern: "GET /console/turns/{turn}/fixture", For: access.People, Need: fresh, Owner: t.OwnerOfTurn, Use: access.Export, Handler: http.HandlerFunc(t.fixture)},
	}
}

// Unknown has what is not there answered as that.
func Unknown(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return account.ErrNoTalk
	}
	return err
}

// The sides of a turn.
const (
	sideUser  = "user"
	sideReply = "reply"
	sideBoth  = "both"
)

// The types of sound.
const (
	typeWAV  = "audio/wav"
	typeOpus = "audio/ogg; codecs=opus"
)

// media gives the sound of a turn: as WAV, or with ?as=opus as it is kept.
func (t *Talks) media(w http.ResponseWriter, r *http.Request) {
	turn, talk, err := t.Turn(r.Context(), r.PathValue("turn"))
	if err != nil {
		t.o.Guard.Fail(w, r, Unknown(err))
		return
	}
	side := r.PathValue("side")
	if side != sideUser && side != sideReply && side != sideBoth {
		access.Refuse(w, http.StatusNotFound, "talks/side", message.Both("talks/side"))
		return
	}
	as, err := access.Choice(r, "as", "opus", "wav")
	if err != nil {
		t.o.Guard.Fail(w, r, err)
		return
	}
	t.listens(r, &talk, turn.ID)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cross-Origin-Resource-Policy", "same-origin")
	if side != sideBoth && as == "opus" {
		err = t.opus(w, r, &turn, side)
	} else {
		err = t.wav(w, r, &turn, side)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		access.Refuse(w, http.StatusNotFound, "talks/no-sound", t.NoSoundBoth(&turn))
	case errors.Is(err, errLong):
		access.Refuse(w, http.StatusRequestEntityTooLarge, "talks/sound-long", message.Both("talks/sound-long", int(maxLength.Minutes())))
	case err != nil:
		t.o.Guard.Fail(w, r, err)
	}
}

// NoSoundBoth says in both languages why a side of a turn cannot be heard.
func (t *Talks) NoSoundBoth(turn *Turn) string {
	en, zh := t.NoSound(turn, text.English), t.NoSound(turn, text.Chinese)
	if en == "" {
		en, zh = message.In(text.English, "talks/no-side"), message.In(text.Chinese, "talks/no-side")
	}
	return en + " / " + zh
}

// listens keeps in the audit that somebody hears the sound of a device that is not theirs: once in ten minutes of each
// turn, since browsers ask for sound in pieces.
func (t *Talks) listens(r *http.Request, talk *store.Talk, turnID string) {
	p := access.PersonOf(r)
	if talk.OwnerID != "" && talk.OwnerID == p.ID {
		return
	}
	key, now, told := p.ID+" "+turnID, time.Now(), false
	t.heard.Update(key, func(last time.Time) (time.Time, int) {
		if told = now.Sub(last) < heardFor; told {
			return last, 0
		}
		return now, 0
	})
	if !told {
		t.o.Guard.Did(r, "turn.listen", turnID, nil)
	}
}

// opus gives a side as it is kept.
func (t *Talks) opus(w http.ResponseWriter, r *http.Request, turn *Turn, side string) error {
	rec, ok := turn.Side(side, time.Now())
	if !ok {
		return fs.ErrNotExist
	}
	f, err := t.o.Sound.Open(rec.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", typeOpus)
	http.ServeContent(w, r, "", turn.At, f)
	return nil
}

// wav gives a side, or both, as WAV.
func (t *Talks) wav(w http.ResponseWriter, r *http.Request, turn *Turn, side string) error {
	select {
	case t.decodes <- struct{}{}:
		defer func() { <-t.decodes }()
	case <-r.Context().Done():
		return nil // nobody waits for an answer
	}
	var out bytes.Buffer
	if side == sideBoth {
		pcm, err := t.both(turn)
		if err != nil {
			return err
		}
		if err := file.WriteStereo(&out, pcm, replyRate); err != nil {
			return err
		}
	} else {
		rate := replyRate
		if side == sideUser {
			rate = userRate
		}
		pcm, err := t.side(turn, side, rate)
		if err != nil {
			return err
		}
		if err := file.WriteWAV(&out, pcm, rate); err != nil {
			return err
		}
	}
	w.Header().Set("Content-Type", typeWAV)
	http.ServeContent(w, r, "", turn.At, bytes.NewReader(out.Bytes()))
	return nil
}
