package store

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"
)

// TestDeviceRow: each field comes back as it was written, set or not.
func TestDeviceRow(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx, days := t.Context(), 0
		all := Device{
			ID: "a", MAC: "24:6f:28:aa:10:02", ClientID: "c", State: DeviceNew, Name: "厨房 \x00\xff", Board: "b", Chip: "c", Firmware: "2.4.2",
			Language: "zh", Zone: "Asia/Shanghai", Features: `{"mcp":true}`, Remote: "192.168.1.2", Overrides: "{}", KeepText: &days,
			FirstAt: at(0), AskedAt: at(1), HelloAt: at(2), TurnAt: at(3), LastStep: "hello", PairedAt: at(4), PairedBy: "open", ReissueUntil: at(5),
		}
		got, added, err := s.Devices.Bind(ctx, all)
		want(t, err, nil)
		all.Name = "厨房 \uFFFD"
		if !added || !reflect.DeepEqual(got, all) {
			t.Errorf("%+v\nwant %+v", got, all)
		}
		none := Device{ID: "b", MAC: "m", ClientID: "", State: DeviceBrowser, FirstAt: at(1)}
		if got, _, err = s.Devices.Bind(ctx, none); err != nil || !reflect.DeepEqual(got, none) {
			t.Errorf("%+v %v\nwant %+v", got, err, none)
		}
		_, err = s.Devices.Get(ctx, "c")
		want(t, err, ErrNotFound)
	})
}

// TestBindRace: of two pairs of one MAC that come at once, one is paired and the other is a stranger.
func TestBindRace(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		states := make([]DeviceState, 8)
		var wg sync.WaitGroup
		for i := range states {
			wg.Go(func() {
				d, added, err := s.Devices.Bind(t.Context(), Device{ID: fmt.Sprint("d", i), MAC: "m", ClientID: fmt.Sprint(i), State: DevicePaired, FirstAt: at(0)})
				if err != nil || !added {
					t.Error(added, err)
				}
				states[i] = d.State
			})
		}
		wg.Wait()
		counts := map[DeviceState]int{}
		for _, state := range states {
			counts[state]++
		}
		if counts[DevicePaired] != 1 || counts[DeviceStranger] != 7 {
			t.Errorf("%v", counts)
		}
		all, err := s.Devices.OfMAC(t.Context(), "m")
		if err != nil || len(all) != 8 || all[0].State != DevicePaired {
			t.Errorf("%d %v", len(all), err)
		}
	})
}

func TestDeviceEdit(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "a")
		d, err := s.Devices.Edit(ctx, "a", func(d *Device) error { d.ID, d.Name = "other", "Küche"; return nil })
		want(t, err, nil)
		if got, err := s.Devices.Get(ctx, "a"); err != nil || got.Name != "Küche" || d.ID != "a" {
			t.Errorf("%+v %v", got, err)
		}
		_, err = s.Devices.Edit(ctx, "a", func(d *Device) error { d.Name = "x"; return ErrFull })
		want(t, err, ErrFull)
		if got, _ := s.Devices.Get(ctx, "a"); got.Name != "Küche" {
			t.Errorf("an edit that failed was kept: %+v", got)
		}
		_, err = s.Devices.Edit(ctx, "b", func(*Device) error { return nil })
		want(t, err, ErrNotFound)
		_, _, err = s.Devices.Bind(ctx, Device{ID: "b", MAC: "a", ClientID: "2", State: DevicePaired, FirstAt: at(0)})
		want(t, err, nil)
		_, err = s.Devices.Edit(ctx, "b", func(d *Device) error { d.State = DevicePaired; return nil })
		want(t, err, ErrExists)
		n, err := s.Devices.Count(ctx, DevicePaired)
		if n != 1 || err != nil {
			t.Error(n, err)
		}
		if h := s.Health(); h.Err != nil || len(h.Trouble) > 0 {
			t.Errorf("answers are no trouble: %+v", h)
		}
	})
}

// TestPair: the pair that is accepted takes the place of the one before, whose tokens end.
func TestPair(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		want(t, s.Tokens.Add(ctx, "m", "h1"), nil)
		_, _, err := s.Devices.Bind(ctx, Device{ID: "n", MAC: "m", ClientID: "2", State: DevicePaired, FirstAt: at(0)})
		want(t, err, nil)
		d, err := s.Devices.Pair(ctx, "n", "owner")
		if err != nil || d.State != DevicePaired || d.PairedBy != "owner" {
			t.Errorf("%+v %v", d, err)
		}
		if old, err := s.Devices.Get(ctx, "m"); err != nil || old.State != DeviceStranger {
			t.Errorf("%+v %v", old, err)
		}
		_, _, err = s.Tokens.Use(ctx, "h1")
		want(t, err, ErrNotFound)
	})
}

