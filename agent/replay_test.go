package agent_test

import (
	"bytes"
	"flag"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent"
	"xiaozhi/agent/record"
	"xiaozhi/agent/record/replay"
)

var (
	replayFile   = flag.String("replay", "", "a recording to be replayed by TestReplay")
	replayWithin = flag.Duration("within", 50*time.Millisecond, "how far times of the recording and its replay may be apart")
)

// recordScene plays a scene and gives its recording.
func recordScene(t *testing.T, file string, change func(*agent.Options)) *record.Recording {
	t.Helper()
	var recorded func() *record.Recording
	agent.RecordScene(t, file, change, func(s agent.Session) agent.SceneTape {
		var tape *record.Tape
		tape, recorded = record.NewTape(s)
		return tape
	})
	return recorded()
}

// again writes a recording, reads it, and replays it in a bubble of its own.
func again(t *testing.T, rec *record.Recording, within time.Duration) (read, replayed *record.Recording) {
	t.Helper()
	var file bytes.Buffer
	if err := rec.Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := record.Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		replayed, err = replay.Run(t.Context(), read, replay.Options{Within: within, Settle: synctest.Wait})
		if err != nil {
			t.Fatal(err)
		}
	})
	return read, replayed
}

// same fails with all that differs.
func same(t *testing.T, want, got *record.Recording, within time.Duration) {
	t.Helper()
	for _, difference := range replay.Compare(want, got, within) {
		t.Error(difference)
	}
}

// sent is how much a recording holds of what went to the device.
func sent(r *record.Recording) (messages, packets int) {
	for _, e := range r.Entries {
		if e.Sent != nil {
			messages++
		}
		if e.Audio != nil {
			packets++
		}
	}
	return messages, packets
}

// Every scene that is recorded and replayed gives the same messages and packets,
// byte for byte, at the same time (voice.md, behaviour 45).
func TestReplayScenes(t *testing.T) {
	files, err := filepath.Glob("testdata/talk/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenes", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			var rec *record.Recording
			synctest.Test(t, func(t *testing.T) { rec = recordScene(t, file, nil) })
			read, replayed := again(t, rec, 0)
			same(t, read, replayed, 0)
		})
	}
}
