package tencent

import (
	"encoding/base64"
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

func query(s string) url.Values {
	q, _ := url.ParseQuery(s)
	return q
}

// TestSignatures holds the test vectors; that of single requests is the vendor's own.
func TestSignatures(t *testing.T) {
	q := query("secretid=testid&timestamp=1700000000&nonce=1700000000&expired=1700086400&engine_model_type=16k_zh&voice_id=0123456789abcdef&voice_format=1&needvad=0")
	if got := sign("asr.cloud.tencent.com/asr/v2/1250000000", q, "testsecret"); got != "2OMPp6pTRo/09DD+lmurTvQgXTk=" {
		t.Error(got)
	}
	q = query("Action=TextToStreamAudioWSv2&AppId=1250000000&SecretId=testid&Timestamp=1700000000&Expired=1700086400&SessionId=0123456789abcdef&Codec=pcm&SampleRate=16000&VoiceType=101001")
	if got := sign("GETtts.cloud.tencent.com/stream_wsv2", q, "testsecret"); got != "2Z2T7LUPnsr6GXQqcLdPgYUYzNw=" {
		t.Error(got)
	}
	body := `{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}`
	if _, got := tc3("Gu5t9xGARNpq86cd98joQYCN3EXAMPLE", "cvm", "cvm.tencentcloudapi.com", "application/json; charset=utf-8", []byte(body), time.Unix(1551113065, 0)); got != "72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168" {
		t.Error(got)
	}
}

// talk signs a session, sends steps when the server is ready, and returns what came until
// the end.
func talk(t *testing.T, s *servicetest.Server, path, method, query string, steps ...any) (log string, sound int) {
	t.Helper()
	q, _ := url.ParseQuery(fmt.Sprintf(query, time.Now().Unix(), time.Now().Unix()+600, time.Now().UnixNano()))
	host := strings.TrimPrefix(s.URL(), "http://")
	name := map[string]string{"": "signature", "GET": "Signature"}[method]
	q.Set(name, sign(method+host+path, q, servicetest.Secret))
	c, _, err := websocket.DefaultDialer.Dial(s.WS()+path+"?"+q.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for begun := false; ; {
		kind, data, err := c.ReadMessage()
		if err != nil {
			return log, sound
		}
		if kind == websocket.BinaryMessage {
			sound += len(data)
			continue
		}
		log += string(data)
		if strings.Contains(string(data), `"final":1`) {
			return log, sound
		}
		if begun = begun || method == "" || strings.Contains(string(data), `"ready":1`); !begun {
			continue
		}
		for _, step := range steps {
			if b, ok := step.([]byte); ok {
				_ = c.WriteMessage(websocket.BinaryMessage, b)
			} else {
				_ = c.WriteMessage(websocket.TextMessage, []byte(strings.ReplaceAll(step.(string), "$ID", q.Get("SessionId"))))
			}
		}
		steps = nil
	}
}

func TestFake(t *testing.T) {
	s := New(t)
	tone := servicetest.Speech(strings.Repeat("a", 25), 16000)
	asr := "secretid=" + servicetest.Key + "&timestamp=%d&expired=%d&voice_id=%d&nonce=1&engine_model_type=16k_zh&voice_format=1"
	tts := "Action=TextToStreamAudioWSv2&AppId=" + servicetest.ID + "&SecretId=" + servicetest.Key + "&Timestamp=%d&Expired=%d&SessionId=%d&Codec=pcm"
	text := `{"session_id":"$ID","message_id":"1","action":"ACTION_SYNTHESIS","data":"你好"}`
	done := `{"session_id":"$ID","message_id":"2","action":"ACTION_COMPLETE","data":""}`
	for _, c := range []struct {
		fault               servicetest.Fault
		path, method, query string
		steps               []any
		has                 string
		sound               int
	}{
		{servicetest.None, "/asr/v2/" + servicetest.ID, "", asr, []any{tone[:16000], tone[16000:], `{"type":"end"}`}, `"voice_text_str":"` + servicetest.Words, 0},
		{servicetest.Parts, "/asr/v2/" + servicetest.ID, "", asr, []any{tone[:22000], tone[22000:], `{"type":"end"}`}, `"voice_text_str":"and the lamp"`, 0},
		{servicetest.NoMoney, "/asr/v2/" + servicetest.ID, "", asr, nil, `"code":4005`, 0},
		{servicetest.ClockAhead, "/asr/v2/" + servicetest.ID, "", asr, nil, `"code":4002`, 0},
		{servicetest.None, "/asr/v2/" + servicetest.ID, "", asr, []any{tone, tone, tone}, `"code":4000`, 0},
		{servicetest.None, "/asr/v2/" + servicetest.ID, "", asr, []any{tone[:1280]}, `"code":4008`, 0},
		{servicetest.None, "/stream_wsv2", "GET", tts, []any{text, done}, `"final":1`, 2 * 640 * 2},
		{servicetest.WrongVoice, "/stream_wsv2", "GET", tts, nil, `"code":10001`, 0},
	} {
		s.Fail(c.fault)
		if log, sound := talk(t, s, c.path, c.method, c.query, c.steps...); !strings.Contains(log, c.has) || sound != c.sound {
			t.Errorf("%v, %s: %s with %d bytes of sound", c.fault, c.path, log, sound)
		}
	}
}

func TestSingleRequests(t *testing.T) {
	s := New(t)
	ask := func(action, version, service, body, secret string) string {
		at := time.Now()
		scope, signature := tc3(secret, service, service+".tencentcloudapi.com", "application/json; charset=utf-8", []byte(body), at)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/", strings.NewReader(body))
		req.Header = http.Header{
			"Content-Type": {"application/json; charset=utf-8"}, "X-Tc-Action": {action}, "X-Tc-Version": {version}, "X-Tc-Timestamp": {fmt.Sprint(at.Unix())},
			"Authorization": {"TC3-HMAC-SHA256 Credential=" + servicetest.Key + "/" + scope + ", SignedHeaders=content-type;host, Signature=" + signature},
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		var m struct {
			Response struct {
				Result, Audio string
				Error         struct{ Code string }
			}
		}
		_ = json.NewDecoder(resp.Body).Decode(&m)
		return m.Response.Result + m.Response.Audio + m.Response.Error.Code
	}
	tone := servicetest.Speech("a", 16000)
	heard := fmt.Sprintf(`{"SourceType":1,"VoiceFormat":"pcm","EngSerViceType":"16k_zh","Data":%q,"DataLen":%d}`, base64.StdEncoding.EncodeToString(tone), len(tone))
	if got := ask("SentenceRecognition", "2019-06-14", "asr", heard, servicetest.Secret); got != servicetest.Words {
		t.Error(got)
	}
	if got := ask("SentenceRecognition", "2019-06-14", "asr", heard, "wrong"); got != "AuthFailure.SignatureFailure" {
		t.Error(got)
	}
	if got := ask("TextToVoice", "2019-08-23", "tts", `{"Text":"a","SessionId":"1","Codec":"pcm"}`, servicetest.Secret); got != base64.StdEncoding.EncodeToString(tone) {
		t.Error(got)
	}
}
