// Package pairing serves what a person does with devices: see them, accept, name,
// refuse and forget them. It does not ask who the person is: that is for whoever
// hands requests on.
package pairing

import (
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
	// Forget drops what others keep of a device, once the book has forgotten it. nil:
	// nobody does.
	Forget func(ctx context.Context, id string) error
	Log    *slog.Logger // nil: discarded
}

// Device is one device in a [List].
type Device struct {
	identity.Known
	Connected bool `json:"connected"`
}

// List is the answer to GET /api/pairing.
type List struct {
	Mode    string   `json:"mode"` // open, ask or closed
	Devices []Device `json:"devices"`
}

// Order is the body of POST /api/pairing/ACT, where ACT is pair, rename, refuse or forget.
type Order struct {
	Device string `json:"device,omitempty"` // its id
	Code   string `json:"code,omitempty"`   // of pair, in place of the id
	Name   string `json:"name,omitempty"`   // of rename
}

// Done is the answer to it.
type Done struct {
	Device string `json:"device"`
}

// Limits of a request.
const (
	maxBody  = 4 << 10
	bodyTime = 10 * time.Second
	by       = "owner" // who does it: nobody else is let in
)

// New returns the handler of [Path] and what is below it.
func New(o Options) http.Handler {
	if o.Connected == nil {
		o.Connected = func(string) bool { return false }
	}
	if o.Forget == nil {
		o.Forget = func(context.Context, string) error { return nil }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	h := &handler{o}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, h.list)
	mux.HandleFunc("POST "+Path+"/{act}", h.act)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fail(w, http.StatusNotFound, "pairing/no-path") })
	return mux
}

type handler struct{ o Options }

func (h *handler) list(w http.ResponseWriter, _ *http.Request) {
	answer := List{Mode: h.o.Book.Mode().String(), Devices: []Device{}}
	for _, k := range h.o.Book.List() {
		answer.Devices = append(answer.Devices, Device{k, h.o.Connected(k.ID)})
	}
	request.WriteJSON(w, answer)
}

func (h *handler) act(w http.ResponseWriter, r *http.Request) {
	act := r.PathValue("act")
	var order Order
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "pairing/json")
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not every writer can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = json.Unmarshal(body, &order)
	}
	if err != nil {
		fail(w, http.StatusBadRequest, "pairing/json")
		return
	}
	id, err := h.do(r.Context(), act, order)
	// A wrong code may be that of another server: it is not logged.
	log := h.o.Log.With("act", "device "+text.Cut(act, 16), "who", by, "remote", r.RemoteAddr, "device_id", text.Cut(id, 160))
	if err != nil {
		log.Warn("audit", "ok", false, "err", err)
		status, why := explain(err)
		fail(w, status, why)
		return
	}
	log.Info("audit", "ok", true)
	request.WriteJSON(w, Done{id})
}

var errNoAct = errors.New("there is no such act")

func (h *handler) do(ctx context.Context, act string, o Order) (id string, err error) {
	book := h.o.Book
	id = identity.ParseID(o.Device)
	switch act {
	case "pair":
		if o.Code != "" {
			return book.Accept(ctx, o.Code, by)
		}
		return book.Accept(ctx, o.Device, by)
	case "rename":
		return id, book.Rename(ctx, id, o.Name)
	case "refuse":
		return id, book.Refuse(ctx, id, by)
	case "forget":
		if err := book.Forget(ctx, id); err != nil {
			return id, err
		}
		return id, h.o.Forget(ctx, id)
	default:
		return "", errNoAct
	}
}

// explain returns the status and the message of an error.
func explain(err error) (status int, id string) {
	for _, e := range []struct {
		err    error
		status int
		id     string
	}{
		{identity.ErrNoSuchCode, http.StatusNotFound, "pairing/code-unknown"},
		{identity.ErrCodeUsed, http.StatusConflict, "pairing/code-used"},
		{identity.ErrCodeExpired, http.StatusGone, "pairing/code-expired"},
		{identity.ErrNotACode, http.StatusBadRequest, "pairing/no-code"},
		{identity.ErrGuesses, http.StatusTooManyRequests, "pairing/guesses"},
		{identity.ErrNoSuchDevice, http.StatusNotFound, "pairing/no-device"},
		{identity.ErrNoName, http.StatusBadRequest, "pairing/no-name"},
		{identity.ErrNotWritten, http.StatusInsufficientStorage, "pairing/not-written"},
		{errNoAct, http.StatusNotFound, "pairing/no-path"},
	} {
		if errors.Is(err, e.err) {
			return e.status, e.id
		}
	}
	return http.StatusInternalServerError, "connection/internal"
}

// fail answers with an error in both languages.
func fail(w http.ResponseWriter, status int, id string) {
	request.WriteStatusJSON(w, status, struct {
		Error   string `json:"error"`   // in English
		Message string `json:"message"` // in both languages
	}{message.In(text.English, id), strings.TrimSpace(message.Both(id))})
}
