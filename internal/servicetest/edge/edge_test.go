package edge

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/internal/servicetest"
)

func TestTokens(t *testing.T) {
	for at, want := range map[int64]string{
		1700000000: "42301B335578FEFDAE2637DED1ABD614505D432559EC08032B82048483726AFF",
		1700000100: "AE4CF72E466874182A75878E20EADA83D29A1C12CAD9C3E0E014CCE0BFA55880",
	} {
		if got := Token(time.Unix(at, 0)); got != want {
			t.Errorf("at %d: %s, want %s", at, got, want)
		}
	}
}

// dial connects as the browser does, with a clock that goes wrong by skew.
func dial(t *testing.T, s *servicetest.Server, id string, skew time.Duration) (*websocket.Conn, *http.Response, error) {
	t.Helper()
	header := http.Header{
		"Origin": {origin}, "User-Agent": {"Mozilla/5.0 Chrome/143.0.0.0 Safari/537.36 Edg/143.0.0.0"},
		"Cookie": {"muid=0123456789ABCDEF0123456789ABCDEF;"},
	}
	c, resp, err := websocket.DefaultDialer.Dial(s.WS()+base+"edge/v1?TrustedClientToken="+trusted+"&ConnectionId="+id+
		"&Sec-MS-GEC="+Token(time.Now().Add(skew))+"&Sec-MS-GEC-Version=1-143.0.3650.75", header)
	if err == nil {
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
	}
	return c, resp, err
}

const date = "Mon Jan 02 2006 15:04:05 GMT+0000 (Coordinated Universal Time)"

// speak has a text spoken and returns its sound.
func speak(t *testing.T, c *websocket.Conn, id, format, text string) (sound []byte) {
	t.Helper()
	now := time.Now().UTC().Format(date)
	say := func(text string) { _ = c.WriteMessage(websocket.TextMessage, []byte(text)) }
	say("X-Timestamp:" + now + "\r\nContent-Type:application/json; charset=utf-8\r\nPath:speech.config\r\n\r\n" +
		`{"context":{"synthesis":{"audio":{"metadataoptions":{"sentenceBoundaryEnabled":"true","wordBoundaryEnabled":"false"},"outputFormat":"` + format + `"}}}}` + "\r\n")
	say("X-RequestId:" + id + "\r\nContent-Type:application/ssml+xml\r\nX-Timestamp:" + now + "Z\r\nPath:ssml\r\n\r\n" +
		"<speak version='1.0' xmlns='http://www.w3.org/2001/10/synthesis' xml:lang='en-US'><voice name='zh-CN-XiaoxiaoNeural'><prosody pitch='+0Hz' rate='+0%' volume='+0%'>" +
		text + "</prosody></voice></speak>")
	for {
		kind, data, err := c.ReadMessage()
		if err != nil {
			t.Fatal(err)
		}
		if kind == websocket.BinaryMessage {
			sound = append(sound, data[2+binary.BigEndian.Uint16(data):]...)
		} else if strings.Contains(string(data), "Path:turn.end\r\n") {
			return sound
		}
	}
}

func id(n int) string { return fmt.Sprintf("%032x", n) }

func TestItSpeaks(t *testing.T) {
	t.Parallel()
	c, _, err := dial(t, New(t), id(1), 0)
	if err != nil {
		t.Fatal(err)
	}
	if sound := speak(t, c, id(2), onlyMP3, "one &amp; two"); !bytes.Equal(sound, servicetest.MP3("one & two")) {
		t.Errorf("%d bytes of MP3", len(sound))
	}
	if sound := speak(t, c, id(3), webm, "three"); !bytes.HasPrefix(sound, []byte{0x1A, 0x45, 0xDF, 0xA3}) || len(sound) < 500 {
		t.Errorf("%d bytes of WebM", len(sound))
	}
	for i, text := range []string{"?!", "<break/>a", strings.Repeat("a", longest+1)} {
		if sound := speak(t, c, id(4+i), onlyMP3, text); len(sound) > 0 {
			t.Errorf("spoke %.20q", text)
		}
	}
}

func TestClockMustBeRight(t *testing.T) {
	t.Parallel()
	s := New(t)
	s.Fail(servicetest.ClockAhead)
	_, resp, err := dial(t, s, id(1), 0)
	if err == nil || resp.StatusCode != http.StatusForbidden {
		t.Fatalf("a wrong clock: %v", err)
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := dial(t, s, id(2), time.Until(now)); err != nil {
		t.Errorf("with the clock of the server: %v", err)
	}
	if _, _, err := dial(t, s, id(2), time.Until(now)); err == nil {
		t.Error("the id of a connection was taken twice")
	}
}
