package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"xiaozhi/mcp/rawjson"
)

// The headers of the streamable transport.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// rpcMessage is what the dispatcher reads of a JSON-RPC message.
type rpcMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// serveRPC is /api/mcp/jsonrpc: one address for clients with a session, for those
// of the newest revision, and for those who just post a call (mcp.md 7.2).
func (g *Gateway) serveRPC(w http.ResponseWriter, r *http.Request, c caller, stream string) {
	c.via = "jsonrpc"
	r = r.WithContext(withCaller(r.Context(), c))
	switch r.Method {
	case http.MethodPost:
		g.postRPC(w, r, c, stream)
	case http.MethodGet, http.MethodDelete:
		v, ok := g.views.kept(c, stream)
		if !ok {
			g.noStream(w, r, c, stream)
			return
		}
		if r.Header.Get(headerSession) == "" {
			w.Header().Set("Allow", "POST")
			g.problem(w, r, http.StatusMethodNotAllowed, codeMethod,
				say(c.language, "没有会话：GET 和 DELETE 需要 Mcp-Session-Id", "no session: GET and DELETE need Mcp-Session-Id"))
			return
		}
		g.stateful(w, r, v, nil)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		g.problem(w, r, http.StatusMethodNotAllowed, codeMethod, say(c.language, "不支持这个方法", "this method is not served"))
	}
}

func (g *Gateway) noStream(w http.ResponseWriter, r *http.Request, c caller, stream string) {
	g.problem(w, r, http.StatusNotFound, codeNoStream, say(c.language, "工作流未找到: ", "stream not found: ")+clip(stream))
}

// postRPC takes one message, or a batch of them, to where it belongs.
func (g *Gateway) postRPC(w http.ResponseWriter, r *http.Request, c caller, stream string) {
	body, status, err := g.readBody(w, r)
	if err != nil {
		reply(w, status, rpcError{"2.0", []byte("null"), rpcProblem{jsonrpc.CodeInvalidRequest, bodyProblem(c.language, status, err)}})
		return
	}
	var m rpcMessage
	shallow := rawjson.Depth(body) <= maxDepth
	parsed := shallow && json.Unmarshal(body, &m) == nil
	way := wayOf(r, m)
	find := g.views.of
	if r.Header.Get(headerSession) != "" {
		find = g.views.kept
	}
	v, ok := find(c, stream)
	if !ok {
		reply(w, http.StatusNotFound, rpcError{"2.0", idOf(m), rpcProblem{codeRefused, say(c.language, "工作流未找到: ", "stream not found: ") + clip(stream)}})
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	if !shallow {
		reply(w, http.StatusBadRequest, rpcError{"2.0", []byte("null"), rpcProblem{jsonrpc.CodeInvalidRequest, say(c.language, "嵌套太深", "nested too deeply")}})
		return
	}
	if way == wayBare {
		g.bareRPC(w, r, v, c, body)
		return
	}
	problem, status := g.checkForSDK(c, m, parsed, body)
	if problem == nil && way == wayStateful && parsed && m.Method != nil {
		problem, status = g.checkMethod(m, c.language), http.StatusOK
	}
	if problem != nil {
		reply(w, status, rpcError{"2.0", idOf(m), *problem})
		return
	}
	if way == wayStateful {
		g.stateful(w, r, v, &m)
		return
	}
	g.modern(w, r, v, c, m)
}

// way is one of the three ways in which a message can be served.
type way int

const (
	wayBare     way = iota // for itself, without a handshake, in an older revision
	wayStateful            // in a session, or to open one
	wayModern              // for itself, in the newest revision
)

// wayOf is the way of a message; m is empty if it could not be read.
func wayOf(r *http.Request, m rpcMessage) way {
	version := r.Header.Get(headerVersion)
	switch {
	case r.Header.Get(headerSession) != "" && version < versionModern:
		return wayStateful
	case version >= versionModern || metaVersion(m.Params) != "":
		return wayModern
	case m.Method != nil && *m.Method == "initialize" && m.Version == "2.0":
		return wayStateful
	}
	return wayBare
}

// checkForSDK says what is wrong with a message, or a batch, that the SDK is to
// read itself, and with which HTTP status that is told.
func (g *Gateway) checkForSDK(c caller, m rpcMessage, parsed bool, body []byte) (*rpcProblem, int) {
	if !parsed {
		return g.checkBatch(c, body)
	}
	if problem := checkID(m.ID, c.language); problem != nil {
		return problem, http.StatusBadRequest
	}
	message, err := jsonrpc.DecodeMessage(body)
	if err != nil {
		return nil, 0 // the SDK says why
	}
	return checkReading(m, message, c.language), http.StatusBadRequest
}

// modern serves a request of the newest revision. One that listens for changes
// lasts, and takes a place as a session does.
func (g *Gateway) modern(w http.ResponseWriter, r *http.Request, v *view, c caller, m rpcMessage) {
	out := plainly(w, m)
	defer out.stop()
	listens := m.Method != nil && *m.Method == "subscriptions/listen"
	out.noEvents = !listens && !acceptsEvents(r)
	acceptAll(r)
	if listens {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		done, ok := g.sessions.open(c.name(), cancel)
		if !ok {
			w.Header().Set("Retry-After", "10")
			reply(w, http.StatusServiceUnavailable, rpcError{"2.0", idOf(m), rpcProblem{codeRefused, say(c.language, "会话太多", "too many sessions")}})
			return
		}
		defer done()
		out.lasts(cancel)
		r = r.WithContext(ctx)
	}
	v.modern.ServeHTTP(out, r)
}

// errEncoded says that a body is compressed.
var errEncoded = errors.New("compressed bodies are not read")

// readBody reads a body that is not too long and comes in time. After an error
// the connection is closed. The rest of a body that is too long is taken in, if it
// comes soon, for many clients read no answer before they have sent all.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request) ([]byte, int, error) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(g.bodyTime)) // recorders have none
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, http.StatusUnsupportedMediaType, errEncoded
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		_ = rc.SetReadDeadline(time.Time{})
		return body, 0, nil
	}
	w.Header().Set("Connection", "close")
	status := http.StatusBadRequest
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		status = http.StatusRequestEntityTooLarge
		if r.ContentLength <= maxDrain {
			_, _ = io.CopyN(io.Discard, r.Body, maxDrain)
		}
	}
	_ = rc.SetReadDeadline(time.Now())
	return nil, status, err
}

