// Package azure is a fake of Azure Speech: recognition over a WebSocket, voices by HTTP
// and over a WebSocket, short-lived tokens and the list of voices, all on one socket.
package azure

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// hex32 is the form of the ids of requests.
var hex32 = regexp.MustCompile(`^[0-9a-fA-F]{32}$`)

// fake is the service.
type fake struct {
	*servicetest.Server
	t testing.TB

	mu     sync.Mutex
	tokens map[string]bool
	ended  int // turns that were ended in the middle, or went on after that
}

// New starts the fake. Beside the vendor's paths it has /forget, which makes all tokens
// invalid.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	f := &fake{t: t, tokens: map[string]bool{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /sts/v1.0/issueToken", f.token)
	mux.HandleFunc("GET /speech/recognition/{mode}/cognitiveservices/v1", f.hearing)
	mux.HandleFunc("GET /stt/speech/universal/v2", f.hearing)
	mux.HandleFunc("POST /cognitiveservices/v1", f.request)
	mux.HandleFunc("GET /tts/cognitiveservices/websocket/v1", f.speaking)
	mux.HandleFunc("GET /cognitiveservices/voices/list", f.voices)
	mux.HandleFunc("GET /forget", func(http.ResponseWriter, *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		clear(f.tokens)
	})
	f.Server = servicetest.New(t, mux.ServeHTTP,
		servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongVoice,
		servicetest.Slow, servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge,
		servicetest.Odd, servicetest.Stale, servicetest.Ends, servicetest.Parts, servicetest.Late)
	return f.Server
}

// allowed lets a request in, by key or by token, or refuses it.
func (f *fake) allowed(w http.ResponseWriter, r *http.Request) bool {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	f.mu.Lock()
	known := f.tokens[token]
	f.mu.Unlock()
	switch fault := f.Fault(); {
	case fault == servicetest.WrongKey, token == "" && r.Header.Get("Ocp-Apim-Subscription-Key") != servicetest.Key:
		f.Refuse(w, http.StatusUnauthorized, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`)
	case token != "" && !known:
		f.Refuse(w, http.StatusForbidden, "", "Content-Type", "text/plain")
	case fault == servicetest.NoMoney:
		f.Refuse(w, http.StatusForbidden, `{"error":{"code":"403","message":"Out of call volume quota."}}`)
	case fault == servicetest.RateLimited:
		f.Refuse(w, http.StatusTooManyRequests, `{"error":{"code":"429","message":"Requests have exceeded rate limit."}}`, "Retry-After", "7")
	default:
		return true
	}
	return false
}

// token gives a token for a key.
func (f *fake) token(w http.ResponseWriter, r *http.Request) {
	f.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header})
	r.Header.Del("Authorization")
	if !f.allowed(w, r) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	token := fmt.Sprintf("token%d", len(f.tokens)+1)
	f.tokens[token] = true
	f.Refuse(w, http.StatusOK, token, "Content-Type", "application/jwt")
}

// voices lists the voices.
func (f *fake) voices(w http.ResponseWriter, r *http.Request) {
	if f.allowed(w, r) {
		f.Refuse(w, http.StatusOK, `[{"Name":"Microsoft Server Speech Text to Speech Voice (zh-CN, XiaoxiaoNeural)","DisplayName":"Xiaoxiao","LocalName":"\u6653\u6653","ShortName":"zh-CN-XiaoxiaoNeural","Gender":"Female","Locale":"zh-CN","SampleRateHertz":"48000","VoiceType":"Neural","Status":"GA"},`+
			`{"DisplayName":"Ava","LocalName":"Ava","ShortName":"en-US-AvaNeural","Gender":"Female","Locale":"en-US"}]`)
	}
}

// frame is a message with its headers.
type frame struct {
	path, id string
	kind     string // Content-Type
	body     []byte
}

// errFrame says that a message is none.
var errFrame = errors.New("no headers")

// parse reads a message.
func parse(m servicetest.Message) (frame, error) {
	head, body, ok := bytes.Cut(m.Data, []byte("\r\n\r\n"))
	if m.Type == websocket.BinaryMessage {
		if len(m.Data) < 2 || int(binary.BigEndian.Uint16(m.Data)) > len(m.Data)-2 {
			return frame{}, errFrame
		}
		n := int(binary.BigEndian.Uint16(m.Data))
		head, body, ok = m.Data[2:2+n], m.Data[2+n:], true
	}
	text := strings.TrimRight(string(head), "\r\n") + "\r\n\r\n"
	h, err := textproto.NewReader(bufio.NewReader(strings.NewReader(text))).ReadMIMEHeader()
	if !ok || err != nil || h.Get("Path") == "" || h.Get("X-Timestamp") == "" && m.Type == websocket.TextMessage {
		return frame{}, errFrame
	}
	return frame{path: strings.ToLower(h.Get("Path")), id: h.Get("X-RequestId"), kind: h.Get("Content-Type"), body: body}, nil
}

// message is a text message of the server.
func message(path, id string, body any) servicetest.Message {
	return servicetest.Text("X-RequestId:" + id + "\r\nContent-Type:application/json; charset=utf-8\r\nPath:" + path + "\r\n\r\n" + string(servicetest.JSON(body).Data))
}

// sound is a binary message of the server.
func sound(id string, pcm []byte) servicetest.Message {
	head := "X-RequestId:" + id + "\r\nX-StreamId:9F2A\r\nContent-Type:audio/x-wav\r\nPath:audio\r\n"
	if len(pcm) == 0 {
		head = "X-RequestId:" + id + "\r\nX-StreamId:9F2A\r\nPath:audio\r\n"
	}
	out := binary.BigEndian.AppendUint16(nil, uint16(len(head)))
	return servicetest.Binary(append(append(out, head...), pcm...))
}

// refuse closes a socket for a message that is wrong.
func refuse(l *servicetest.Line, reason string) bool {
	l.End(websocket.CloseInvalidFramePayloadData, reason)
	return false
}

// ssml returns the text and the voice of a document.
func ssml(b []byte) (text, voice string, err error) {
	d := xml.NewDecoder(bytes.NewReader(b))
	speak := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && speak && voice != "" {
			return text, voice, nil
		}
		if err != nil {
			return "", "", fmt.Errorf("SSML is not valid: %w", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			speak = speak || x.Name.Local == "speak"
			for _, a := range x.Attr {
				if x.Name.Local == "voice" && a.Name.Local == "name" {
					voice = a.Value
				}
			}
		case xml.CharData:
			text += string(x)
		}
	}
}
