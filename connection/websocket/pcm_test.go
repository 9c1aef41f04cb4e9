package websocket

import (
	"encoding/binary"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"xiaozhi/audio"
	"xiaozhi/internal/wire"
)

const helloPCM = `{"type":"hello","version":1,"transport":"websocket","audio_params":{"format":"pcm","sample_rate":16000,"channels":1,"frame_duration":60}}`

// A client of PCM is heard as any device, and hears frames of PCM one by one; who asks for Opus sees none.
func TestPCM(t *testing.T) {
	bubble(t, nil, func(t *testing.T, r *rig) {
		p := r.dial("d-1")
		p.send(helloPCM)
		talk := r.talk(0)
		if texts := p.texts(); len(texts) != 1 || !strings.Contains(texts[0], `"format":"pcm","sample_rate":24000,"channels":1,"frame_duration":60`) {
			t.Fatalf("hello: %q", texts)
		}
		frame := make([]byte, 0, 1920)
		for i := range 960 {
			frame = binary.LittleEndian.AppendUint16(frame, uint16(int16(i%32*600-9600)))
		}
		for range 10 {
			p.sendBinary(frame)
			time.Sleep(60 * time.Millisecond)
		}
		p.sendBinary(frame[:400]) // less than a frame waits
		p.sendBinary(frame[400:])
		synctest.Wait()
		var packets [][]byte
		for _, ev := range talk.all() {
			if packet, ok := ev.(wire.Packet); ok {
				packets = append(packets, packet.Data)
			}
		}
		if len(packets) != 11 {
			t.Fatalf("%d packets were heard, want 11", len(packets))
		}
		if got := loudest(t, packets); got < 8000 || got > 14000 {
			t.Errorf("the loudest sample heard is %d, want about 9600", got)
		}

		enc, err := audio.NewEncoder(audio.Reply)
		if err != nil {
			t.Fatal(err)
		}
		packet, tone := make([]byte, audio.MaxPacket), make([]int16, audio.Reply.Samples())
		for i := range tone {
			tone[i] = int16(i%48*400 - 9600)
		}
		for range 3 {
			n, err := enc.Encode(tone, packet)
			if err != nil {
				t.Fatal(err)
			}
			talk.out.Audio(1, packet[:n])
		}
		talk.out.Send(wire.Message{Kind: wire.MessageTTSStop, Turn: 1, Closing: packet[:1]})
		synctest.Wait()
		frames := p.of(websocket.BinaryMessage)
		if len(frames) != 4 {
			t.Fatalf("%d frames came, want 4", len(frames))
		}
		for i, f := range frames {
			if len(f.data) != 2880 {
				t.Errorf("frame %d has %d bytes, want 2880", i, len(f.data))
			}
		}
		p.alive(talk)
	})
}

// Who says PCM and means something else is told what there is.
func TestPCMRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		hello string
		frame int
		want  string
	}{
		"rate":       {hello: strings.Replace(helloPCM, "16000", "24000", 1), want: "16000 Hz"},
		"framing":    {hello: strings.Replace(helloPCM, `"version":1`, `"version":3`, 1), want: "framing 1"},
		"odd bytes":  {hello: helloPCM, frame: 1919, want: "2 to 3840 bytes"},
		"too long":   {hello: helloPCM, frame: 3842, want: "2 to 3840 bytes"},
		"opus bytes": {hello: helloPCM, frame: 77, want: "even number"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, r *rig) {
				p := r.dial("d-1")
				p.send(tc.hello)
				if tc.frame > 0 {
					synctest.Wait()
					p.sendBinary(make([]byte, tc.frame))
				}
				<-p.done
				closed := p.of(websocket.CloseMessage)
				if len(closed) != 1 || closed[0].code != websocket.ClosePolicyViolation || !strings.Contains(string(closed[0].data), tc.want) {
					t.Errorf("closed with %+v, want 1008 with %q", closed, tc.want)
				}
			})
		})
	}
}

// loudest is the loudest sample of packets.
func loudest(t *testing.T, packets [][]byte) (most int16) {
	t.Helper()
	d, err := audio.NewDecoder(audio.Recognition.Rate)
	if err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, audio.MaxFrameSamples(audio.Recognition.Rate))
	for _, packet := range packets {
		n, err := d.Decode(packet, pcm)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range pcm[:n] {
			most = max(most, s, -s)
		}
	}
	return most
}
