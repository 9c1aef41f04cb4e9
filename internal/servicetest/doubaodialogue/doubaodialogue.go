// Package doubaodialogue is a fake of Doubao's realtime dialogue: speech to speech in
// binary frames over a WebSocket, without calls of functions.
package doubaodialogue

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
)

// The events of a client.
const (
	startConnection  = 1
	finishConnection = 2
	startSession     = 100
	finishSession    = 102
	taskRequest      = 200
	updateConfig     = 201
	sayHello         = 300
	endASR           = 400
	ttsText          = 500
	textQuery        = 501
	ragText          = 502
	createTurn       = 510
	deleteTurn       = 514
	interrupt        = 515
)

// The events of the server.
const (
	connectionStarted  = 50
	connectionFailed   = 51
	connectionFinished = 52
	sessionStarted     = 150
	sessionFinished    = 152
	sessionFailed      = 153
	usage              = 154
	configUpdated      = 251
	sentenceStart      = 350
	sentenceEnd        = 351
	ttsAudio           = 352
	ttsEnded           = 359
	asrInfo            = 450
	asrResponse        = 451
	asrEnded           = 459
	chatResponse       = 550
	queryConfirmed     = 553
	chatEnded          = 559
	turnCreated        = 567
	commonError        = 599
)

const (
	path     = "/api/v3/realtime/dialogue"
	resource = "volc.speech.dialog"
	appKey   = "PlgvMymc7f3tQnJ6" // of every client
	logID    = "20260101000000ABCDEF0123456789"

	pace    = 4 * time.Millisecond // between two frames of an answer
	idle    = 2 * time.Second      // without sound from an open microphone, shortened
	window  = 1500 * time.Millisecond
	inRate  = 16000
	outRate = 24000
)

// New starts the server, for the access key [servicetest.Key] of the app [servicetest.ID].
func New(t testing.TB) *servicetest.Server {
	t.Helper()
	var s *servicetest.Server
	s = servicetest.New(t, func(w http.ResponseWriter, r *http.Request) { serve(t, s, w, r) },
		servicetest.WrongKey, servicetest.NoMoney, servicetest.RateLimited, servicetest.WrongModel, servicetest.WrongVoice, servicetest.Slow,
		servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge, servicetest.Odd, servicetest.Stale,
		servicetest.Ends, servicetest.Late)
	return s
}

func serve(tb testing.TB, s *servicetest.Server, w http.ResponseWriter, r *http.Request) {
	h, why, status := r.Header, "", http.StatusUnauthorized
	switch {
	case r.URL.Path != path:
		why, status = "not found", http.StatusNotFound
	case s.Fault() == servicetest.WrongKey || h.Get("X-Api-Access-Key") != servicetest.Key:
		why = "load grant: requested grant not found in SaaS storage"
	case h.Get("X-Api-App-Id") != servicetest.ID:
		why = "invalid X-Api-App-ID"
	case h.Get("X-Api-App-Key") != appKey:
		why, status = "invalid X-Api-App-Key", http.StatusBadRequest
	case h.Get("X-Api-Resource-Id") != resource:
		why, status = "[resource_id="+h.Get("X-Api-Resource-Id")+"] requested resource not granted", http.StatusForbidden
	}
	if why != "" {
		s.Note(servicetest.Request{Method: r.Method, Path: r.URL.RequestURI(), Header: h.Clone()})
		s.Refuse(w, status, string(servicetest.JSON(map[string]any{"error": why, "reqid": logID}).Data), "X-Tt-Logid", logID)
		return
	}
	l, ok := s.Line(w, r, http.Header{"X-Tt-Logid": {logID}})
	if !ok {
		return
	}
	defer l.Close()
	t := &talk{tb: tb, line: l, connect: h.Get("X-Api-Connect-Id"), used: map[string]bool{}, ear: servicetest.Ear{Rate: inRate}}
	t.run()
}

// settings are those of a session.
type settings struct {
	ASR struct {
		Info *struct {
			Format  string `json:"format"`
			Rate    int    `json:"sample_rate"`
			Channel int    `json:"channel"`
		} `json:"audio_info"`
		Extra struct {
			Window int  `json:"end_smooth_window_ms"`
			Custom bool `json:"enable_custom_vad"`
		} `json:"extra"`
	} `json:"asr"`
	TTS struct {
		Speaker string `json:"speaker"`
		Config  *struct {
			Channel int    `json:"channel"`
			Format  string `json:"format"`
			Rate    int    `json:"sample_rate"`
		} `json:"audio_config"`
	} `json:"tts"`
	Dialog struct {
		Bot   string `json:"bot_name"`
		ID    string `json:"dialog_id"`
		Extra struct {
			Model string `json:"model"`
			Mode  string `json:"input_mod"`
		} `json:"extra"`
	} `json:"dialog"`
}

// fault is why a session does not start, or "".
func (s *settings) fault(f servicetest.Fault) string {
	switch {
	case f == servicetest.NoMoney:
		return "quota exceeded for types: tokens_lifetime"
	case f == servicetest.RateLimited:
		return "quota exceeded for types: qpm"
	case f == servicetest.WrongModel || !strings.Contains(" 1.2.1.1 2.2.0.0 O SC  ", " "+s.Dialog.Extra.Model+" "):
		return "invalid model: " + s.Dialog.Extra.Model
	case f == servicetest.WrongVoice:
		return "invalid speaker: " + s.TTS.Speaker
	case len([]rune(s.Dialog.Bot)) > 20:
		return "bot_name is longer than 20"
	case s.ASR.Info != nil && (s.ASR.Info.Format != "pcm" || s.ASR.Info.Rate != inRate || s.ASR.Info.Channel != 1):
		return "unsupported asr.audio_info"
	case s.ASR.Extra.Window != 0 && (s.ASR.Extra.Window < 500 || s.ASR.Extra.Window > 50000):
		return "end_smooth_window_ms out of range"
	case s.TTS.Config != nil && (s.TTS.Config.Rate != outRate || !strings.Contains(" pcm pcm_s16le ogg_opus ", " "+s.TTS.Config.Format+" ")):
		return "unsupported tts.audio_config"
	case !strings.Contains(" keep_alive push_to_talk text audio_file audio  ", " "+s.Dialog.Extra.Mode+" "):
		return "invalid input_mod: " + s.Dialog.Extra.Mode
	}
	return ""
}
