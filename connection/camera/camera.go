// Package camera takes the pictures that devices upload, has them described, and
// answers as the devices' camera tools can read it (docs/protocol.md 5.6).
package camera

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"xiaozhi/connection"
	"xiaozhi/connection/request"
	"xiaozhi/internal/lockout"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/mcp/rawjson"
)

// Limits of an upload (docs/protocol.md 5.6). Firmware waits 30 s for the answer's head
// and cannot take a body of 8 KiB; the tool that uploads is given 60 s in all.
const (
	uploadTime     = 30 * time.Second // for the whole request
	explainTime    = 25 * time.Second // from its end to the answer
	maxDrained     = 8 << 20          // bytes read past a mistake, so that the answer is read
	maxExplanation = 4000             // bytes of text
	maxVisionReply = 7 << 10          // bytes of JSON
	writeTimeout   = 5 * time.Second  // of the answer
)

// Explainer describes pictures. It may be called by many goroutines at once.
type Explainer interface {
	// Explain answers the question about a picture. It returns soon after ctx
	// ends. An *ExcuseError is told to the device as it is; of any other error
	// the device is told only that there was one.
	Explain(ctx context.Context, p Picture) (string, error)
}

// Picture is the question of a device's camera tool and its picture.
type Picture struct {
	DeviceID string
	Language string // a tag of BCP 47, of the device
	Question string // as the model asked it; never empty
	MIMEType string // image/jpeg, image/png, image/gif or image/webp, as its content shows
	Data     []byte
}

// ExcuseError is a reason that may be told to people, in the device's language.
type ExcuseError struct{ Text string }

// Error is the reason.
func (e *ExcuseError) Error() string { return e.Text }

// explanation is the answer to an upload: the text that the model gets as the
// result of the camera tool.
type explanation struct {
	Success  bool   `json:"success"`
	Action   string `json:"action,omitempty"`   // RESPONSE
	Response string `json:"response,omitempty"` // of a success
	Message  string `json:"message,omitempty"`  // of a failure
}

// Options make a [Handler].
type Options struct {
	Registry  *connection.Registry
	Requests  *request.Reader
	Explainer Explainer // nil: there is no such path
	Log       *slog.Logger
}

// Handler answers uploads. It may be used by many goroutines at once.
type Handler struct {
	o        Options
	slots    *uploadSlots
	refusals *lockout.Lines
}

// New makes a handler. All options but Explainer and Log must be set.
func New(o Options) *Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Handler{o: o, slots: newUploadSlots(), refusals: lockout.NewLines()}
}

