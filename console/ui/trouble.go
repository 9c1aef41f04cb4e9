package ui

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/text"
)

// Refused answers for a page that somebody may not see, or that failed. It is the Refused of routes of pages.
func (s *Site) Refused(w http.ResponseWriter, r *http.Request, err error) {
	if !s.leads(w, r, err) {
		status, why := s.cause(w, r, err)
		s.problem(w, r, status, why)
	}
}

// Failed answers for a page whose list could not be read: what was asked for is kept, and the cause stands where the rows would be.
func (s *Site) Failed(w http.ResponseWriter, r *http.Request, name string, c Content, err error) {
	if !s.leads(w, r, err) {
		var status int
		status, c.Trouble = s.cause(w, r, err)
		s.show(w, r, status, name, c)
	}
}

// Unclear answers for a page whose address asks for what cannot be, as the trouble of its content says.
func (s *Site) Unclear(w http.ResponseWriter, r *http.Request, name string, c Content) {
	s.show(w, r, http.StatusBadRequest, name, c)
}

// leads leads to where somebody shows who they are, if that is what is missing.
func (s *Site) leads(w http.ResponseWriter, r *http.Request, err error) bool {
	switch {
	case errors.Is(err, account.ErrNoSession):
		Redirect(w, r, Prefix+"login"+back(r))
	case errors.Is(err, account.ErrProveAgain):
		Redirect(w, r, Prefix+"prove"+back(r))
	default:
		return false
	}
	return true
}

// cause says why a page cannot be shown. What is not for the one who asks is in the log, by a number.
func (s *Site) cause(w http.ResponseWriter, r *http.Request, err error) (status int, why string) {
	reason, known := errors.AsType[account.ReasonError](err)
	choice, chosen := errors.AsType[*access.ChoiceError](err)
	often, tooOften := errors.AsType[*account.TooOftenError](err)
	switch {
	case known && reason == account.ErrPageBad:
		status, why = http.StatusBadRequest, s.Say(r, "frame/no-place")
	case known:
		if status, known = refusals[reason]; !known {
			status = http.StatusBadRequest
		}
		why = s.Reason(r, reason)
	case chosen:
		status, why = http.StatusBadRequest, choice.In(Lang(r))
	case tooOften:
		w.Header().Set("Retry-After", fmt.Sprint(int(often.Wait.Seconds())+1))
		status, why = http.StatusTooManyRequests, s.Reason(r, err)
	default:
		return http.StatusInternalServerError, s.Say(r, "frame/failed", s.logged(r, err))
	}
	return status, text.Sentence(why)
}

var refusals = map[account.ReasonError]int{
	account.ErrForbidden: http.StatusForbidden, account.ErrOrigin: http.StatusForbidden, account.ErrNoUser: http.StatusNotFound,
	account.ErrNoDevice: http.StatusNotFound, account.ErrNoTalk: http.StatusNotFound, account.ErrBusy: http.StatusServiceUnavailable,
}

// NotFound answers for a page that is not there.
func (s *Site) NotFound(w http.ResponseWriter, r *http.Request) {
	s.problem(w, r, http.StatusNotFound, s.Say(r, "frame/not-found"))
}

// problem shows a page that says only what is wrong.
func (s *Site) problem(w http.ResponseWriter, r *http.Request, status int, what string) {
	s.show(w, r, status, "problem", Content{Title: s.Say(r, "frame/problem"), Data: text.Sentence(what)})
}

// logged writes a failure to the log, and returns its number there.
func (s *Site) logged(r *http.Request, err error) (id string) {
	id = strconv.FormatInt(s.o.Now().UnixNano(), 36)
	s.o.Log.Error("a page failed", "id", id, "method", r.Method, "path", r.URL.Path, "err", err)
	return id
}

// broken answers for a failure whose reason is not for the one who asks: by a number that is in the log too.
func (s *Site) broken(w http.ResponseWriter, r *http.Request, err error) {
	v := s.view(r, Content{Title: s.Say(r, "frame/problem"), Data: s.Say(r, "frame/failed", s.logged(r, err))})
	access.PageHeaders(w, r)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusInternalServerError)
	if body, err := s.render(v, "problem"); err == nil {
		_, _ = w.Write(body) // the browser may be gone
	}
}
