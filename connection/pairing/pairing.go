// Package pairing serves what a person does with devices: see them, accept, name,
// refuse and forget them. It does not ask who the person is: that is for whoever
// hands requests on.
package pairing

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/connection/request"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
)

// Path is where devices are listed. What is done with them is below it.
const Path = "/api/pairing"

// Options make a handler. Book must be set.
type Options struct {
	Book *identity.Book
	// Connected says which device talks now. nil: none does.
	Connected func(id string) bool
	// Agent names whom a device talks to. nil: nobody knows.
	Agent func(id string) string
	// Forget drops what others keep of a device, once the book has forgotten it, and
	// lists files and folders that are left and may hold what was said, also with an error. nil: nobody keeps anything.
	Forget func(ctx context.Context, id string) (left []string, err error)
	// Keeping holds for how many days what devices say is kept. nil: nothing of it is kept at all.
	Keeping Keeping
	// Audit keeps what was done, and to which device; outcome says why it was not. Who has
	// forgotten a device is kept, not which one it was. nil: it is only logged.
	Audit func(ctx context.Context, d Deed)
	// Callers lists who has asked last where to connect, a line each, for an owner whose code nobody waits with. nil: nobody knows.
	Callers func() []string
	Who     func(r *http.Request) string // names who asks, and who guesses at codes; nil: the owner
	Log     *slog.Logger                 // nil: discarded
}

// Device is one device in a [List].
type Device struct {
	identity.Known
	Connected bool   `json:"connected"`
	Agent     string `json:"agent,omitempty"`
	Keep      Days   `json:"keep,omitempty"` // days of its own
}

// List is the answer to GET /api/pairing.
type List struct {
	Mode    string   `json:"mode"` // open, ask or closed
	Devices []Device `json:"devices"`
}

// Order is the body of POST /api/pairing/ACT, where ACT is pair, rename, refuse, keep or forget.
type Order struct {
	Device string `json:"device,omitempty"` // its id
	Code   string `json:"code,omitempty"`   // of pair, in place of the id
	Name   string `json:"name,omitempty"`   // of rename
	Keep   Days   `json:"keep,omitempty"`   // of keep
}

// Done is the answer to it.
type Done struct {
	Device string   `json:"device"`
	Left   []string `json:"left,omitempty"` // files that may hold what a device that was forgotten has said
}

// Deed is something that a person has done, or was kept from.
type Deed struct {
	Who     string
	Remote  string // address
	Act     string // such as device.pair
	Device  string // its id; "" of one that was forgotten
	Outcome error  // nil: it was done
}

// Limits of a request.
const (
	maxBody  = 4 << 10
	bodyTime = 10 * time.Second
)

// Owner is who does it where nobody is named: somebody with the admin token.
const Owner = "owner"

// filled returns the options with what is left out.
func (o Options) filled() Options {
	if o.Connected == nil {
		o.Connected = func(string) bool { return false }
	}
	if o.Agent == nil {
		o.Agent = func(string) string { return "" }
	}
	if o.Forget == nil {
		o.Forget = func(context.Context, string) ([]string, error) { return nil, nil }
	}
	if o.Who == nil {
		o.Who = func(*http.Request) string { return Owner }
	}
	if o.Audit == nil {
		o.Audit = func(context.Context, Deed) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// New returns the handler of [Path] and what is below it.
func New(o Options) http.Handler {
	o = o.filled()
	h := &handler{o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, h.list)
	mux.HandleFunc("POST "+Path+"/{act}", h.act)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fail(w, http.StatusNotFound, "pairing/no-path") })
	return mux
}

// Claim returns the handler by which somebody makes a new device theirs by its code, without being an owner. owned is
// told which one it is.
func Claim(o Options, owned func(r *http.Request, id string) error) http.Handler {
	h := &handler{o.filled()}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		order, ok := h.order(w, r)
		if !ok {
			return
		}
		by := h.o.Who(r)
		id, err := h.o.Book.Claim(r.Context(), order.Code, by)
		if err == nil {
			err = owned(r, id)
		}
		h.answer(w, r, by, "pair", Done{Device: id}, err)
	})
}

// Rename returns the handler by which somebody gives a device a name, whose id is "id" of the path, without being an owner.
func Rename(o Options) http.Handler {
	h := &handler{o.filled()}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if order, ok := h.order(w, r); ok {
			id := identity.ParseID(r.PathValue("id"))
			h.answer(w, r, h.o.Who(r), "rename", Done{Device: id}, h.o.Book.Rename(r.Context(), id, order.Name))
		}
	})
}

// Decide returns the handler by which an owner has an act of [Order] done to a device, whose id is "id" of the path: pair,
// refuse or forget. then is told of the device; nil: nobody is.
func Decide(o Options, act string, then func(r *http.Request, id string) error) http.Handler {
	h := &handler{o.filled()}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		by := h.o.Who(r)
		done, err := h.do(r.Context(), by, act, Order{Device: r.PathValue("id")})
		if err == nil && then != nil {
			err = then(r, done.Device)
		}
		h.answer(w, r, by, act, done, err)
	})
}

type handler struct{ o Options }

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	days := h.days(r.Context())
	answer := List{Mode: h.o.Book.Mode().String(), Devices: []Device{}}
	for _, k := range h.o.Book.List() {
		answer.Devices = append(answer.Devices, Device{k, h.o.Connected(k.ID), h.o.Agent(k.ID), days[k.ID]})
	}
	request.WriteJSON(w, answer)
}

