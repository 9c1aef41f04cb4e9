// Package api serves programs: those routes below /api/v1/ that belong to no page and no other part.
package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/agent/feature/remote"
	"xiaozhi/docs"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/lockout"
	"xiaozhi/internal/routine"
	"xiaozhi/internal/sender"
	"xiaozhi/internal/text/message"
)

// Letters keeps what devices are to be told, connected or not: a [mail.Office].
type Letters interface {
	Send(ctx context.Context, l mail.Letter) (mail.Letter, error)
	List(ctx context.Context, f mail.Filter) ([]mail.Letter, error)
	Find(ctx context.Context, id string) (mail.Letter, error)
	Await(ctx context.Context, id string) (mail.Letter, error)
	Withdraw(ctx context.Context, id string) (mail.Letter, error)
}

// Fleet tells of devices: a [fleet.Fleet].
type Fleet interface {
	List(ctx context.Context) ([]fleet.Device, error)
	Get(ctx context.Context, id string) (d fleet.Device, ok bool, err error)
	Follow(follow func(id string)) (stop func())
}

// Options say what the routes use. All must be set.
type Options struct {
	Guard   *access.Guard
	Fleet   Fleet
	Letters Letters
	Sender  *sender.Sender

	Routines Routines

	Find   func(id string) (remote.Device, error)               // a connected device, or [directory.ErrNotConnected]
	ID     func(typed string) string                            // the one spelling of a device's id
	Owner  func(ctx context.Context, id string) (string, error) // id of the account of a device; "": nobody's
	Chains func(ctx context.Context, whole bool) (any, error)   // how the services are; not whole: without what they have said
}

type api struct {
	Options
	within time.Duration // of one write of a stream
	pace   *access.Pace
	hooks  *lockout.Guesses // of tokens
}

// Routes returns the routes, with who may ask them.
func Routes(o Options) []access.Route {
	return newAPI(o).routes()
}

func newAPI(o Options) *api {
	return &api{Options: o, within: writeTime, pace: access.NewPace(), hooks: lockout.New()}
}

func (a *api) routes() []access.Route {
	look := account.Need{Role: account.Member, Scope: account.Read}
	all := account.Need{Role: account.Viewer, Scope: account.Read}
	own := account.Need{Role: account.Member, Scope: account.Read, Own: true}
	act := account.Need{Role: account.Member, Scope: account.Say, Own: true}
	whose := func(r *http.Request) (string, error) { return a.Owner(r.Context(), a.ID(r.PathValue("id"))) }
	of := func(pattern string, need account.Need, h http.HandlerFunc) access.Route {
		route := access.Route{Pattern: pattern, For: access.People, Need: need, Handler: h}
		if need.Own {
			route.Owner = whose
		}
		return route
	}
	events := of("GET /api/v1/devices/events", look, a.events)
	events.Use = access.Stream
	const one = "/api/v1/devices/{id}"
	return slices.Concat(a.letterRoutes(), a.routineRoutes(), []access.Route{
		of("GET /api/v1/openapi.yaml", all, describe),
		of("GET /api/v1/services", all, a.services),
		of("GET /api/v1/devices", look, a.devices), events,
		of("GET "+one, own, a.device),
		of("POST "+one+"/say", act, a.acting("device.say", a.say)),
		of("GET "+one+"/said/{letter}", own, a.said),
		of("DELETE "+one+"/said/{letter}", act, a.acting("device.withdraw", a.withdraw)),
		of("POST "+one+"/ask", act, a.acting("device.ask", a.ask)),
		of("POST "+one+"/listen", act, a.acting("device.listen", a.listen)),
		of("POST "+one+"/stop", act, a.acting("device.stop", a.stop)),
	})
}

// describe gives the description of all routes.
func describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(docs.OpenAPI) // the other end may be gone
}

func (a *api) services(w http.ResponseWriter, r *http.Request) {
	chains, err := a.Chains(r.Context(), access.PersonOf(r).Role == account.Owner)
	if err != nil {
		a.Guard.Fail(w, r, err)
		return
	}
	access.Answer(w, http.StatusOK, chains)
}

