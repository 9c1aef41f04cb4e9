package bench

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// earsMessage is what the recogniser of the bench says.
type earsMessage struct {
	Mode, Text string
	Name       string `json:"wav_name"`
	Final      bool   `json:"is_final"`
}

// TestEars: words come behind the voice they belong to, the whole text behind the end mark, and each utterance begins anew.
func TestEars(t *testing.T) {
	const voiced = 80 * time.Millisecond
	e, err := startEars("a b c d", voiced, 10*time.Millisecond, 40*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	c, _, err := websocket.DefaultDialer.Dial(e.url(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	say := func(kind int, data []byte) {
		t.Helper()
		if err := c.WriteMessage(kind, data); err != nil {
			t.Fatal(err)
		}
	}
	next := func() (m earsMessage) {
		t.Helper()
		_, data, err := c.ReadMessage()
		if err != nil || json.Unmarshal(data, &m) != nil {
			t.Fatalf("%s, %v", data, err)
		}
		return m
	}
	half := make([]byte, 2*uplink.Rate*int(voiced/time.Millisecond)/1000/2)
	loud := slices.Repeat([]byte{0, 32}, len(half)/2)
	for _, name := range []string{"one", "two"} {
		say(websocket.TextMessage, []byte(`{"wav_name":"`+name+`","is_speaking":true}`))
		say(websocket.BinaryMessage, half) // silence is no word
		say(websocket.BinaryMessage, loud)
		if m := next(); m.Mode != "2pass-online" || m.Final || m.Name != name || m.Text != "a b" {
			t.Errorf("of half of the voice: %+v", m)
		}
		from := time.Now()
		say(websocket.TextMessage, []byte(`{"is_speaking":false}`))
		if m := next(); m.Mode != "2pass-offline" || !m.Final || m.Text != "a b c d" || time.Since(from) < 40*time.Millisecond {
			t.Errorf("after %v: %+v", time.Since(from), m)
		}
	}
	if e.asked.Load() != 2 {
		t.Errorf("%d utterances", e.asked.Load())
	}
}

// TestJudgeEars: pairs that a busy machine has made late alike still tell who is earlier, and by how much at least.
func TestJudgeEars(t *testing.T) {
	pairsOf := func(gain time.Duration, late ...time.Duration) (all [][2]time.Duration) {
		for i, l := range late {
			streams := 700*time.Millisecond + l
			all = append(all, [2]time.Duration{streams + gain + time.Duration(i)*time.Millisecond, streams})
		}
		return all
	}
	busy := []time.Duration{0, time.Second, 30 * time.Millisecond, 0, 400 * time.Millisecond, 5 * time.Millisecond, 0, 90 * time.Millisecond}
	for name, test := range map[string]struct {
		pairs [][2]time.Duration
		want  Verdict
	}{
		"earlier":  {pairsOf(250*time.Millisecond, busy...), Pass},
		"the same": {pairsOf(0, busy...), Miss},
		"not sure": {pairsOf(146*time.Millisecond, busy...), Void},
	} {
		all := judgeEars(test.pairs)
		for i := range all {
			all[i].Control.Void = true
			all[i] = all[i].judged()
		}
		gain := all[len(all)-1]
		if len(all) != 3 || gain.Verdict != test.want || gain.N != len(busy) || !strings.HasPrefix(gain.Note, "95 %: ") {
			t.Errorf("%s: %+v", name, gain)
		}
	}
	if all := judgeEars(pairsOf(250*time.Millisecond, busy[:5]...)); all[2].Untimed || !strings.HasSuffix(all[2].Note, "too few for an interval") {
		t.Errorf("of five: %+v", all[2])
	}
	if all := judgeEars(nil); len(all) != 2 || all[0].judged().Verdict != None {
		t.Errorf("of nothing: %+v", all)
	}
}

func TestMedianWithin(t *testing.T) {
	var hundred []float64
	for i := range 100 {
		hundred = append(hundred, float64(99-i))
	}
	for _, test := range []struct {
		sample    []float64
		low, high float64
	}{{[]float64{7}, 7, 7}, {[]float64{3, 1, 2}, 1, 3}, {hundred, 39, 60}} {
		if low, high := medianWithin(test.sample); low != test.low || high != test.high {
			t.Errorf("of %d: %g to %g, want %g to %g", len(test.sample), low, high, test.low, test.high)
		}
	}
}

// TestAgentsOfPairs: the settings give one device of each pair the recogniser that streams, and no other.
func TestAgentsOfPairs(t *testing.T) {
	text := settings{more: "  funasr: {type: funasr}\n", last: agentsOf(2)}.config("u")
	for _, want := range []string{"asr: [stub]\n", "\nagents: {streams: {asr: [funasr]}}\ndevices:\n", `  "` + streamsID(1) + `": {agent: streams}`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, streamsID(2)) || deviceID(0) == streamsID(0) {
		t.Error("another device has it")
	}
}
