package connection

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"xiaozhi/mcp/device"
)

// visionPath is where devices are told to send their pictures.
const visionPath = "/mcp/vision/explain"

// Limits of an upload (section 5.6). Firmware waits 30 s for the answer's head
// and cannot take a body of 8 KiB; the tool that uploads is given 60 s in all.
const (
	uploadTime     = 30 * time.Second // for the whole request
	explainTime    = 25 * time.Second // from its end to the answer
	maxDrained     = 8 << 20          // bytes read past a mistake, so that the answer is read
	maxExplanation = 4000             // bytes of text
	maxVisionReply = 7 << 10          // bytes of JSON
)

// Explainer looks at pictures. It may be called by many goroutines at once.
type Explainer interface {
	// Explain answers the question about a picture. It returns soon after ctx
	// ends. An *ExcuseError is told to the device as it is; of any other error
	// the device hears only that there was one.
	Explain(ctx context.Context, p Picture) (string, error)
}

// Picture is what a device's camera tool asks about.
type Picture struct {
	DeviceID string
	Language string // "zh" or "en", of the device
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

// newVisionToken is a token for one connection's uploads.
func newVisionToken() string { return "vis_" + rand.Text() }

// vision is what the device of a connection is told of uploads; nil: nothing.
func (c *conn) vision() *device.Vision {
	if c.server.opts.Explainer == nil {
		return nil
	}
	return &device.Vision{URL: c.who.baseURL + visionPath, Token: c.visionToken}
}

// serveVision answers what a device's camera tool uploads. A device takes
// nothing but status 200 with a Content-Length; what went wrong with a picture
// is therefore told in the answer, so that the model can say it. Only who shows
// no valid token gets another status.
func (s *Server) serveVision(w http.ResponseWriter, r *http.Request) {
	allowBrowsers(w, r)
	w.Header().Set("Connection", "close") // devices ask once, and the time limits are this request's
	switch r.Method {
	case http.MethodPost:
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		notAllowed(w, "POST, OPTIONS")
		return
	}
	c, err := s.uploader(r)
	if err != nil {
		s.log.Warn("picture refused", "remote", r.RemoteAddr, "err", err)
		w.Header().Set("WWW-Authenticate", "Bearer")
		body, _ := encode(explanation{Message: "设备未连接，或令牌不正确。 / The device is not connected, or the token is wrong."})
		writeBody(w, http.StatusUnauthorized, "application/json; charset=utf-8", body)
		return
	}
	answer := s.answerUpload(w, r, c)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer can
	writeBody(w, http.StatusOK, "application/json; charset=utf-8", answer.fit())
}

// Why an upload was refused.
var (
	errNotConnected = errors.New("the device is not connected")
	errSlowModel    = errors.New("the model did not answer in time")
	errSpeechless   = errors.New("the model said nothing")
)

// uploader is the connection of the device that uploads. The token must be the
// one that this connection was given.
func (s *Server) uploader(r *http.Request) (*conn, error) {
	who, err := s.identify(r)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	c := s.conns[who.deviceID]
	s.mu.Unlock()
	switch shown := withoutBearer(r.Header.Get("Authorization")); {
	case c == nil:
		return nil, fmt.Errorf("%w: %s", errNotConnected, who.deviceID)
	case shown == "":
		return nil, fmt.Errorf("%w: %s", errNoToken, who.deviceID)
	case !sameToken(shown, c.visionToken):
		return nil, fmt.Errorf("%w: %s", errWrongToken, who.deviceID)
	}
	return c, nil
}

// answerUpload reads an upload and has it explained.
func (s *Server) answerUpload(w http.ResponseWriter, r *http.Request, c *conn) explanation {
	language := s.languageFor(c.who.deviceID, s.opts.Settings(c.who.deviceID).Language)
	began := time.Now()
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(began.Add(uploadTime)) // not every writer can
	var up upload
	err := s.looks.begin(c.who.deviceID)
	if err == nil {
		defer s.looks.end(c.who.deviceID)
		up, err = readUpload(r.Header.Get("Content-Type"), r.Body)
	}
	if err != nil {
		_, _ = io.CopyN(io.Discard, r.Body, maxDrained) // a device that cannot send all reads no answer
		c.log.Warn("picture not accepted", "err", err, "took", time.Since(began))
		return explanation{Message: excuse(err, language)}
	}
	_ = deadlines.SetReadDeadline(time.Time{}) // else it would end the request while the model thinks
	uploaded := time.Since(began)
	text, err := s.explain(r.Context(), Picture{
		DeviceID: c.who.deviceID, Language: language, Question: up.question, MIMEType: up.kind, Data: up.data,
	})
	log := c.log.With("type", up.kind, "size", len(up.data), "upload", uploaded, "took", time.Since(began)-uploaded)
	if err != nil {
		log.Warn("picture not explained", "err", err)
		return explanation{Message: excuse(err, language)}
	}
	log.Info("picture explained", "answer", len(text))
	return explanation{Success: true, Action: "RESPONSE", Response: clip(text, maxExplanation)}
}

// explain asks the Explainer, whose crash is this picture's trouble only.
func (s *Server) explain(ctx context.Context, p Picture) (text string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, explainTime, errSlowModel)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			s.log.Error("panic while a picture was explained", "device_id", p.DeviceID, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("explain: panic: %v", v)
		}
	}()
	text, err = s.opts.Explainer.Explain(ctx, p)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err == nil && text == "":
		return "", errSpeechless
	}
	return text, err
}

// excuse is what the device's model is told of an error.
func excuse(err error, language string) string {
	if reason, ok := errors.AsType[*ExcuseError](err); ok {
		return clip(reason.Text, maxExplanation)
	}
	flaw, ok := errors.AsType[*uploadError](err)
	if !ok {
		flaw = &uploadError{zh: "看图时出错了，请稍后再试。", en: "Looking at the picture failed. Try again later."}
	}
	if errors.Is(err, errSlowModel) {
		flaw = &uploadError{zh: "看图的模型没有及时回答，请稍后再试。", en: "The model that sees did not answer in time. Try again later."}
	}
	if language == "zh" {
		return flaw.zh
	}
	return flaw.en
}

// fit is the answer's JSON in the size that a device can take.
func (e explanation) fit() []byte {
	for {
		body, err := encode(e)
		if err != nil || len(body) <= maxVisionReply {
			return body
		}
		// Signs that are escaped take up to six bytes each.
		e.Response, e.Message = clip(e.Response, len(e.Response)/2), clip(e.Message, len(e.Message)/2)
	}
}
