// Package aliyun is Alibaba Cloud's Intelligent Speech Interaction (NLS): its recogniser
// and its voices, both by WebSocket, with the tokens that they want.
package aliyun

import (
	"cmp"
	"context"

	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

const (
	shanghai     = "https://nls-gateway-cn-shanghai.aliyuncs.com"
	beijing      = "https://nls-gateway-cn-beijing.aliyuncs.com"
	singapore    = "https://nls-gateway-ap-southeast-1.aliyuncs.com"
	tokenAddress = "https://nls-meta.cn-shanghai.aliyuncs.com"
	socketPath   = "/ws/v1"
)

// The limits of time when the settings have none.
const (
	firstTime = 5 * time.Second
	nextTime  = 5 * time.Second
)

// regions are the gateways by the names of the settings.
func regions() map[string]string {
	return map[string]string{"cn-shanghai": shanghai, "cn-beijing": beijing, "ap-southeast-1": singapore}
}

// Kind describes the service.
func Kind() service.Kind {
	return service.Kind{
		Type:  "aliyun",
		Title: "Alibaba Cloud Intelligent Speech Interaction (NLS)",
		Env: []service.Env{
			{Field: service.Key, Name: "ALIYUN_AK_ID"}, {Field: service.Secret, Name: "ALIYUN_AK_SECRET"}, {Field: service.ID, Name: "NLS_APP_KEY"},
		},
		Needs:   []service.Field{service.Key, service.ID},
		Regions: regions(),
		Address: shanghai,
		Models:  map[service.Role][]string{service.ASR: {short, long}, service.TTS: {plain, flowing}},
		Voices: []service.Voice{
			{Name: voice, Title: "Xiaoyun", Language: []string{"zh", "en"}}, {Name: "xiaogang", Title: "Xiaogang", Language: []string{"zh", "en"}},
			{Name: "aixia", Title: "Aixia", Language: []string{"zh"}}, {Name: "siqi", Title: "Siqi", Language: []string{"zh", "en"}},
		},
		Formats: []string{"pcm", "wav", "mp3"},
		Extra:   true,
		More: []service.Setting{
			{Name: "token_url"}, {Name: "vocabulary_id"}, {Name: "customization_id"},
			{Name: "volume", Type: service.Number}, {Name: "pitch", Type: service.Number},
			{Name: "pace", Type: service.Number}, // of sound to the recogniser, times as fast as it is spoken
		},
		ASR: newASR,
		TTS: newTTS,
	}
}

// gateway holds what the roles of a section share. It may be used by any number of goroutines
// at once.
type gateway struct {
	section service.Section
	account transport.Account
	dialer  *transport.Dialer
	tokens  *tokens
	address string
	first   time.Duration
	next    time.Duration
}

func newGateway(s service.Section) (*gateway, error) {
	account := transport.Account{Name: s.Name, Secrets: s.Secrets(), Careful: s.Careful}
	dialer, err := transport.NewDialer(transport.DialerOptions{Account: account, Proxy: s.Proxy, Connect: s.Timeouts.Connect, Headers: s.Headers})
	if err != nil {
		return nil, err
	}
	client := s.Client
	if client == nil {
		if client, err = transport.NewHTTPClient(transport.HTTPOptions{Connect: s.Timeouts.Connect, Proxy: s.Proxy, Careful: s.Careful}); err != nil {
			return nil, err
		}
	}
	// The gateways inside Alibaba Cloud give no tokens; what stands in for all of it does.
	tokenURL := tokenAddress
	if s.BaseURL != "" && !strings.Contains(s.BaseURL, ".aliyuncs.com") {
		tokenURL = service.HTTP(strings.TrimSuffix(strings.TrimRight(s.BaseURL, "/"), socketPath))
	}
	return &gateway{
		section: s, account: account, dialer: dialer, address: service.Join(s.Address(regions(), shanghai), socketPath),
		tokens: &tokens{
			limit: cmp.Or(s.Timeouts.First, firstTime), client: client, clock: &transport.Clock{}, address: s.Text("token_url", tokenURL), key: s.Key, secret: s.Secret,
			asking: make(chan struct{}, 1),
		},
		first: cmp.Or(s.Timeouts.First, firstTime), next: cmp.Or(s.Timeouts.Next, nextTime),
	}, nil
}

// dial opens a socket and begins with it. A token that is refused is replaced once.
func (g *gateway) dial(ctx context.Context, begin func(*transport.Socket) error) (*transport.Socket, error) {
	for again := false; ; again = true {
		token, err := g.tokens.get(ctx)
		if err != nil {
			return nil, g.clean(token, err)
		}
		// The vendor's pages have the token in the query, its programs in a header.
		at := service.Join(g.address, "?token="+url.QueryEscape(token.Reveal()))
		socket, err := g.dialer.Dial(ctx, at, http.Header{"X-NLS-Token": {token.Reveal()}})
		if err == nil {
			if err = begin(socket); err == nil {
				return socket, nil
			}
			socket.Close()
		}
		refused, ok := errors.AsType[*transport.Refusal](err)
		if !ok || again || !tokenRefused(refused) || !g.tokens.forget(token) {
			return nil, g.clean(token, err)
		}
	}
}

// clean takes a token out of the words of a refusal.
func (g *gateway) clean(token providers.Secret, err error) error {
	if refused, ok := errors.AsType[*transport.Refusal](err); ok {
		refused.Text = transport.Account{Secrets: []providers.Secret{token}}.Clean(refused.Text)
	}
	return err
}

// command is a message to the service.
type command struct {
	Header  header         `json:"header"`
	Payload map[string]any `json:"payload,omitempty"`
}

type header struct {
	MessageID  string        `json:"message_id"`
	TaskID     string        `json:"task_id"`
	Namespace  string        `json:"namespace"`
	Name       string        `json:"name"`
	Appkey     string        `json:"appkey,omitempty"`
	Status     transport.Int `json:"status,omitempty"`
	StatusText string        `json:"status_text,omitempty"`
}

// report is a message of the service.
type report struct {
	Header  header `json:"header"`
	Payload struct {
		Index  transport.Code `json:"index"` // of the sentence; only long speech has several
		Result string         `json:"result"`
	} `json:"payload"`
}

// task is a task on a socket. One goroutine sends, another receives.
type task struct {
	socket    *transport.Socket
	id        string
	appkey    string
	namespace string
}

func (g *gateway) newTask(socket *transport.Socket, namespace string) *task {
	return &task{socket: socket, id: newID(), appkey: g.section.ID, namespace: namespace}
}

// newID makes an id as the service wants them: 32 digits without dashes.
func newID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }

