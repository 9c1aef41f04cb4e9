package openaispeech

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// post asks with a key, and returns the status, the type and the body of the answer.
func post(t *testing.T, url, key, kind string, body io.Reader) (int, string, string) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPost, url, body)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(answer)
}

// upload posts a clip with fields.
func upload(t *testing.T, s *servicetest.Server, key string, clip []byte, fields ...string) (int, string, string) {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, _ := form.CreateFormFile("file", "a.wav")
	_, _ = part.Write(clip)
	for i := 0; i+1 < len(fields); i += 2 {
		_ = form.WriteField(fields[i], fields[i+1])
	}
	_ = form.Close()
	return post(t, s.URL()+"/v1/audio/transcriptions", key, form.FormDataContentType(), &body)
}

func clip(rate int, sound []byte) []byte {
	return append(servicetest.WAV(rate, uint32(len(sound))), sound...)
}

func TestFilesAreHeard(t *testing.T) {
	openai, flow, home := New(t), NewSiliconFlow(t), NewSpeaches(t)
	speech, silence := clip(16000, servicetest.Speech("abc", 16000)), clip(16000, make([]byte, 3200))
	first, second := servicetest.Halves()
	tests := map[string]struct {
		s      *servicetest.Server
		fault  servicetest.Fault
		key    string
		clip   []byte
		fields []string
		status int
		want   string
	}{
		"json":           {openai, 0, servicetest.Key, speech, []string{"model", "whisper-1"}, 200, `{"text":"` + servicetest.Words + `"}`},
		"text":           {openai, 0, servicetest.Key, speech, []string{"model", "whisper-1", "response_format", "text"}, 200, servicetest.Words + "\n"},
		"silence":        {openai, 0, servicetest.Key, silence, []string{"model", "whisper-1"}, 200, `{"text":""}`},
		"stream":         {openai, 0, servicetest.Key, speech, []string{"model", "gpt-4o-transcribe", "stream", "true"}, 200, `"transcript.text.done","usage"`},
		"wrong key":      {openai, 0, "sk-x", speech, []string{"model", "whisper-1"}, 401, "invalid_api_key"},
		"no money":       {openai, servicetest.NoMoney, servicetest.Key, speech, nil, 429, "insufficient_quota"},
		"a model":        {openai, 0, servicetest.Key, speech, []string{"model", "x"}, 404, "model_not_found"},
		"a long tag":     {openai, 0, servicetest.Key, speech, []string{"model", "whisper-1", "language", "zh-CN"}, 400, "ISO-639-1"},
		"flow":           {flow, 0, servicetest.Key, speech, []string{"model", "FunAudioLLM/SenseVoiceSmall"}, 200, servicetest.Words},
		"flow key":       {flow, servicetest.WrongKey, servicetest.Key, speech, nil, 401, `"Invalid token"`},
		"flow model":     {flow, 0, servicetest.Key, speech, []string{"model", "x"}, 400, `"code":20012`},
		"home segments":  {home, 0, "", speech, []string{"model", "Systran/faster-whisper-small", "stream", "true"}, 200, `{"text":"` + second + `"}`},
		"home wrong key": {home, 0, "x", speech, nil, 403, "detail"},
		"home model":     {home, 0, servicetest.Key, speech, []string{"model", "x"}, 404, "download"},
	}
	for name, test := range tests {
		test.s.Fail(test.fault)
		key := test.key
		if name == "home segments" {
			key = servicetest.Key
		}
		status, _, body := upload(t, test.s, key, test.clip, test.fields...)
		if name == "stream" {
			body = strings.ReplaceAll(body, `"type":"transcript.text.done","usage"`, `"transcript.text.done","usage"`)
			if !strings.Contains(body, `"delta":"`+first[:15]+`"`) {
				t.Errorf("no first piece in %s", body)
			}
		}
		if status != test.status || !strings.Contains(body, test.want) {
			t.Errorf("%s: %d %s, want %d and %s", name, status, body, test.status, test.want)
		}
	}
}

