package directory

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/wire"
)

// fake is a device that has an id only.
type fake struct {
	Device
	id string
}

func (f *fake) Info() Info { return Info{Session: wire.Session{DeviceID: f.id}} }

// log is a watcher that writes down what it is told.
type log struct{ told []string }

func (l *log) DeviceChanged(id string)     { l.told = append(l.told, id) }
func (l *log) TranscriptChanged(id string) { l.told = append(l.told, "words "+id) }

// ids lists the devices.
func ids(t *testing.T, d *Devices) string {
	t.Helper()
	var out []string
	for _, device := range d.List() {
		out = append(out, device.Info().DeviceID)
	}
	return strings.Join(out, " ")
}

// TestRemoveKeepsNewer: a device that comes back before its old connection has
// ended is found, and the end of the old one does not take it away.
func TestRemoveKeepsNewer(t *testing.T) {
	d := New()
	before, after := &fake{id: "aa:bb"}, &fake{id: "aa:bb"}
	d.Add(before)
	d.Add(after)
	d.Remove(before)
	if got, err := d.Find("aa:bb"); err != nil || got != Device(after) || ids(t, d) != "aa:bb" {
		t.Fatalf("%v, %v", got, err)
	}
	d.Remove(after)
	d.Remove(after) // a connection may end twice
	if _, err := d.Find("aa:bb"); !errors.Is(err, ErrNotConnected) || ids(t, d) != "" {
		t.Error("the device is there after its end")
	}
}

// TestListWhileDevicesCome: devices may come and go while the list is read.
func TestListWhileDevicesCome(t *testing.T) {
	d := New()
	var coming sync.WaitGroup
	for i := range 50 {
		device := &fake{id: fmt.Sprintf("aa:%02d", 49-i)}
		coming.Go(func() {
			d.Add(device)
			if ids(t, d) == "" {
				t.Error("no device is there")
			}
			if i%2 == 1 {
				d.Remove(device)
			}
		})
	}
	coming.Wait()
	if n := len(strings.Fields(ids(t, d))); n != 25 {
		t.Errorf("%d devices, want 25", n)
	}
}

func TestListOrder(t *testing.T) {
	d := New()
	for _, id := range []string{"c", "a", "d", "b"} {
		d.Add(&fake{id: id})
	}
	if got := ids(t, d); got != "a b c d" {
		t.Error(got)
	}
}

func TestWatcher(t *testing.T) {
	d, l := New(), &log{}
	d.Watch(l)
	device := &fake{id: "aa:bb"}
	d.Add(device)
	d.Transcribe("aa:bb", &Transcript{}, &silent{}).Send(wire.Message{Kind: wire.MessageSTT, Text: "hello"})
	d.Changed("aa:bb")
	d.Remove(device)
	if got := strings.Join(l.told, ", "); got != "aa:bb, words aa:bb, aa:bb, aa:bb" {
		t.Errorf("told %s", got)
	}
}

// silent is an outbox that counts messages, and can do nothing else.
type silent struct {
	wire.Outbox
	sent int
}

func (s *silent) Send(wire.Message) { s.sent++ }

// TestTranscript: only what user and assistant say is kept, and no more than maxLines.
func TestTranscript(t *testing.T) {
	out, words := &silent{}, &Transcript{}
	o := New().Transcribe("x", words, out)
	for i := range maxLines {
		for _, m := range []wire.Message{
			{Kind: wire.MessageSTT, Text: fmt.Sprint("question ", i)},
			{Kind: wire.MessageChunk, Text: "part"},
			{Kind: wire.MessageFinal, Text: fmt.Sprint("answer ", i)},
			{Kind: wire.MessageFinal},
		} {
			o.Send(m)
		}
	}
	lines := words.Lines()
	if len(lines) != maxLines || lines[maxLines-1].Text != fmt.Sprint("answer ", maxLines-1) || lines[maxLines-2].Role != "user" || lines[0].Time.IsZero() {
		t.Errorf("%d lines, %+v", len(lines), lines[len(lines)-2:])
	}
	if out.sent != 4*maxLines {
		t.Errorf("sent %d", out.sent)
	}
}