func TestDeviceTokens(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx := t.Context()
		addDevice(t, s, "m")
		for i := range 12 {
			want(t, s.Tokens.Add(ctx, "m", fmt.Sprint("h", i)), nil)
			time.Sleep(2 * time.Millisecond) // they are in the order of their times
		}
		_, _, err := s.Tokens.Use(ctx, "h0")
		want(t, err, ErrNotFound) // only the last eight wait
		if used, err := s.Tokens.Used(ctx, "m"); used || err != nil {
			t.Error(used, err)
		}
		token, first, err := s.Tokens.Use(ctx, "h7")
		if err != nil || !first || token.DeviceID != "m" {
			t.Errorf("%+v %v %v", token, first, err)
		}
		if token, first, err = s.Tokens.Use(ctx, "h7"); err != nil || first || token.UsedAt.IsZero() {
			t.Errorf("%+v %v %v", token, first, err)
		}
		_, _, err = s.Tokens.Use(ctx, "h11")
		want(t, err, ErrNotFound)
		want(t, s.Tokens.Add(ctx, "nobody", "h"), ErrNotFound)
		want(t, s.Tokens.Revoke(ctx, "m"), nil)
		_, _, err = s.Tokens.Use(ctx, "h7")
		want(t, err, ErrNotFound)
	})
}

func TestPairings(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		ctx, soon := t.Context(), time.Now().Add(time.Hour)
		for i := range 70 {
			addDevice(t, s, fmt.Sprint("d", i))
		}
		open := func(device, code, remote string, ends time.Time) error {
			return s.Pairings.Open(ctx, Pairing{DeviceID: device, Code: code, Challenge: "c", Remote: remote, CreatedAt: time.Now(), EndsAt: ends})
		}
		want(t, open("d0", "111111", "a", soon), nil)
		want(t, open("d0", "222222", "a", soon), nil)
		want(t, open("d1", "222222", "a", soon), ErrExists)
		want(t, open("d1", "333333", "a", time.Now().Add(-time.Second)), nil)
		_, err := s.Pairings.Accept(ctx, "333333", "me")
		want(t, err, ErrNotFound) // it has ended
		_, err = s.Pairings.Accept(ctx, "111111", "me")
		want(t, err, ErrNotFound) // it was replaced
		want(t, s.Pairings.Polled(ctx, "d0", soon.Add(time.Minute)), nil)
		if p, err := s.Pairings.Of(ctx, "d0"); err != nil || p.Polls != 1 || p.Code != "222222" {
			t.Errorf("%+v %v", p, err)
		}
		d, err := s.Pairings.Accept(ctx, "222222", "me")
		if err != nil || d.ID != "d0" || d.PairedBy != "me" {
			t.Errorf("%+v %v", d, err)
		}
		_, err = s.Pairings.Accept(ctx, "222222", "me")
		want(t, err, ErrNotFound) // a code works once
		for i := range 64 {
			want(t, open(fmt.Sprint("d", i), fmt.Sprintf("%06d", i), fmt.Sprint("net", i/8), soon), nil)
		}
		want(t, open("d64", "999999", "net9", soon), ErrFull)
		want(t, s.Pairings.Drop(ctx, "d63"), nil)
		want(t, open("d64", "999999", "net0", soon), ErrFull) // eight of this address
		want(t, open("d64", "999999", "net9", soon), nil)
		if all, err := s.Pairings.List(ctx); err != nil || len(all) != 64 {
			t.Error(len(all), err)
		}
	})
}

// TestDevicePages: pages neither leave out nor repeat devices that were first seen in the same millisecond.
func TestDevicePages(t *testing.T) {
	onBoth(t, func(t *testing.T, s *Store) {
		for i := range 25 {
			_, _, err := s.Devices.Bind(t.Context(), Device{ID: fmt.Sprintf("d%02d", i), MAC: fmt.Sprint(i), ClientID: "c", State: DeviceNew, FirstAt: at(i / 10)})
			want(t, err, nil)
		}
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
