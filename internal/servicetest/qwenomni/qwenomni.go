// Package qwenomni is a fake of Qwen-Omni-Realtime on DashScope: speech to speech with
// the events of OpenAI's beta, tools nested as in chat completions, and no truncation.
package qwenomni

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/openairealtime"
)

// New starts the server. Its models are those whose names hold "omni"; those of 3.5 and
// later detect turns by meaning, too.
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	return openairealtime.Start(t, openairealtime.Dialect{
		Path: "/api-ws/v1/realtime", Rate: 16000, Old: true, Finishes: true, Admit: admit, Greet: greet, Settle: settle,
		Fails: func(servicetest.Fault) *openairealtime.Problem { return nil },
	})
}

func admit(s *servicetest.Server, w http.ResponseWriter, r *http.Request, f servicetest.Fault) bool {
	if f == servicetest.WrongKey || r.Header.Get("Authorization") != "Bearer "+servicetest.Key {
		s.Refuse(w, http.StatusUnauthorized, `{"code":"InvalidApiKey","message":"Invalid API-key provided.","request_id":"7574ee8f-38a3-4b1e-9280-11c33ab46e51"}`)
		return false
	}
	return true
}

// greet says what is wrong with the account or the model.
func greet(r *http.Request, f servicetest.Fault) *openairealtime.Problem {
	p := &openairealtime.Problem{Type: "server_error", Close: websocket.CloseInternalServerErr}
	switch {
	case f == servicetest.NoMoney:
		p.Code, p.Message = "Arrearage", "Access denied, please make sure your account is in good standing."
	case f == servicetest.RateLimited:
		p.Code, p.Message = "Throttling.RateQuota", "Requests rate limit exceeded, please try again later."
	case f == servicetest.WrongModel || !strings.Contains(r.URL.Query().Get("model"), "omni"):
		p.Code, p.Message = "ModelNotFound", "Model not exist."
	default:
		return nil
	}
	return p
}

// session holds the settings of a client, in the flat form.
type session struct {
	Modalities    []string `json:"modalities"`
	Voice         string   `json:"voice"`
	In            string   `json:"input_audio_format"`
	Out           string   `json:"output_audio_format"`
	Transcription *struct {
		Model string `json:"model"`
	} `json:"input_audio_transcription"`
	Detection json.RawMessage `json:"turn_detection"`
	Tools     json.RawMessage `json:"tools"`
}

func settle(raw json.RawMessage, model string, f servicetest.Fault) (*openairealtime.Settings, *openairealtime.Problem) {
	var s session
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, wrong("session", err.Error())
	}
	audio := slices.Contains(s.Modalities, "audio")
	text := slices.Contains(s.Modalities, "text")
	switch {
	case len(s.Modalities) > 0 && !text || len(s.Modalities) > 2:
		return nil, wrong("session.modalities", `["text"] and ["text","audio"] are supported`)
	case !slices.Contains([]string{"", "pcm", "pcm16"}, s.In):
		return nil, wrong("session.input_audio_format", s.In)
	case !slices.Contains([]string{"", "pcm", "pcm16", "pcm24"}, s.Out):
		return nil, wrong("session.output_audio_format", s.Out)
	case s.Transcription != nil && s.Transcription.Model != "qwen3-asr-flash-realtime" && s.Transcription.Model != "gummy-realtime-v1":
		return nil, wrong("session.input_audio_transcription.model", s.Transcription.Model)
	case f == servicetest.WrongVoice:
		return nil, &openairealtime.Problem{Code: "InvalidParameter", Message: "Voice '" + s.Voice + "' is not supported.", Close: websocket.ClosePolicyViolation}
	}
	set := &openairealtime.Settings{Transcribe: s.Transcription != nil, Mute: text && !audio}
	var p *openairealtime.Problem
	if set.Tools, p = openairealtime.ReadTools(s.Tools, true); p != nil {
		return nil, p
	}
	var d struct {
		Type    string `json:"type"`
		Silence *int   `json:"silence_duration_ms"`
	}
	_ = json.Unmarshal(s.Detection, &d) // Detect says what is wrong
	if d.Silence != nil && (*d.Silence < 200 || *d.Silence > 6000) || d.Type == "semantic_vad" && !strings.Contains(model, "3.") {
		return nil, wrong("session.turn_detection", string(s.Detection))
	}
	if p = set.Detect(s.Detection, "session.turn_detection", -1, 1); p != nil {
		return nil, p
	}
	return set, nil
}

func wrong(param, what string) *openairealtime.Problem {
	return &openairealtime.Problem{Code: "invalid_value", Message: "Invalid value of " + param + ": " + what, Param: param}
}
