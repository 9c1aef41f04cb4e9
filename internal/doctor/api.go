package doctor

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/contact"
	"xiaozhi/internal/text/message"
)

// Path is where programs ask the doctor.
const Path = "/api/v1/doctor"

// BundlePath is where the bundle for support is.
const BundlePath = "/console/bundle"

// API serves the doctor to programs, and the pages of phones.
type API struct {
	Doctor *Doctor
	Guard  *access.Guard
	// Owner returns the id of the account that a device belongs to; "": nobody's.
	Owner func(ctx context.Context, device string) (string, error)
	// Device returns the one spelling of a device's id.
	Device func(typed string) string
	Remote func(r *http.Request) netip.Addr
	Bundle func(r Report) Bundle
	// Works shows a page to whoever has opened a link. nil: a plain text does.
	Works func(w http.ResponseWriter, r *http.Request)
}

// Answer is the answer to GET /api/v1/doctor.
type Answer struct {
	Report
	Phone   *Link             `json:"phone,omitempty"` // the newest page that was made for a phone; nil: there is none
	Devices []contact.Contact `json:"devices"`         // the newest first, without causes
	Callers []contact.Called  `json:"callers"`         // who asked last where to connect
}

// Seen is the answer to GET /api/v1/doctor/devices/ID.
type Seen struct {
	contact.Contact
	Called  bool             `json:"called"`            // it has called since the server was started
	Also    []string         `json:"also,omitempty"`    // contacts of others that say the same Device-Id
	Callers []contact.Called `json:"callers,omitempty"` // where it has not called: who has, for owners
	Sent    string           `json:"sent,omitempty"`    // in the step that raw names
}

const callers = 10

// Routes declare who may ask: owners all, members how their own devices do, and everybody opens a link that they have.
func (a *API) Routes() []access.Route {
	look := account.Need{Role: account.Owner, Scope: account.Read}
	act := account.Need{Role: account.Owner, Scope: account.Admin}
	own := account.Need{Role: account.Member, Scope: account.Read, Own: true}
	owner := func(r *http.Request) (string, error) { return a.Owner(r.Context(), a.device(r)) }
	people := func(need account.Need, pattern string, f http.HandlerFunc) access.Route {
		return access.Route{Pattern: pattern, For: access.People, Need: need, Handler: f}
	}
	bundle := people(act, "GET "+BundlePath, a.bundle)
	bundle.Use, bundle.Need.Again = access.Export, true
	return []access.Route{
		people(look, "GET "+Path, func(w http.ResponseWriter, r *http.Request) { a.report(w, r, a.Doctor.Report) }),
		people(act, "POST "+Path, func(w http.ResponseWriter, r *http.Request) { a.report(w, r, a.Doctor.Run) }),
		people(act, "POST "+Path+"/phone", func(w http.ResponseWriter, _ *http.Request) { access.Answer(w, http.StatusOK, a.Doctor.Links().New()) }),
		{Pattern: "GET " + Path + "/devices/{id}", For: access.People, Need: own, Owner: owner, Handler: http.HandlerFunc(a.contact)},
		bundle,
		{Pattern: "GET " + PhonePath + "{code}", For: access.Anyone, Handler: http.HandlerFunc(a.phone)},
	}
}

// device is the id that a path names; callers without one are named by their address.
func (a *API) device(r *http.Request) string {
	id := r.PathValue("id")
	if contact.IsNameless(id) {
		return id
	}
	return a.Device(id)
}

func (a *API) report(w http.ResponseWriter, r *http.Request, look func(context.Context) (Report, error)) {
	found, err := look(r.Context())
	if err != nil { // who asked is gone
		return
	}
	access.Answer(w, http.StatusOK, a.Doctor.Answer(found))
}

// Answer is all that an owner is told.
func (d *Doctor) Answer(found Report) Answer {
	answer := Answer{Report: found, Devices: d.o.Contacts.List(), Callers: append([]contact.Called{}, d.o.Contacts.Callers(callers)...)}
	if l, ok := d.links.Last(); ok {
		answer.Phone = &l
	}
	return answer
}

func (a *API) contact(w http.ResponseWriter, r *http.Request) {
	id := a.device(r)
	raw, err := access.Choice(r, "raw", contact.StepNames()...)
	if err != nil {
		a.Guard.Fail(w, r, err)
		return
	}
	answer := Seen{}
	answer.Contact, answer.Called = a.Doctor.Contact(r.Context(), id)
	log := a.Doctor.Contacts()
	if access.PersonOf(r).Role == account.Owner {
		for _, h := range log.Heads() {
			if strings.HasPrefix(h.Device, id+"~") {
				answer.Also = append(answer.Also, h.Device)
			}
		}
		if !answer.Called {
			answer.Callers = log.Callers(callers)
		}
	}
	if step, ok := contact.ParseStep(raw); ok {
		answer.Sent = log.Raw(id, step)
	}
	access.Answer(w, http.StatusOK, answer)
}

func (a *API) bundle(w http.ResponseWriter, r *http.Request) {
	found, err := a.Doctor.Report(r.Context())
	if err != nil {
		return // who asked is gone
	}
	b := a.Bundle(found)
	var file bytes.Buffer
	err = b.Write(&file)
	a.Guard.Did(r, "doctor.bundle", "", err)
	if err != nil {
		a.Guard.Fail(w, r, err)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/zip")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "xiaozhi-support-"+b.Now.Format("20060102-150405")+".zip"))
	h.Set("Cache-Control", "no-store")
	_, _ = w.Write(file.Bytes()) // who asked may be gone
}

// phone notes that somebody has opened a link, and tells them so in both languages: it is all that they need to know.
func (a *API) phone(w http.ResponseWriter, r *http.Request) {
	id, status := "doctor/phone-works", http.StatusOK
	if r.Method != http.MethodGet || !a.Doctor.Links().Open(r.PathValue("code"), a.Remote(r), r.UserAgent()) {
		id, status = "doctor/phone-over", http.StatusNotFound
	} else if a.Works != nil {
		a.Works(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	fmt.Fprintln(w, strings.ReplaceAll(message.Both(id), " / ", "\n\n"))
}
