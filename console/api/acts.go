package api

import (
	"context"
	"net/http"
	"time"

	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/internal/access"
)

// SayOrder is the body of POST /api/v1/devices/ID/say.
type SayOrder struct {
	Text    string `json:"text"`
	Now     bool   `json:"now"`     // a device that is connected says it at once, not at the next pause
	Wait    int    `json:"wait"`    // seconds that the answer may take, until it was heard
	Expires int    `json:"expires"` // seconds after which it is not said any more; 0: a day
}

// Asked is the answer to POST /api/v1/devices/ID/ask.
type Asked struct {
	Answer string `json:"answer"` // "" while there is none
	Letter
}

// Stopped is the answer to POST /api/v1/devices/ID/stop.
type Stopped struct {
	Stopped bool `json:"stopped"` // there was something to stop
}

// maxWait is how long an answer may be waited for, in seconds.
const maxWait = 60

// say has a device told a text, now or when it comes. The answer is 202 as long as nobody has heard it.
func (a *api) say(r *http.Request, id string) (int, any, error) {
	var order SayOrder
	if err := read(r, &order); err != nil {
		return 0, nil, err
	}
	if order.Wait < 0 || order.Wait > maxWait || order.Expires < 0 {
		return 0, nil, errWait
	}
	l := mail.Letter{Device: id, Text: order.Text, Now: order.Now, Source: "api", By: access.PersonOf(r).Name}
	if order.Expires > 0 {
		l.Ends = time.Now().Add(time.Duration(order.Expires) * time.Second)
	}
	l, err := a.Letters.Send(r.Context(), l)
	if err == nil && order.Wait > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), time.Duration(order.Wait)*time.Second)
		defer cancel()
		l, err = a.Letters.Await(ctx, l.ID)
	}
	if !l.Fate.Over() {
		return http.StatusAccepted, letter(l, ""), err
	}
	return http.StatusOK, letter(l, ""), err
}

// find returns a letter of the device that the path names.
func (a *api) find(r *http.Request) (mail.Letter, error) {
	l, err := a.Letters.Find(r.Context(), r.PathValue("letter"))
	if err == nil && l.Device != a.ID(r.PathValue("id")) {
		err = mail.ErrNoLetter
	}
	return l, err
}

func (a *api) said(w http.ResponseWriter, r *http.Request) {
	l, err := a.find(r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, letter(l, ""))
}

func (a *api) withdraw(r *http.Request, _ string) (int, any, error) {
	l, err := a.find(r)
	if err == nil {
		l, err = a.Letters.Withdraw(r.Context(), l.ID)
	}
	return http.StatusOK, letter(l, ""), err
}

// ask has a device ask something, now or when it comes, and returns what its user says if that is known in time.
func (a *api) ask(r *http.Request, id string) (int, any, error) {
	order := struct {
		Text    string `json:"text"`
		Wait    *int   `json:"wait"`
		Expires int    `json:"expires"`
	}{}
	if err := read(r, &order); err != nil {
		return 0, nil, err
	}
	wait := maxWait
	if order.Wait != nil {
		wait = *order.Wait
	}
	if wait < 0 || wait > maxWait || order.Expires < 0 {
		return 0, nil, errWait
	}
	l := mail.Letter{Device: id, Kind: mail.Ask, Text: order.Text, Source: "api", By: access.PersonOf(r).Name}
	if access.PersonOf(r).Scopes == nil { // a person asks, no program
		l.Priority = mail.Urgent
	}
	if order.Expires > 0 {
		l.Ends = time.Now().Add(time.Duration(order.Expires) * time.Second)
	}
	l, err := a.Letters.Send(r.Context(), l)
	if _, ferr := a.Find(id); err == nil && ferr == nil && wait > 0 { // who sleeps is not waited for
		ctx, cancel := context.WithTimeout(r.Context(), time.Duration(wait)*time.Second)
		defer cancel()
		l, err = a.Letters.Await(ctx, l.ID)
	}
	if err == nil && l.Fate == mail.Heard {
		err = remote.ErrNoAnswer
	}
	if !l.Fate.Over() {
		return http.StatusAccepted, Asked{l.Answer, letter(l, "")}, err
	}
	return http.StatusOK, Asked{l.Answer, letter(l, "")}, err
}

func (a *api) listen(r *http.Request, id string) (int, any, error) {
	d, err := a.Find(id)
	if err == nil {
		err = d.Listen(r.Context())
	}
	return http.StatusOK, struct{}{}, err
}

func (a *api) stop(r *http.Request, id string) (int, any, error) {
	d, err := a.Find(id)
	if err != nil {
		return 0, nil, err
	}
	stopped, err := d.Stop(r.Context())
	return http.StatusOK, Stopped{stopped}, err
}