// command sends a command about the task.
func (t *task) command(name string, payload map[string]any) error {
	return t.socket.WriteJSON(command{
		Header: header{MessageID: newID(), TaskID: t.id, Namespace: t.namespace, Name: name, Appkey: t.appkey}, Payload: payload,
	})
}

// receive returns the next report or piece of sound of this task. A failure is a [*transport.Refusal].
func (t *task) receive(within time.Duration) (r report, sound []byte, err error) {
	for {
		text, data, err := t.socket.Read(within)
		if err != nil {
			return r, nil, err
		}
		if !text {
			return r, data, nil
		}
		r = report{}
		if err := transport.Decode(data, &r); err != nil {
			return r, nil, err
		}
		h := r.Header
		switch {
		case h.Name == "":
			continue
		case h.TaskID != "" && h.TaskID != t.id:
			continue
		case h.Name == "TaskFailed":
			return r, nil, refusal(int(h.Status), h.StatusText, t.id)
		}
		return r, nil, nil
	}
}

// await waits for a report by its name.
func (t *task) await(name string, within time.Duration) error {
	for {
		r, _, err := t.receive(within)
		if err != nil || r.Header.Name == name {
			return err
		}
	}
}

// merge adds the keys of extra to a payload.
func merge(payload, extra map[string]any) map[string]any {
	maps.Copy(payload, extra)
	return payload
}
