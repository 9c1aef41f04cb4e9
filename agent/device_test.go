package agent

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/providers"
)

func TestDevicesAcquireOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDevices()
		first, err := d.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan *Device)
		go func() {
			dev, err := d.acquire(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			got <- dev
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("lent twice")
		default:
		}
		d.release(first)
		if second := <-got; second != first {
			t.Error("another record came back")
		} else {
			d.release(second)
		}
	})
}

// A forgotten record comes back to nobody, whoever holds it or waits for it.
func TestForgottenRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDevices()
		first, err := d.acquire(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		first.role.name = "pirate"
		waits := make(chan *Device)
		go func() {
			dev, err := d.acquire(t.Context(), "a")
			if err != nil {
				t.Error(err)
			}
			waits <- dev
		}()
		synctest.Wait()
		d.Forget("a")
		d.Forget("nobody")
		second, err := d.acquire(t.Context(), "a") // does not wait for the first
		if err != nil || second == first || second.role.name != "" {
			t.Errorf("%+v, %v", second, err)
		}
		d.release(first)
		d.release(second)
		if third := <-waits; third != second {
			t.Error("who waited got the forgotten one")
		} else {
			d.release(third)
		}
		d.Forget("a")
		if len(d.byID) != 0 {
			t.Errorf("%d records", len(d.byID))
		}
	})
}

func TestLendGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDevices()
		if _, err := d.acquire(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if _, err := d.acquire(ctx, "a"); !errors.Is(err, gone) {
			t.Errorf("err = %v", err)
		}
	})
}

func TestDevicesAreForgottenAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDevices()
		visit := func(id string) *Device {
			dev, err := d.acquire(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return dev
		}
		old := visit("old")
		old.history.Add(providers.Message{Role: providers.RoleUser, Content: "x"})
		d.release(old)
		time.Sleep(9 * time.Minute)
		d.release(visit("other"))
		if again := visit("old"); again != old {
			t.Error("forgotten after nine minutes")
		}
		d.release(old)
		time.Sleep(keepDevice + time.Second)
		d.release(visit("other"))
		if again := visit("old"); again == old || len(again.history.Snapshot()) != 0 {
			t.Error("not forgotten")
		}
	})
}

// dueState is what a feature keeps until a time.
type dueState time.Time

func (s dueState) Keep(left time.Time) time.Duration { return max(0, time.Time(s).Sub(left)) }
func (dueState) Close()                              {}

// What a feature keeps is not forgotten before its time, however far ahead that is.
func TestDevicesKeepStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDevices()
		visit := func(id string) *Device {
			dev, err := d.acquire(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return dev
		}
		dev := visit("a")
		dev.set("alarm", dueState(time.Now().Add(301*24*time.Hour)))
		d.release(dev)
		time.Sleep(299 * 24 * time.Hour)
		d.release(visit("b"))
		if dev = visit("a"); dev.states["alarm"] == nil {
			t.Error("the reminder is gone a day before it is due")
		}
		d.release(dev)
		time.Sleep(3 * 24 * time.Hour)
		d.release(visit("b"))
		if visit("a").states["alarm"] != nil {
			t.Error("it is kept for ever")
		}
	})
}

// However many devices come, the memory for them has an end: the one that was
// away longest is forgotten, but not one that something waits for.
func TestRecordsHaveAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDevices()
		for i := range mostRecords + 10 {
			dev, err := d.acquire(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			if i == 3 {
				dev.queue.add(feature.Announcement{Text: "the tea is ready"})
			}
			time.Sleep(time.Millisecond)
			d.release(dev)
		}
		for id, there := range map[string]bool{"0": false, "3": true, "10": false, "11": true, fmt.Sprint(mostRecords + 9): true} {
			if got := d.byID[id] != nil; got != there {
				t.Errorf("device %s: %v", id, got)
			}
		}
		if n := len(d.byID); n != mostRecords {
			t.Errorf("%d records", n)
		}
	})
}

// However many devices somebody makes up, and has something wait for each of them, the
// records have an end, and the older ones stay. Unknown devices make room first.
func TestMadeUpDevicesDriveNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDevices()
		visit := func(id string, unknown, waits bool) {
			dev, err := d.acquire(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if dev.unknown = unknown; waits {
				dev.queue.add(feature.Announcement{Text: "the tea is ready"})
			}
			time.Sleep(time.Millisecond)
			d.release(dev)
		}
		visit("speaker", false, false)
		visit("stranger", true, false)
		for i := range mostRecords - 1 {
			visit(fmt.Sprint(i), false, true)
		}
		if d.byID["speaker"] == nil || d.byID["stranger"] != nil {
			t.Error("the stranger did not make room for the speaker")
		}
		visit("speaker", false, true)
		for i := range 100 {
			visit(fmt.Sprint("made up ", i), i%2 == 0, true)
		}
		if n := len(d.byID); n != mostRecords {
			t.Errorf("%d records", n)
		}
		for _, id := range []string{"speaker", "0", "1", fmt.Sprint(mostRecords - 2)} {
			if d.byID[id] == nil {
				t.Errorf("what waits for %s is gone", id)
			}
		}
	})
}

// A record that somebody has asked for is not forgotten before it is lent,
// however old it is: the borrower would wait for ever.
func TestDevicesKeepsWaiters(t *testing.T) {
	d := NewDevices()
	other, err := d.acquire(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	// A borrower that has found its record and not yet taken it.
	asked := &Device{id: "asked", slot: make(chan struct{}, 1), wanted: 1}
	asked.slot <- struct{}{}
	d.byID["asked"] = asked
	d.release(other)
	if len(asked.slot) != 1 || d.byID["asked"] != asked {
		t.Error("the record was taken away from its borrower")
	}
}
