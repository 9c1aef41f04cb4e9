package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"xiaozhi/store"
)

// What the pages of a home show: three speakers, one that waits to be paired, and a talk with each recorded turn.
const (
	kitchen   = "34:85:18:aa:10:01"
	study     = "34:85:18:aa:10:02"
	longNamed = "34:85:18:aa:10:03"
	waiting   = "34:85:18:aa:10:04"
	keptTalk  = "kept-kitchen"
)

// furnish writes the data of a home into an empty folder of a server.
func furnish(ctx context.Context, dir string, now time.Time) (err error) {
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		return err
	}
	s, err := store.Open(ctx, store.Options{Path: filepath.Join(dir, "data", "xiaozhi.db")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	speaker := func(id, name, board string, state store.DeviceState, seen time.Duration) store.Identity {
		return store.Identity{
			ID: id, Address: id, Client: "client-" + id, State: state, Name: name, Told: true, Board: board, Firmware: "2.4.2",
			FirstAt: now.Add(-40 * 24 * time.Hour), SeenAt: now.Add(-seen), SinceAt: now.Add(-seen),
		}
	}
	err = s.Devices.Commit(ctx, store.DeviceChange{Save: []store.Identity{
		speaker(kitchen, "厨房", "ESP-BOX-3", store.DevicePaired, 4*time.Minute),
		speaker(study, "Study", "bread-compact-wifi", store.DevicePaired, 26*time.Hour),
		speaker(longNamed, "放在二楼走廊尽头书架最上面一层的那个小音箱请不要随便移动它的位置 Donaudampfschifffahrtsgesellschaftskapitänsmütze", "lichuang-dev", store.DevicePaired, 9*24*time.Hour),
	}})
	if err != nil {
		return err
	}
	recorded, err := os.ReadFile(filepath.Join("..", "console", "waterfall", "testdata", "turns.json"))
	if err != nil {
		return err
	}
	var turns map[string]store.Turn
	if err := json.Unmarshal(recorded, &turns); err != nil {
		return err
	}
	for day, device := range slices.Backward([]string{kitchen, kitchen, study, longNamed}) {
		talk := store.Conversation{ID: keptTalk, DeviceID: device, BeganAt: now.Add(-time.Duration(day)*26*time.Hour - 10*time.Minute)}
		if day > 0 {
			talk.ID = fmt.Sprint(keptTalk, day)
		}
		for i, name := range []string{"spoken", "typed", "hedged", "long", "failed"} {
			turn := turns[name]
			turn.ID, turn.Seq, turn.At, turn.DeviceID = fmt.Sprint(talk.ID, "-", i+1), i+1, talk.BeganAt.Add(time.Duration(i)*time.Minute), device
			e := &store.Entry{Conversation: talk, Turn: turn, Agent: "default"}
			if name == "spoken" {
				e.Calls = []store.Call{
					{ID: turn.ID + "a", At: turn.At, Caller: "model", Name: "self.lamp.get_state", Source: "device", Kind: "query", Arguments: "{}", Result: `{"power":"off"}`, Took: 142 * time.Millisecond},
					{ID: turn.ID + "b", At: turn.At, Caller: "model", Name: "self.audio_speaker.set_volume", Source: "device", Kind: "control", Arguments: `{"volume":60}`, Result: "true", Took: 31 * time.Millisecond},
				}
			}
			s.Log.Put(e)
		}
		s.Log.Ended(talk.ID, talk.BeganAt.Add(6*time.Minute), "idle")
	}
	return s.Log.Flush(ctx)
}