func TestTextsAreSpoken(t *testing.T) {
	openai, flow, glm, kokoro, home := New(t), NewSiliconFlow(t), NewZhipu(t), NewKokoro(t), NewSpeaches(t)
	const text = "hello there, this is a sentence of some length"
	pcm := string(servicetest.Speech(text, 24000))
	wav := string(servicetest.WAV(24000, 0xffffffff)) + pcm
	half := string(servicetest.Speech(text, 16000))
	in := `"input":"` + text + `",`
	long := `"input":"` + strings.Repeat("a", 4097) + `",`
	tests := map[string]struct {
		s          *servicetest.Server
		path, body string
		status     int
		want       string // the body, or a part of the answer if it is no sound
	}{
		"pcm":          {openai, "/v1", in + `"model":"gpt-4o-mini-tts","voice":"coral","response_format":"pcm"`, 200, pcm},
		"wav":          {openai, "/v1", in + `"model":"tts-1","voice":"coral","response_format":"wav"`, 200, wav},
		"mp3":          {openai, "/v1", in + `"model":"tts-1","voice":"coral"`, 200, string(servicetest.MP3(text))},
		"opus":         {openai, "/v1", in + `"model":"tts-1","voice":"coral","response_format":"opus"`, 200, string(servicetest.OggOpus(t, text, 48000))},
		"events":       {openai, "/v1", in + `"model":"gpt-4o-mini-tts","voice":"coral","stream_format":"sse"`, 200, "speech.audio.done"},
		"too long":     {openai, "/v1", long + `"model":"tts-1","voice":"coral"`, 400, "4096"},
		"voice":        {openai, "/v1", in + `"model":"tts-1","voice":"nobody"`, 400, "voice"},
		"too fast":     {openai, "/v1", in + `"model":"tts-1","voice":"coral","speed":9`, 400, "speed"},
		"flow":         {flow, "/v1", in + `"model":"FunAudioLLM/CosyVoice2-0.5B","voice":"FunAudioLLM/CosyVoice2-0.5B:alex","response_format":"pcm","sample_rate":16000`, 200, half},
		"flow voice":   {flow, "/v1", in + `"model":"FunAudioLLM/CosyVoice2-0.5B","voice":"alex"`, 400, "voice"},
		"glm":          {glm, "/api/paas/v4", in + `"model":"glm-tts","voice":"tongtong","response_format":"pcm"`, 200, pcm},
		"glm events":   {glm, "/api/paas/v4", in + `"model":"glm-tts","voice":"tongtong","response_format":"pcm","stream":true`, 200, `"finish_reason":"stop"`},
		"kokoro":       {kokoro, "/v1", in + `"model":"kokoro","voice":"af_bella(2)+af_sky","response_format":"wav"`, 200, wav},
		"kokoro model": {kokoro, "/v1", in + `"model":"x","voice":"af_sky"`, 400, `"detail":{"error":"invalid_model"`},
		"home":         {home, "/v1", in + `"model":"speaches-ai/Kokoro-82M-v1.0-ONNX","voice":"af_sky","response_format":"pcm","sample_rate":16000`, 200, half},
	}
	for name, test := range tests {
		status, kind, body := post(t, test.s.URL()+test.path+"/audio/speech", servicetest.Key, "application/json", strings.NewReader("{"+test.body+"}"))
		good := body == test.want
		if !strings.HasPrefix(kind, "audio/") {
			good = strings.Contains(body, test.want)
		}
		if status != test.status || !good {
			t.Errorf("%s: %d %s, %d bytes %.80q, want %d bytes %.80q", name, status, kind, len(body), body, len(test.want), test.want)
		}
	}
}

// chat talks on a WebSocket: it sends messages and returns the types and the words of
// what comes back, until so many words have been completed or the line ends.
func chat(t *testing.T, url string, header http.Header, completed int, messages ...string) (types, words string) {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(url, header)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, m := range messages {
		_ = c.WriteMessage(websocket.TextMessage, []byte(m))
	}
	for completed > 0 {
		_, m, err := c.ReadMessage()
		if err != nil {
			return types + err.Error(), words
		}
		var e struct {
			Type, Delta, Transcript string
			Error                   struct{ Code string }
		}
		if err := json.Unmarshal(m, &e); err != nil {
			t.Fatalf("%q: %v", m, err)
		}
		types += e.Type[strings.LastIndex(e.Type, ".")+1:] + e.Error.Code + " "
		words += e.Delta
		if strings.HasSuffix(e.Type, "completed") || e.Type == "error" {
			completed--
			words += "=" + e.Transcript + "."
		}
	}
	return types, words
}

