package store

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
)

// TestDeviceRow: each field comes back as it was written, set or not.
func TestDeviceRow(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx, days := t.Context(), 0
		who := Identity{
			ID: "a", Address: "24:6f:28:aa:10:02", Client: "c1", State: DevicePaired, Name: "厨房 \x00\xff", AcceptedBy: "open", Token: "t1", Offered: []string{"t2", "t3"},
			Keeps: true, Told: true, Board: "b", Firmware: "2.4.2", FirstAt: at(0), SeenAt: at(1), SinceAt: at(2),
		}
		none := Identity{ID: "b", Address: "m", State: DeviceNew, FirstAt: at(1)}
		code := Pairing{DeviceID: "b", Code: "048291", Challenge: "ch", Remote: "192.168.1.7", BeganAt: at(0), EndsAt: at(10)}
		want(t, s.Devices.Commit(ctx, DeviceChange{Save: []Identity{who, none}, Open: []Pairing{code}}), nil)
		who.Name = "厨房 \uFFFD"
		all, waiting, err := s.Devices.Identities(ctx)
		if err != nil || !reflect.DeepEqual(all, []Identity{who, none}) || !reflect.DeepEqual(waiting, []Pairing{code}) {
			t.Errorf("%+v\n%+v\n%v", all, waiting, err)
		}
		full := Device{
			Identity: who, Chip: "c", Language: "zh", Zone: "Asia/Shanghai", Features: `{"mcp":true}`, Remote: "192.168.1.2", Overrides: "{}", KeepText: &days,
			AskedAt: at(1), HelloAt: at(2), TurnAt: at(3), LastStep: "hello",
		}
		got, err := s.Devices.Edit(ctx, "a", func(d *Device) error { *d = full; d.Name = "another"; return nil })
		if err != nil || !reflect.DeepEqual(got, full) {
			t.Errorf("%+v %v\nwant %+v", got, err, full)
		}
		if got, err = s.Devices.Get(ctx, "a"); err != nil || !reflect.DeepEqual(got, full) {
			t.Errorf("%+v %v\nwant %+v", got, err, full)
		}
		_, err = s.Devices.Get(ctx, "c")
		want(t, err, ErrNotFound)
		_, err = s.Devices.Edit(ctx, "c", func(*Device) error { return nil })
		want(t, err, ErrNotFound)
		_, err = s.Devices.Edit(ctx, "a", func(d *Device) error { d.Chip = "x"; return ErrFull })
		want(t, err, ErrFull)
		if got, _ := s.Devices.Get(ctx, "a"); got.Chip != "c" {
			t.Errorf("an edit that failed was kept: %+v", got)
		}
	})
}

// TestDeviceChange: a change is kept whole or not at all, and an address belongs to one pair.
func TestDeviceChange(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		holds := func(want string) {
			t.Helper()
			all, waiting, err := s.Devices.Identities(ctx)
			got := ""
			for _, d := range all {
				got += fmt.Sprintf("%s=%s/%s ", d.ID, d.Client, d.State)
			}
			if got += fmt.Sprint(len(waiting)); got != want || err != nil {
				t.Errorf("%s %v, want %s", got, err, want)
			}
		}
		first := Identity{ID: "m", Address: "m", Client: "1", State: DevicePaired}
		second := Identity{ID: "m~2", Address: "m", Client: "2", State: DeviceStranger}
		code := Pairing{DeviceID: "m~2", Code: "1", Challenge: "c", BeganAt: at(0), EndsAt: at(1)}
		want(t, s.Devices.Commit(ctx, DeviceChange{Save: []Identity{first, second}, Open: []Pairing{code}}), nil)
		holds("m=1/paired m~2=2/stranger 1")
		want(t, s.Devices.Commit(ctx, DeviceChange{Open: []Pairing{code}}), nil)
		_, err := s.Devices.Edit(ctx, "m", func(d *Device) error { d.Language = "zh"; return nil })
		want(t, err, nil)
		want(t, s.Reminders.Add(ctx, Reminder{ID: "r", DeviceID: "m", Kind: "timer", State: "armed", DueAt: at(5)}), nil)

		second.State = DevicePaired // while the first is
		want(t, s.Devices.Commit(ctx, DeviceChange{Drop: []string{"m"}, Settled: []string{"m~2"}, Save: []Identity{first, second}}), ErrExists)
		holds("m=1/paired m~2=2/stranger 1")

		first.State = DeviceStranger
		want(t, s.Devices.Commit(ctx, DeviceChange{Save: []Identity{second, first}, Settled: []string{"m~2", "nobody"}}), nil)
		holds("m=1/stranger m~2=2/paired 0")

		second.ID = "m" // the pair takes the place of the other, whose record goes
		want(t, s.Devices.Commit(ctx, DeviceChange{Drop: []string{"m~2", "nobody"}, Save: []Identity{second}}), nil)
		holds("m=2/paired 0")
		if d, err := s.Devices.Get(ctx, "m"); err != nil || d.Language != "zh" {
			t.Errorf("its details went: %+v %v", d, err)
		}
		if all, err := s.Reminders.Find(ctx, ReminderQuery{DeviceID: "m"}); err != nil || len(all) != 1 {
			t.Errorf("its reminders went: %v %v", all, err)
		}
		want(t, s.Devices.Commit(ctx, DeviceChange{Drop: []string{"m"}}), nil)
		holds("0")
		if all, err := s.Reminders.Find(ctx, ReminderQuery{}); err != nil || len(all) != 0 {
			t.Errorf("reminders outlive their device: %v %v", all, err)
		}
		addDevice(t, s, "n")
		mine := errors.New("not yours")
		_, err = s.Devices.Edit(ctx, "n", func(*Device) error { return mine })
		want(t, err, mine)
		if h := s.Health(); h.Err != nil || len(h.Trouble) > 0 {
			t.Errorf("answers are no trouble: %+v", h)
		}
	})
}

// TestDevicePages: pages neither leave out nor repeat devices that were first seen in the same millisecond.
func TestDevicePages(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		var all []Identity
		for i := range 25 {
			all = append(all, Identity{ID: fmt.Sprintf("d%02d", i), Address: fmt.Sprint(i), State: DeviceNew, FirstAt: at(i / 10)})
		}
		want(t, s.Devices.Commit(t.Context(), DeviceChange{Save: all}), nil)
		seen := map[string]bool{}
		for p := (Page{Limit: 4}); ; {
			all, err := s.Devices.List(t.Context(), p)
			want(t, err, nil)
			for _, d := range all {
				if seen[d.ID] {
					t.Error("twice", d.ID)
				}
				seen[d.ID] = true
				p.Before = Cursor{d.FirstAt, d.ID}
			}
			if len(all) < 4 {
				break
			}
		}
		if len(seen) != 25 {
			t.Errorf("%d devices", len(seen))
		}
	})
}