// Wrap serves the paths of uploads and gives all others to next.
func (h *Handler) Wrap(next http.Handler) http.Handler {
	if h.o.Explainer == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch request.Path(r) {
		case request.VisionPath, "/api/vision", "/xiaozhi/api/vision":
			h.serve(w, r)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// serve answers what a device's camera tool uploads. A device takes nothing but
// status 200 with a Content-Length; what went wrong with a picture is therefore
// told in the answer, so that the model can say it. Only a sender without a valid
// token gets another status.
func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	if !h.o.Requests.AllowPage(w, r) {
		return
	}
	w.Header().Set("Connection", "close") // devices ask once, and the time limits are this request's
	switch r.Method {
	case http.MethodPost:
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		request.NotAllowed(w, "POST, OPTIONS")
		return
	}
	session, deviceID, err := h.uploader(r)
	if err != nil {
		h.refusals.Log(h.o.Log.Warn, "picture refused", "remote", r.RemoteAddr, "err", err)
		w.Header().Set("WWW-Authenticate", "Bearer")
		const refused = "connection/picture-refused"
		body, _ := rawjson.Marshal(explanation{Message: message.In(text.Chinese, refused) + " / " + message.In(text.English, refused)})
		request.WriteBody(w, http.StatusUnauthorized, "application/json; charset=utf-8", body)
		return
	}
	answer := h.answer(w, r, session, deviceID)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer can
	request.WriteBody(w, http.StatusOK, "application/json; charset=utf-8", answer.fit())
}

// Why an upload was refused or not explained.
var (
	errNotConnected = errors.New("the device is not connected")
	errSlowModel    = errors.New("the model did not answer in time")
	errEmpty        = errors.New("the model said nothing")
)

// uploader is the session of the device that uploads. The token must be the one
// that this session was given.
func (h *Handler) uploader(r *http.Request) (session *connection.Session, deviceID string, err error) {
	peer, err := h.o.Requests.Sender(r)
	if err != nil {
		return nil, "", err
	}
	shown := request.Bearer(r.Header.Get("Authorization"))
	session, deviceID, connected := h.o.Registry.Uploader(peer.Address, shown)
	switch {
	case !connected:
		return nil, "", fmt.Errorf("%w: %s", errNotConnected, peer.Address)
	case shown == "":
		return nil, "", fmt.Errorf("%w: %s", request.ErrNoToken, peer.Address)
	case session == nil:
		return nil, "", fmt.Errorf("%w: %s", request.ErrWrongToken, peer.Address)
	}
	return session, deviceID, nil
}

// answer reads an upload and has it explained.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, session *connection.Session, deviceID string) explanation {
	language := h.o.Registry.Language(deviceID)
	began := time.Now()
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(began.Add(uploadTime)) // not every writer can
	var up upload
	err := h.slots.acquire(deviceID)
	if err == nil {
		defer h.slots.release(deviceID)
		up, err = readUpload(r.Header.Get("Content-Type"), r.Body)
	}
	if err != nil {
		_, _ = io.CopyN(io.Discard, r.Body, maxDrained) // a device that cannot send all reads no answer
		session.Log().Warn("picture not accepted", "err", err, "took", time.Since(began))
		return explanation{Message: excuse(err, text.Lang(language))}
	}
	_ = deadlines.SetReadDeadline(time.Time{}) // else it would end the request while the model thinks
	uploaded := time.Since(began)
	words, err := h.explain(r.Context(), Picture{
		DeviceID: deviceID, Language: language, Question: up.question, MIMEType: up.kind, Data: up.data,
	})
	log := session.Log().With("type", up.kind, "size", len(up.data), "upload", uploaded, "took", time.Since(began)-uploaded)
	if err != nil {
		log.Warn("picture not explained", "err", err)
		return explanation{Message: excuse(err, text.Lang(language))}
	}
	log.Info("picture explained", "answer", len(words))
	return explanation{Success: true, Action: "RESPONSE", Response: text.Cut(words, maxExplanation)}
}

// explain asks the Explainer, whose crash is this picture's trouble only.
func (h *Handler) explain(ctx context.Context, p Picture) (words string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, explainTime, errSlowModel)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			h.o.Log.Error("panic while a picture was explained", "device_id", p.DeviceID, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("explain: panic: %v", v)
		}
	}()
	words, err = h.o.Explainer.Explain(ctx, p)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil && words == "":
		return "", errEmpty
	}
	return words, err
}

// excuse is the text of an error for the device's model.
func excuse(err error, lang text.Lang) string {
	if reason, ok := errors.AsType[*ExcuseError](err); ok {
		return text.Cut(reason.Text, maxExplanation)
	}
	if flaw, ok := errors.AsType[*uploadError](err); ok {
		return flaw.in(lang)
	}
	if errors.Is(err, errSlowModel) {
		return message.In(lang, "connection/picture-slow")
	}
	return message.In(lang, "connection/picture-failed")
}

// fit is the JSON of the answer, cut to the size that a device can take.
func (e explanation) fit() []byte {
	for {
		body, err := rawjson.Marshal(e)
		if err != nil || len(body) <= maxVisionReply {
			return body
		}
		// Characters that are escaped take up to six bytes each.
		e.Response, e.Message = text.Cut(e.Response, len(e.Response)/2), text.Cut(e.Message, len(e.Message)/2)
	}
}