// bodyProblem says what is wrong with a body that readBody did not take.
func bodyProblem(language string, status int, err error) string {
	switch status {
	case http.StatusRequestEntityTooLarge:
		return say(language, "请求体超过 ", "the body is over ") + strconv.Itoa(maxBody) + say(language, " 字节", " bytes")
	case http.StatusUnsupportedMediaType:
		return say(language, "不支持压缩的请求体 (Content-Encoding)", "compressed bodies are not read (Content-Encoding)")
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return say(language, "请求体没有及时到达", "the body did not come in time")
	}
	return say(language, "请求体无法读取", "the body cannot be read")
}

// idOf is the id to answer with: null where there is none that can be.
func idOf(m rpcMessage) json.RawMessage {
	if validID(m.ID) {
		return m.ID
	}
	return json.RawMessage("null")
}

// validID reports whether an id is a text or a number.
func validID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9')
}

// metaVersion is the revision that a request carries in its _meta: only those of
// the newest do.
func metaVersion(params json.RawMessage) string {
	if !bytes.Contains(params, []byte(sdk.MetaKeyProtocolVersion)) {
		return ""
	}
	var p struct {
		Meta map[string]any `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	version, _ := p.Meta[sdk.MetaKeyProtocolVersion].(string)
	return version
}

// acceptsEvents reports whether a client says that it can read a stream of events.
// Those that take anything are the seeds' examples, which read JSON.
func acceptsEvents(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Accept"), func(accept string) bool { return strings.Contains(accept, "text/event-stream") })
}

// acceptAll makes a request accept what the SDK wants accepted: the seeds' own
// examples say nothing of it.
func acceptAll(r *http.Request) {
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
}
