package iflytek

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

// address signs a path at a time.
func address(s *servicetest.Server, path, key string, at time.Time) string {
	host, date := strings.TrimPrefix(s.URL(), "http://"), at.UTC().Format(http.TimeFormat)
	text := `api_key="` + key + `", algorithm="hmac-sha256", headers="host date request-line", signature="` + sign(host, date, path) + `"`
	q := url.Values{"host": {host}, "date": {date}, "authorization": {base64.StdEncoding.EncodeToString([]byte(text))}}
	return s.WS() + path + "?" + q.Encode()
}

func dial(t *testing.T, s *servicetest.Server, path string) *websocket.Conn {
	t.Helper()
	c, _, err := websocket.DefaultDialer.Dial(address(s, path, servicetest.Key, time.Now()), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	return c
}

// answer is one of either dialect.
type answer struct {
	Code int
	Data struct {
		Status int
		Result result
		Audio  string
	}
	Header  struct{ Code, Status int }
	Payload struct {
		Result struct{ Text string }
		Audio  struct{ Audio string }
	}
}

// textual are numbers that come as texts.
var textual = regexp.MustCompile(`"(code|status)":"(\d+)"`)

// heard puts pieces together until the end, and returns the code of an error.
func heard(t *testing.T, c *websocket.Conn) (text string, partials, code int) {
	t.Helper()
	pieces := map[int]string{}
	for {
		var a answer
		_, raw, err := c.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(textual.ReplaceAll(raw, []byte(`"$1":$2`)), &a); err != nil {
			t.Fatal(err)
		}
		if a.Code+a.Header.Code != 0 {
			return text, partials, a.Code + a.Header.Code
		}
		r := a.Data.Result
		if a.Payload.Result.Text != "" {
			b, _ := base64.StdEncoding.DecodeString(a.Payload.Result.Text)
			_ = json.Unmarshal(b, &r)
		}
		if r.PGS == "rpl" {
			for i := r.RG[0]; i <= r.RG[1]; i++ {
				delete(pieces, i)
			}
		}
		for _, w := range r.WS {
			cw := w["cw"].([]any)
			pieces[r.SN] += cw[0].(map[string]any)["w"].(string)
		}
		text = ""
		for _, sn := range slices.Sorted(func(yield func(int) bool) {
			for sn := range pieces {
				if !yield(sn) {
					return
				}
			}
		}) {
			text += pieces[sn]
		}
		if partials++; a.Data.Status+a.Header.Status == 2 {
			return text, partials, 0
		}
	}
}

// listen sends a second of sound, or silence, in either dialect.
func listen(c *websocket.Conn, path, app string, pcm []byte) {
	all := append(servicetest.Pieces(pcm, 6400), nil)
	for i, p := range all {
		status := min(i, 1)
		if i == len(all)-1 {
			status = 2
		}
		audio := map[string]any{"status": status, "encoding": "raw", "format": "audio/L16;rate=16000", "sample_rate": 16000, "audio": base64.StdEncoding.EncodeToString(p)}
		m := map[string]any{"data": audio}
		if path == "/v1" {
			m = map[string]any{"header": map[string]any{"status": status, "app_id": app}, "payload": map[string]any{"audio": audio}}
		}
		if i == 0 {
			m["common"] = map[string]any{"app_id": app}
			m["business"] = map[string]any{"language": "zh_cn", "domain": "iat", "dwa": "wpgs", "vad_eos": 10000}
			m["parameter"] = map[string]any{"iat": map[string]any{"language": "zh_cn", "domain": "slm", "dwa": "wpgs", "eos": 10000}}
		}
		_ = c.WriteJSON(m)
	}
}

func TestItHearsInBothDialects(t *testing.T) {
	t.Parallel()
	s := New(t)
	speech := servicetest.Speech(strings.Repeat("x", 25), 16000)
	for _, path := range []string{"/v2/iat", "/v1"} {
		for _, f := range []servicetest.Fault{servicetest.None, servicetest.Odd, servicetest.Parts} {
			s.Fail(f)
			c := dial(t, s, path)
			listen(c, path, servicetest.ID, speech)
			if text, partials, code := heard(t, c); text != servicetest.Words || partials < 4 || code != 0 {
				t.Errorf("%s, %v: heard %q in %d partials, code %d", path, f, text, partials, code)
			}
		}
		s.Fail(servicetest.None)
		c := dial(t, s, path)
		if listen(c, path, servicetest.ID, make([]byte, 12800)); true {
			if text, _, code := heard(t, c); text != "" || code != 0 {
				t.Errorf("%s: heard %q in silence, code %d", path, text, code)
			}
		}
		c = dial(t, s, path)
		listen(c, path, "another", speech)
		if _, _, code := heard(t, c); code != 10313 {
			t.Errorf("%s: another app: code %d", path, code)
		}
		s.Fail(servicetest.Ends)
		c = dial(t, s, path)
		listen(c, path, servicetest.ID, speech)
		if text, _, _ := heard(t, c); text == "" || text == servicetest.Words {
			t.Errorf("%s: heard %q before it ended", path, text)
		}
		if _, _, code := heard(t, c); code != 10165 {
			t.Errorf("%s: sound after the end: code %d", path, code)
		}
	}
}

func TestItRefusesSignatures(t *testing.T) {
	t.Parallel()
	s := New(t)
	for want, address := range map[string]string{
		noSignature: s.WS() + "/v2/tts", unknownKey: address(s, "/v1", "another", time.Now()),
		wrongSignature: strings.Replace(address(s, "/v1", servicetest.Key, time.Now()), "/v1", "/v2/iat", 1),
		wrongDate:      address(s, "/v1", servicetest.Key, time.Now().Add(-6*time.Minute)),
	} {
		_, resp, err := websocket.DefaultDialer.Dial(address, nil)
		if err == nil {
			t.Errorf("%s: no error", want)
			continue
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(resp.Body)
		if !strings.Contains(body.String(), want) || resp.Header.Get("Date") == "" {
			t.Errorf("got %s, want %s", body.String(), want)
		}
	}
}

func TestItSpeaks(t *testing.T) {
	t.Parallel()
	s := New(t)
	text := base64.StdEncoding.EncodeToString([]byte("hello"))
	online := `{"common":{"app_id":"` + servicetest.ID + `"},"business":{"aue":"raw","vcn":"xiaoyan","tte":"UTF8"},"data":{"status":2,"text":"` + text + `"}}`
	human := `{"header":{"app_id":"` + servicetest.ID + `","status":2},"parameter":{"tts":{"vcn":"x5","audio":{"encoding":"raw","sample_rate":16000}}},
		"payload":{"text":{"status":2,"seq":0,"text":"` + text + `"}}}`
	for path, m := range map[string]string{"/v2/tts": online, "/v1/private/mcd9m97e6": human} {
		c := dial(t, s, path)
		_ = c.WriteMessage(websocket.TextMessage, []byte(m))
		var sound []byte
		for over := false; !over; {
			var a answer
			if err := c.ReadJSON(&a); err != nil {
				t.Fatal(err)
			}
			b, _ := base64.StdEncoding.DecodeString(a.Data.Audio + a.Payload.Audio.Audio)
			sound = append(sound, b...)
			over = a.Data.Status+a.Header.Status == 2 || a.Code+a.Header.Code != 0
		}
		if !bytes.Equal(sound, servicetest.Speech("hello", 16000)) {
			t.Errorf("%s: %d bytes", path, len(sound))
		}
	}
}