func TestSessionsTranscribe(t *testing.T) {
	openai, home := New(t), NewSpeaches(t)
	const (
		commit = `{"type":"input_audio_buffer.commit"}`
		ga     = `{"type":"session.update","session":{"type":"transcription","audio":{"input":{"format":{"type":"audio/pcm","rate":24000},"transcription":{"model":"gpt-4o-transcribe","language":"zh"},"turn_detection":null}}}}`
		beta   = `{"type":"transcription_session.update","session":{"input_audio_format":"pcm16","input_audio_transcription":{"model":"whisper-1"},"turn_detection":null}}`
		flat   = `{"type":"session.update","session":{"turn_detection":{"type":"server_vad","silence_duration_ms":5000}}}`
	)
	add := `{"type":"input_audio_buffer.append","audio":"` + base64.StdEncoding.EncodeToString(servicetest.Speech("abcdefghijklmnopqrstuvwxy", 24000)) + `"}`
	path, local := openai.WS()+"/v1/realtime?intent=transcription", home.WS()+"/v1/realtime?intent=transcription&model=Systran/faster-whisper-small"
	key := func(more ...string) http.Header {
		h := http.Header{"Authorization": {"Bearer " + servicetest.Key}}
		for i := 0; i+1 < len(more); i += 2 {
			h.Set(more[i], more[i+1])
		}
		return h
	}
	first, second := servicetest.Halves()
	all := servicetest.Words + "=" + servicetest.Words + "."
	tests := map[string]struct {
		url          string
		header       http.Header
		completed    int
		send         []string
		types, words string
	}{
		"today's wire":  {path, key(), 1, []string{ga, add, commit}, "created updated committed created delta delta", all},
		"twice":         {path, key(), 2, []string{ga, add, commit, add, commit}, "created updated", all + all},
		"live":          {path, key(), 1, []string{strings.Replace(ga, "gpt-4o-transcribe", "gpt-live-transcribe", 1), add, commit}, "created updated delta committed", all},
		"the old wire":  {path, key("OpenAI-Beta", "realtime=v1"), 1, []string{beta, add, commit}, "created updated committed", all},
		"nothing":       {path, key(), 1, []string{ga, commit}, "created updated errorinput_audio_buffer_commit_empty", "=."},
		"wrong shape":   {path, key(), 1, []string{beta}, "created errorinvalid_value", "=."},
		"a model there": {path + "&model=gpt-4o-transcribe", key(), 1, []string{ga}, "created errorinvalid_model", "=."},
		"at home":       {local, nil, 1, []string{flat, add, commit}, "created updated speech_started committed created completed", "=" + servicetest.Words + "."},
		"wrong key":     {local, http.Header{"Authorization": {"Bearer x"}}, 1, nil, "websocket: close 1008", ""},
	}
	for name, test := range tests {
		types, words := chat(t, test.url, test.header, test.completed, test.send...)
		if !strings.HasPrefix(types, test.types) || words != test.words {
			t.Errorf("%s: %s, %q, want %s, %q", name, types, words, test.types, test.words)
		}
	}
	home.Fail(servicetest.Parts)
	var sends []string
	for _, p := range servicetest.Pieces(servicetest.Speech("abcdefghijklmnopqrstuvwxy", 24000), 4800) {
		sends = append(sends, `{"type":"input_audio_buffer.append","audio":"`+base64.StdEncoding.EncodeToString(p)+`"}`)
	}
	if types, words := chat(t, local, nil, 2, append(append([]string{flat}, sends...), commit)...); words != "="+first+".="+second+"." {
		t.Errorf("in parts: %s, %q", types, words)
	}
}