// acting carries out what somebody wants of a device, within a rate, and keeps it in the audit.
func (a *api) acting(act string, do func(r *http.Request, id string) (status int, answer any, err error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := a.ID(r.PathValue("id"))
		err := a.pace.Often(access.PersonOf(r).ID, id)
		var status int
		var answer any
		if err == nil {
			status, answer, err = do(r, id)
		}
		a.Guard.Did(r, act, id, err)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		access.Answer(w, status, answer)
	}
}

// failure maps an error of a device to its answer.
type failure struct {
	err    error
	status int
	id     string // of the message
	code   string
}

// failures lists what devices cannot do, and what of it is whose fault.
func failures() []failure {
	return []failure{
		{directory.ErrNotConnected, http.StatusConflict, "app/device-over", "device/not-connected"},
		{feature.ErrOver, http.StatusConflict, "app/device-over", "device/not-connected"},
		{feature.ErrQueueFull, http.StatusConflict, "app/device-queue-full", "device/queue-full"},
		{feature.ErrQuiet, http.StatusConflict, "app/device-quiet", "device/quiet"},
		{remote.ErrManual, http.StatusConflict, "app/device-manual", "device/manual"},
		{remote.ErrNoAnswer, http.StatusConflict, "app/device-no-answer", "device/no-answer"},
		{remote.ErrUnheard, http.StatusConflict, "app/device-unheard", "device/unheard"},
		{mail.ErrFull, http.StatusConflict, "app/device-queue-full", "device/queue-full"},
		{mail.ErrLength, http.StatusBadRequest, "api/text", "api/text"},
		{mail.ErrNoDevice, http.StatusNotFound, "api/no-device", "api/no-device"},
		{mail.ErrNoLetter, http.StatusNotFound, "api/no-letter", "api/no-letter"},
		{mail.ErrOver, http.StatusConflict, "api/told", "api/told"},
		{mail.ErrTime, http.StatusBadRequest, "api/at", "api/at"},
		{mail.ErrNoSong, http.StatusNotFound, "api/no-song", "api/no-song"},
		{mail.ErrPriority, http.StatusBadRequest, "api/priority", "api/priority"},
		{sender.ErrAt, http.StatusBadRequest, "api/at", "api/at"},
		{sender.ErrLang, http.StatusBadRequest, "api/language", "api/language"},
		{fleet.ErrNobody, http.StatusNotFound, "api/nobody", "api/nobody"},
		{fleet.ErrSeveral, http.StatusConflict, "api/several", "api/several"},
		{routine.ErrNone, http.StatusNotFound, "routine/none", "routine/none"},
		{routine.ErrFile, http.StatusConflict, "routine/file", "routine/file"},
		{routine.ErrDevice, http.StatusConflict, "routine/device", "routine/device"},
		{routine.ErrMany, http.StatusConflict, "routine/full", "routine/full"},
		{routine.ErrOften, http.StatusTooManyRequests, "routine/often-run", "routine/often-run"},
		{errHook, http.StatusUnauthorized, "routine/hook-token", "routine/hook-token"},
		{errState, http.StatusBadRequest, "api/state", "api/state"},
		{errBody, http.StatusBadRequest, "api/body", "api/body"},
		{errWait, http.StatusBadRequest, "api/wait", "api/wait"},
	}
}

// fail answers with what went wrong.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	for _, f := range failures() {
		if errors.Is(err, f.err) {
			access.Refuse(w, f.status, f.code, message.Both(f.id))
			return
		}
	}
	a.Guard.Fail(w, r, err)
}

// Reason returns the message that says to people why something was not done; "": it is not for them.
func Reason(err error) (id string) {
	for _, f := range failures() {
		if errors.Is(err, f.err) {
			return f.id
		}
	}
	return ""
}

// Errors of requests.
var (
	errBody = errors.New("the body is not as it should be")
	errWait = errors.New("it cannot be waited for so long")

	errHook  = errors.New("there is no such hook, or its token is another one")
	errState = errors.New("there is no such state")
)

// read reads the body of a request; an empty one leaves into as it is.
func read(r *http.Request, into any) error {
	if r.ContentLength == 0 {
		return nil
	}
	in := json.NewDecoder(r.Body)
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil || in.More() {
		return errBody
	}
	return nil
}
