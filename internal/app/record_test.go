package app

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/agent/record"
	"xiaozhi/agent/record/replay"
	"xiaozhi/internal/devicetest"
)

// TestServeRecords: where it is asked for, a talk on the real wire leaves one
// file for its owner only, start and log say so, and its replay sends the same.
func TestServeRecords(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "rec")
	t.Setenv("XIAOZHI_LOG__RECORD", dir)
	t.Setenv("XIAOZHI_ASR", "openai") // nothing to load
	base, end := serving(t, "data")
	typeAll(t, base, "what time is it", "set the volume to 30")
	for whole := false; !whole; time.Sleep(10 * time.Millisecond) { // the device has left; then there is no farewell
		files, _ := filepath.Glob(filepath.Join(dir, "*.talk.jsonl"))
		for _, f := range files {
			text, _ := os.ReadFile(f)
			whole = strings.Contains(string(text), `"end":`)
		}
	}
	out, log, _ := end()
	inOrder(t, out, "recorded in "+dir, "录在这里", "OTA URL")
	inOrder(t, log, "conversations are recorded", "conversation is recorded")

	files, err := filepath.Glob(filepath.Join(dir, "*.talk.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	f, err := os.Open(files[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rec, err := record.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	var texts, calls []string
	for _, e := range rec.Entries {
		if e.Sent != nil && e.Sent.Kind == "stt" {
			texts = append(texts, e.Sent.Text)
		}
		if e.Call != nil && e.Call.Tool != "" {
			calls = append(calls, e.Call.Tool+" "+string(e.Call.Arguments))
		}
	}
	if got := strings.Join(texts, ", "); got != "what time is it, set the volume to 30" {
		t.Errorf("it holds %q", got)
	}
	if got := strings.Join(calls, ", "); got != `self.audio_speaker.set_volume {"volume":30}` {
		t.Errorf("calls %s", got)
	}
	if last := rec.Entries[len(rec.Entries)-1]; last.End == nil || last.End.Short || rec.Torn {
		t.Errorf("it ends with %+v", last)
	}
	synctest.Test(t, func(t *testing.T) {
		got, err := replay.Run(t.Context(), rec, replay.Options{Within: 100 * time.Millisecond, Settle: synctest.Wait})
		if err != nil {
			t.Fatal(err)
		}
		// How late this machine was does not count; where it was so late that the
		// sound stalled, a stall was encoded that the replay does not have.
		late := replay.Farthest(rec, got) > 50*time.Millisecond
		for _, difference := range replay.Compare(rec, got, time.Minute) {
			if late && strings.HasPrefix(difference, "packet") {
				t.Log("on a late machine: ", difference)
				continue
			}
			t.Error(difference)
		}
	})
}

// typeAll connects a device with the usual tools to the server at base and types
// each text after the reply to the one before.
func typeAll(t *testing.T, base string, texts ...string) {
	t.Helper()
	o := devicetest.Options{Language: "en-US", Sound: devicetest.Sound{FrameMs: 60}, OpenListen: true, Tools: devicetest.NewBoard().Tools()}
	found, err := devicetest.Provision(t.Context(), base+"/xiaozhi/ota/", o)
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Token, o.Protocol = found.URL, found.Token, found.Protocol
	d, err := devicetest.Dial(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, text := range texts {
		if err := d.WaitMic(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := d.Detect(text); err != nil {
			t.Fatal(err)
		}
		if _, err := d.WaitReply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRecordBadFolder: a folder that cannot be used stops the start: whoever
// asks for recordings must not believe that there are some.
func TestRecordBadFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XIAOZHI_ASR", "openai")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XIAOZHI_LOG__RECORD", file)
	a, err := built(t, "data", io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err = a.Run(t.Context()); err == nil {
		t.Fatal("it runs")
	}
	inOrder(t, err.Error(), "log.record", file, "无法录制对话")
}
