package aliyun

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// TestSignature holds the vendor's published example.
func TestSignature(t *testing.T) {
	q := url.Values{
		"AccessKeyId": {"testid"}, "Action": {"DescribeRegions"}, "Format": {"XML"}, "SignatureMethod": {"HMAC-SHA1"},
		"SignatureNonce": {"3ee8c1b8-83d3-44af-a94f-4e0ad82fd6cf"}, "SignatureVersion": {"1.0"},
		"Timestamp": {"2016-02-23T12:46:24Z"}, "Version": {"2014-05-26"},
	}
	if got := sign(q, "testsecret"); got != "OLeaidS1JvxuMvnyHOwuJ+uX5qY=" {
		t.Error(got)
	}
}

// ask asks for a token and returns the token, or the code of the refusal.
func ask(t *testing.T, s *servicetest.Server, nonce, secret string) string {
	t.Helper()
	q := url.Values{
		"AccessKeyId": {servicetest.Key}, "Action": {"CreateToken"}, "Format": {"JSON"}, "RegionId": {"cn-shanghai"},
		"SignatureMethod": {"HMAC-SHA1"}, "SignatureNonce": {nonce}, "SignatureVersion": {"1.0"},
		"Timestamp": {time.Now().UTC().Format("2006-01-02T15:04:05Z")}, "Version": {"2019-02-28"},
	}
	q.Set("Signature", sign(q, secret))
	resp, err := http.Get(s.URL() + "/?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var body struct {
		Code  string
		Token struct{ Id string } // the vendor's spelling
	}
	_ = json.NewDecoder(resp.Body).Decode(&body)
	return body.Code + body.Token.Id
}

// talk sends messages, each when the one before was answered by what it waits for, and
// returns the names and words of the answers, and the bytes of sound.
func talk(t *testing.T, s *servicetest.Server, token string, steps ...any) (log string, sound int) {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(s.WS()+"/ws/v1", http.Header{"X-Nls-Token": {token}})
	if err != nil {
		return err.Error(), 0
	}
	defer func() { _ = c.Close() }()
	for i, step := range steps {
		switch step := step.(type) {
		case []byte:
			_ = c.WriteMessage(websocket.BinaryMessage, step)
			continue
		case string:
			space, rest, _ := strings.Cut(step, ".")
			name, payload, _ := strings.Cut(rest, " ")
			_ = c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil,
				`{"header":{"message_id":"%032x","task_id":"%032x","namespace":%q,"name":%q,"appkey":%q},"payload":{%s}}`, i, 7, space, name, servicetest.ID, payload))
		}
		for end := false; !end; {
			kind, data, err := c.ReadMessage()
			if err != nil {
				return log, sound
			}
			if kind == websocket.BinaryMessage {
				sound += len(data)
				continue
			}
			var m struct {
				Header  header
				Payload struct{ Result string }
			}
			_ = json.Unmarshal(data, &m)
			log += m.Header.Name + "(" + m.Payload.Result + ")"
			end = strings.HasSuffix(m.Header.Name, "Started") || strings.HasSuffix(m.Header.Name, "Completed") || m.Header.Name == "SentenceEnd"
			if m.Header.Name == "TaskFailed" {
				return fmt.Sprint(log, m.Header.Status), sound
			}
		}
	}
	return log, sound
}

func TestFake(t *testing.T) {
	s := New(t)
	token := ask(t, s, "1", servicetest.Secret)
	if !strings.HasPrefix(token, "token") || ask(t, s, "2", "wrong") != "SignatureDoesNotMatch" || ask(t, s, "1", servicetest.Secret) != "SignatureNonceUsed" {
		t.Errorf("token %q", token)
	}
	tone := servicetest.Speech(strings.Repeat("a", 25), 16000)
	half := len(tone) / 2
	for _, c := range []struct {
		fault servicetest.Fault
		steps []any
		has   string
		sound int
	}{
		{servicetest.None, []any{`SpeechRecognizer.StartRecognition "enable_intermediate_result":true`, tone[:half], tone[half:], "SpeechRecognizer.StopRecognition "}, "RecognitionCompleted(" + servicetest.Words + ")", 0},
		{servicetest.Parts, []any{`SpeechTranscriber.StartTranscription "enable_intermediate_result":true`, tone[:half], tone[half:], tone, "SpeechTranscriber.StopTranscription "}, "SentenceEnd(今天天气怎么样)", 0},
		{servicetest.None, []any{"SpeechRecognizer.StartRecognition ", make([]byte, 640), "SpeechRecognizer.StopRecognition "}, "40270002", 0},
		{servicetest.None, []any{make([]byte, 640), "SpeechRecognizer.StartRecognition "}, "40010005", 0},
		{servicetest.RateLimited, []any{"SpeechRecognizer.StartRecognition "}, "40000005", 0},
		{servicetest.None, []any{`SpeechSynthesizer.StartSynthesis "text":"你好","format":"pcm","sample_rate":16000`}, "SynthesisCompleted", 2 * 640 * 2},
		{servicetest.WrongVoice, []any{`SpeechSynthesizer.StartSynthesis "text":"你好"`}, "41020001", 0},
		{servicetest.None, []any{`FlowingSpeechSynthesizer.StartSynthesis "format":"pcm"`, `FlowingSpeechSynthesizer.RunSynthesis "text":"你好"`, "FlowingSpeechSynthesizer.StopSynthesis "}, "SynthesisCompleted", 2 * 640 * 2},
	} {
		s.Fail(c.fault)
		if log, sound := talk(t, s, token, c.steps...); !strings.Contains(log, c.has) || sound != c.sound {
			t.Errorf("%v, %v: %s with %d bytes of sound", c.fault, c.steps[0], log, sound)
		}
	}
	s.Fail(servicetest.None)
	if _, err := http.Get(s.URL() + "/forget"); err != nil {
		t.Error(err)
	}
	if log, _ := talk(t, s, token, "x.y"); !strings.Contains(log, "bad handshake") {
		t.Errorf("a forgotten token gives %s", log)
	}
}
