package azure

import (
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

const document = `<speak version='1.0' xml:lang='zh-CN'><voice name='zh-CN-XiaoxiaoNeural'>你好</voice></speak>`

// text is a text message of a client.
func text(path, id, body string) []byte {
	return []byte("Path: " + path + "\r\nX-RequestId: " + id + "\r\nX-Timestamp: 2026-01-01T00:00:00Z\r\n\r\n" + body)
}

// audio is a binary one.
func audio(id string, pcm []byte) []byte {
	head := "Path: audio\r\nX-RequestId: " + id + "\r\nContent-Type: audio/x-wav\r\n"
	return append(binary.BigEndian.AppendUint16(nil, uint16(len(head))), head+string(pcm)...)
}

// talk sends messages and returns what came until the turn or the socket ended.
func talk(t *testing.T, s *servicetest.Server, path string, messages ...[]byte) (log string, bytes int) {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(s.WS()+path, http.Header{"Ocp-Apim-Subscription-Key": {servicetest.Key}})
	if err != nil {
		return err.Error(), 0
	}
	defer func() { _ = c.Close() }()
	for _, m := range messages {
		kind := websocket.TextMessage
		if m[0] == 0 {
			kind = websocket.BinaryMessage
		}
		_ = c.WriteMessage(kind, m)
	}
	for {
		kind, data, err := c.ReadMessage()
		if err != nil {
			return log + err.Error(), bytes
		}
		x, err := parse(servicetest.Message{Type: kind, Data: []byte("X-Timestamp:1\r\n" + string(data))})
		if kind == websocket.BinaryMessage {
			x, err = parse(servicetest.Message{Type: kind, Data: data})
			bytes += len(x.body)
		}
		if err != nil {
			t.Fatal(err)
		}
		if log += x.path; kind == websocket.TextMessage {
			log += string(x.body) + " "
		}
		if x.path == "turn.end" {
			return log, bytes
		}
	}
}

func TestFake(t *testing.T) {
	s := New(t)
	id, tone, wav := strings.Repeat("a1", 16), servicetest.Speech(strings.Repeat("a", 25), 16000), servicetest.WAV(16000, 0)
	asr, tts := "/speech/recognition/conversation/cognitiveservices/v1?language=zh-CN", "/tts/cognitiveservices/websocket/v1"
	config, context := text("speech.config", id, "{}"), text("speech.context", id, "{}")
	format := text("synthesis.context", id, `{"synthesis":{"audio":{"outputFormat":"raw-16khz-16bit-mono-pcm"}}}`)
	for _, c := range []struct {
		fault    servicetest.Fault
		path     string
		messages [][]byte
		has      string
		bytes    int
	}{
		{servicetest.None, asr, [][]byte{config, context, audio(id, append(wav, tone[:16000]...)), audio(id, tone[16000:]), audio(id, nil)}, `"DisplayText":"` + servicetest.Words, 0},
		{servicetest.Parts, asr, [][]byte{config, context, audio(id, append(wav, tone[:22000]...)), audio(id, tone[22000:]), audio(id, nil)}, `"DisplayText":"and the lamp"`, 0},
		{servicetest.None, asr, [][]byte{config, context, audio(id, append(wav, make([]byte, 6400)...)), audio(id, nil)}, `"NoMatch"`, 0},
		{servicetest.None, asr, [][]byte{config, audio(id, wav)}, "1007", 0},
		{servicetest.None, tts, [][]byte{config, format, text("ssml", id, document)}, "turn.end", 2 * 640 * 2},
		{servicetest.None, tts, [][]byte{config, format, text("text.piece", id, "你"), text("text.piece", id, "好"), text("text.end", id, "")}, "turn.end", 2 * 640 * 2},
		{servicetest.WrongVoice, tts, [][]byte{config, format, text("ssml", id, document)}, "1007", 0},
		{servicetest.WrongKey, asr, nil, "bad handshake", 0},
	} {
		s.Fail(c.fault)
		if log, n := talk(t, s, c.path, c.messages...); !strings.Contains(log, c.has) || n != c.bytes {
			t.Errorf("%v: %s with %d bytes, want %s", c.fault, log, n, c.has)
		}
	}
}

func TestRequest(t *testing.T) {
	s := New(t)
	ask := func(format, key, value string) (int, string) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/cognitiveservices/v1", strings.NewReader(document))
		req.Header.Set("Content-Type", "application/ssml+xml")
		req.Header.Set("X-Microsoft-OutputFormat", format)
		req.Header.Set(key, value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	if status, body := ask("raw-24khz-16bit-mono-pcm", "Ocp-Apim-Subscription-Key", servicetest.Key); status != 200 || body != string(servicetest.Speech("你好", 24000)) {
		t.Errorf("%d with %d bytes", status, len(body))
	}
	if status, body := ask("ogg-24khz-16bit-mono-opus", "Ocp-Apim-Subscription-Key", servicetest.Key); status != 200 || !strings.HasPrefix(body, "OggS") {
		t.Errorf("%d %.20q", status, body)
	}
	if status, _ := ask("raw-9khz-16bit-mono-pcm", "Ocp-Apim-Subscription-Key", servicetest.Key); status != 400 {
		t.Error(status)
	}
	if status, _ := ask("raw-24khz-16bit-mono-pcm", "Authorization", "Bearer x"); status != 403 {
		t.Error(status)
	}
}
