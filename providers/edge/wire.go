package edge

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	trusted  = "6A5AA1D4EAFF4E9FB37E23D68491D6F4" // of the browser itself: no secret
	epoch    = 11644473600                        // seconds from 1601 to 1970
	period   = 300                                // seconds for which a token holds
	maxText  = 4096                               // bytes of escaped text in one request
	jsDate   = "Mon Jan 02 2006 15:04:05 GMT+0000 (Coordinated Universal Time)"
	longName = "Microsoft Server Speech Text to Speech Voice ("
)

// token is the browser's proof, made of the time alone.
func token(at time.Time) string {
	seconds := at.Unix() + epoch
	seconds -= seconds % period
	sum := sha256.Sum256(fmt.Appendf(nil, "%d%s", seconds*1e7, trusted))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

// newID makes an id of 32 hexadecimal digits.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// configMessage is the first message: which format the sound is to have.
func configMessage(at time.Time, format string) string {
	return "X-Timestamp:" + at.UTC().Format(jsDate) + "\r\nContent-Type:application/json; charset=utf-8\r\nPath:speech.config\r\n\r\n" +
		`{"context":{"synthesis":{"audio":{"metadataoptions":{"sentenceBoundaryEnabled":"true","wordBoundaryEnabled":"false"},"outputFormat":"` +
		format + `"}}}}` + "\r\n"
}

// speakMessage is the second one: what is to be said. The Z after the time is the browser's own.
func speakMessage(at time.Time, id, document string) string {
	return "X-RequestId:" + id + "\r\nContent-Type:application/ssml+xml\r\nX-Timestamp:" + at.UTC().Format(jsDate) + "Z\r\nPath:ssml\r\n\r\n" + document
}

// document is escaped text as SSML. The service takes one voice and one prosody, and
// refuses anything richer.
func document(voice, escaped string, speed float64) string {
	rate := 0
	if speed > 0 {
		rate = int(math.Round((min(max(speed, 0.5), 2) - 1) * 100)) // the service takes no more
	}
	return fmt.Sprintf("<speak version='1.0' xmlns='http://www.w3.org/2001/10/synthesis' xml:lang='en-US'><voice name='%s'>"+
		"<prosody pitch='+0Hz' rate='%+d%%' volume='+0%%'>%s</prosody></voice></speak>", html.EscapeString(fullName(voice)), rate, escaped)
}

// fullName is the long name of a voice: zh-CN-XiaoxiaoNeural is (zh-CN, XiaoxiaoNeural).
func fullName(voice string) string {
	cut := strings.LastIndexByte(voice, '-')
	if cut < 0 || strings.HasPrefix(voice, longName) {
		return voice
	}
	return longName + voice[:cut] + ", " + voice[cut+1:] + ")"
}

// escape makes text fit for a document: nothing that no XML may hold, and no markup.
func escape(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == utf8.RuneError || r == 0xFFFE || r == 0xFFFF {
			return ' '
		}
		return r
	}, s)
	return html.EscapeString(s)
}

// size is the length of a character in a document, in bytes.
func size(r rune) int { return len(escape(string(r))) }

// errFrame says that a message has no headers.
var errFrame = errors.New("a message has not the form that is expected")

// parse splits a message into its path and what it holds.
func parse(isText bool, message []byte) (path string, body []byte, err error) {
	var head []byte
	if isText {
		var found bool
		if head, body, found = bytes.Cut(message, []byte("\r\n\r\n")); !found {
			return "", nil, errFrame
		}
	} else {
		if len(message) < 2 || 2+int(binary.BigEndian.Uint16(message)) > len(message) {
			return "", nil, errFrame
		}
		n := 2 + int(binary.BigEndian.Uint16(message))
		head, body = message[2:n], message[n:]
	}
	for line := range strings.SplitSeq(string(head), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(strings.TrimSpace(name), "Path") {
			return strings.ToLower(strings.TrimSpace(value)), body, nil
		}
	}
	return "", nil, errFrame
}

// voiceEntry is a voice in the service's list.
type voiceEntry struct {
	ShortName    string
	FriendlyName string
	Locale       string
}

// parseVoices reads the list of voices.
func parseVoices(body []byte) ([]voiceEntry, error) {
	var all []voiceEntry
	if err := json.Unmarshal(body, &all); err != nil {
		return nil, fmt.Errorf("the list of voices is not the JSON expected: %w", err)
	}
	return all, nil
}