func (h *handler) act(w http.ResponseWriter, r *http.Request) {
	act := r.PathValue("act")
	if order, ok := h.order(w, r); ok {
		by := h.o.Who(r)
		done, err := h.do(r.Context(), by, act, order)
		h.answer(w, r, by, act, done, err)
	}
}

// order reads a request. Not ok: it has been answered.
func (h *handler) order(w http.ResponseWriter, r *http.Request) (order Order, ok bool) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "pairing/json")
		return order, false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not every writer can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &order)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "pairing/json")
		return order, false
	}
	return order, true
}

// answer tells what was done, here and in the audit.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, by, act string, done Done, err error) {
	h.audit(r, by, act, done.Device, err)
	// A wrong code may be that of another server: it is not logged.
	log := h.o.Log.With("act", "device "+text.Cut(act, 16), "who", by, "remote", r.RemoteAddr, "device_id", text.Cut(done.Device, 160))
	if err != nil {
		log.Warn("audit", "ok", false, "err", err)
		status, why := explain(err)
		if errors.Is(err, identity.ErrNoSuchCode) && h.o.Callers != nil {
			failWith(w, status, why, h.o.Callers())
			return
		}
		fail(w, status, why)
		return
	}
	log.Info("audit", "ok", true)
	request.WriteJSON(w, done)
}

// audit keeps what was done with a device there is.
func (h *handler) audit(r *http.Request, by, act, id string, err error) {
	if errors.Is(err, errNoAct) {
		return
	}
	d := Deed{Who: by, Remote: r.RemoteAddr, Act: "device." + act, Device: id, Outcome: err}
	if err == nil && act == "forget" || errors.Is(err, identity.ErrNoSuchDevice) {
		d.Device = ""
	}
	h.o.Audit(r.Context(), d)
}

var errNoAct = errors.New("there is no such act")

func (h *handler) do(ctx context.Context, by, act string, o Order) (did Done, err error) {
	book := h.o.Book
	did.Device = identity.ParseID(o.Device)
	switch act {
	case "pair":
		did.Device, err = book.Accept(ctx, cmp.Or(o.Code, o.Device), by)
	case "rename":
		err = book.Rename(ctx, did.Device, o.Name)
	case "refuse":
		err = book.Refuse(ctx, did.Device, by)
	case "keep":
		err = Keep(ctx, h.o, did.Device, o.Keep)
	case "forget":
		if err = book.Forget(ctx, did.Device); err == nil {
			did.Left = h.forget(ctx, did.Device)
		}
	default:
		return Done{}, errNoAct
	}
	return did, err
}

// forget drops what others keep of a device, and names files in which something may be left.
func (h *handler) forget(ctx context.Context, id string) []string {
	left, err := h.o.Forget(ctx, id)
	if err != nil {
		h.o.Log.Error("a forgotten device has left something", "err", err, "files", left)
	}
	return left
}

// explain returns the status and the message of an error.
func explain(err error) (status int, id string) {
	f, known := message.FailureOf(err, []message.Failure{
		{Err: identity.ErrNoSuchCode, Status: http.StatusNotFound, ID: "pairing/code-unknown"},
		{Err: identity.ErrCodeUsed, Status: http.StatusConflict, ID: "pairing/code-used"},
		{Err: identity.ErrCodeExpired, Status: http.StatusGone, ID: "pairing/code-expired"},
		{Err: identity.ErrNotACode, Status: http.StatusBadRequest, ID: "pairing/no-code"},
		{Err: identity.ErrGuesses, Status: http.StatusTooManyRequests, ID: "pairing/guesses"},
		{Err: identity.ErrNoSuchDevice, Status: http.StatusNotFound, ID: "pairing/no-device"},
		{Err: identity.ErrNoName, Status: http.StatusBadRequest, ID: "pairing/no-name"},
		{Err: identity.ErrTaken, Status: http.StatusConflict, ID: "pairing/taken"},
		{Err: identity.ErrNotWritten, Status: http.StatusInsufficientStorage, ID: "pairing/not-written"},
		{Err: errNoAct, Status: http.StatusNotFound, ID: "pairing/no-path"},
		{Err: errDays, Status: http.StatusBadRequest, ID: "pairing/days"},
		{Err: errNoKept, Status: http.StatusConflict, ID: "pairing/no-store"},
	})
	if !known {
		return http.StatusInternalServerError, "connection/internal"
	}
	return f.Status, f.ID
}

// Reason returns the message that says to people why something was not done to a device; "": it is not for them.
func Reason(err error) (id string) {
	status, id := explain(err)
	if status == http.StatusInternalServerError {
		return ""
	}
	return id
}

// fail answers with an error in both languages.
func fail(w http.ResponseWriter, status int, id string) { failWith(w, status, id, nil) }

// failWith is fail with who has asked last where to connect.
func failWith(w http.ResponseWriter, status int, id string, callers []string) {
	said := strings.TrimSpace(message.Both(id))
	if len(callers) > 0 {
		said += "\n" + message.Both("pairing/callers") + "\n  " + strings.Join(callers, "\n  ")
	}
	request.WriteStatusJSON(w, status, struct {
		Code    string   `json:"code"`    // for programs
		Error   string   `json:"error"`   // in English
		Message string   `json:"message"` // in both languages
		Callers []string `json:"callers,omitempty"`
	}{id, message.In(text.English, id), said, callers})
}
