package agent

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/internal/wire"
	"xiaozhi/providers"
)

// A record that is made of a memory gives that memory back, and nobody's record
// is overwritten.
func TestMemory(t *testing.T) {
	m := Memory{
		History:  []providers.Message{{Role: providers.RoleUser, Content: "hi"}},
		Language: "zh", Role: "teacher", Hinted: time.Unix(1, 0), Pause: 800 * time.Millisecond, Fast: 3, Echoes: true,
	}
	d := NewDevices()
	defer d.Close()
	d.Remember("a", m)
	d.Remember("a", Memory{Role: "other"})
	dev, err := d.acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if got := dev.memory(); !reflect.DeepEqual(got, m) {
		t.Errorf("%+v", got)
	}
	dev.queue.add(feature.Announcement{Text: "later"})
	if !dev.memory().Waiting {
		t.Error("what waits is not told of")
	}
	d.release(dev)
}

// Recall gets what the record holds once, when the conversation begins.
func TestRecall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDevices()
		defer d.Close()
		d.Remember("a", Memory{Role: "teacher"})
		var got []Memory
		c := New(Options{Devices: d, Recall: func(m Memory) { got = append(got, m) }}, wire.Session{DeviceID: "a"}, newBox(), nil)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() {
			defer close(over)
			c.Run(ctx)
		}()
		synctest.Wait()
		cancel()
		<-over
		if len(got) != 1 || got[0].Role != "teacher" {
			t.Errorf("%+v", got)
		}
	})
}
