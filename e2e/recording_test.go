package e2e

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/speechtest"
)

// sounds decodes the recordings below a data folder, by their paths in it.
func sounds(t *testing.T, data string) map[string][]int16 {
	t.Helper()
	all := map[string][]int16{}
	root := filepath.Join(data, "recordings")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".opus") {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", path, err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r, err := file.NewOpusReader(bytes.NewReader(content))
		if err != nil {
			return err
		}
		var pcm []int16
		for buf := make([]int16, 4096); ; {
			n, err := r.Read(buf)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			pcm = append(pcm, buf[:n]...)
		}
		name, _ := filepath.Rel(root, path)
		all[name] = pcm
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// recordedSides waits until so many files of each side are there, and returns them.
func recordedSides(t *testing.T, data string, turns int) (user, reply [][]int16) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		user, reply = nil, nil
		for name, pcm := range sounds(t, data) {
			if strings.HasSuffix(name, "-user.opus") {
				user = append(user, pcm)
			} else {
				reply = append(reply, pcm)
			}
		}
		if len(user) >= turns && len(reply) >= turns {
			return user, reply
		}
		if time.Now().After(end) {
			t.Fatalf("%d and %d recordings, want %d", len(user), len(reply), turns)
		}
	}
}

func rms(pcm []int16) float64 {
	sum := 0.0
	for _, v := range pcm {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(max(len(pcm), 1)))
}

func lengthOf(pcm []int16, rate int) time.Duration {
	return time.Duration(len(pcm)) * time.Second / time.Duration(rate)
}

// says has a person push to talk.
func says(t *testing.T, d *devicetest.Device, clip speechtest.Clip) *devicetest.Reply {
	t.Helper()
	ctx := limit(t)
	if err := d.ListenStart(devicetest.Manual); err != nil {
		t.Fatal(err)
	}
	if err := d.Say(ctx, clip.PCM()); err != nil {
		t.Fatal(err)
	}
	if err := d.ListenStop(); err != nil {
		t.Fatal(err)
	}
	return reply(ctx, t, d)
}

// beside runs the program in a folder, beside a server or without one.
func beside(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.Env = dir, cleanEnv()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// TestRecordings: what was said and what was played is in files that play; they survive kill -9 whole, are part of a
// backup with sound and of what that restores, and go with the device that is forgotten.
func TestRecordings(t *testing.T) {
	t.Parallel()
	dir, clip := t.TempDir(), clipNamed(t, speechtest.Prompts, "vm-msgsaved")
	// A device is known by both, so it is the same one after each start.
	o := devicetest.Options{DeviceID: newDeviceID(), ClientID: "8e0c6b2e-7c60-4a3c-9c1c-0d5a3ad1c0f3", Mode: devicetest.Manual}
	boot := func(dir string) *server {
		s, err := launch(setup{config: "recording: {sound: both}\n"}, dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = s.end() // one was killed
			if t.Failed() {
				t.Logf("the server's log:\n%s", s.log.String())
			}
		})
		s.waitReady(limit(t), t)
		return s
	}
	data := filepath.Join(dir, "data")
	s := boot(dir)
	if !strings.Contains(s.banner.String(), "REC  the sound of turns is recorded (recording.sound: both), for 7 days and up to 2GiB, in data/recordings") {
		t.Errorf("the start says\n%s", s.banner.String())
	}
	d := s.dial(limit(t), t, o)
	r := says(t, d, clip)
	user, spoken := recordedSides(t, data, 1)
	said := clip.PCM()
	if got, want := lengthOf(user[0], 48000), lengthOf(said, 16000); got < want || got > want+200*time.Millisecond {
		t.Errorf("%v of the user is recorded, %v was said", got, want)
	}
	if got, want := rms(user[0]), rms(said); got < want/2 || got > want*2 {
		t.Errorf("the user is as loud as %.0f, and was %.0f", got, want)
	}
	if got, want := lengthOf(spoken[0], 48000), lengthOf(r.PCM, r.Rate); got < want-200*time.Millisecond || got > want+200*time.Millisecond {
		t.Errorf("%v of the reply is recorded, %v was played", got, want)
	}
	if got, want := rms(spoken[0]), rms(r.PCM); got < want/2 || got > want*2 {
		t.Errorf("the reply is as loud as %.0f, and was %.0f", got, want)
	}

	says(t, d, clip)
	recordedSides(t, data, 2)
	archive := filepath.Join(dir, "all.tar.gz")
	beside(t, dir, "backup", archive, "--sound")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.over
	d.Close()
	kept := sounds(t, data)
	// What a kill in the middle of writing leaves.
	folder := filepath.Join(data, "recordings", "lost", "talk")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a-user.opus.part", "b-user.opus"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("OggS"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	s = boot(dir)
	d = s.dial(limit(t), t, o)
	says(t, d, clip)
	recordedSides(t, data, 3)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Error("what the kill has left is there:", err)
	}
	after := sounds(t, data)
	for name, pcm := range kept {
		if len(after[name]) != len(pcm) {
			t.Errorf("%s changed", name)
		}
	}

	beside(t, dir, "devices", "--server", strings.TrimSuffix(s.ota, "/xiaozhi/ota/"), "forget", o.DeviceID)
	if left := sounds(t, data); len(left) != 0 {
		t.Errorf("after forget: %d files", len(left))
	}
	d.Close()
	if err := s.end(); err != nil {
		t.Error(err)
	}

	fresh := t.TempDir()
	if err := os.Mkdir(filepath.Join(fresh, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	beside(t, fresh, "restore", archive)
	s = boot(fresh)
	d = s.dial(limit(t), t, o)
	says(t, d, clip)
	recordedSides(t, filepath.Join(fresh, "data"), 3)
	restored := sounds(t, filepath.Join(fresh, "data"))
	for name, pcm := range kept {
		if len(restored[name]) != len(pcm) {
			t.Errorf("%s was not restored whole: %d of %d samples", name, len(restored[name]), len(pcm))
		}
	}
}

// TestNothingIsRecorded: where nobody asked for it, a talk leaves no sound.
func TestNothingIsRecorded(t *testing.T) {
	t.Parallel()
	s := start(t, setup{})
	s.waitReady(limit(t), t)
	d := s.dial(limit(t), t, devicetest.Options{Mode: devicetest.Manual})
	says(t, d, clipNamed(t, speechtest.Prompts, "vm-msgsaved"))
	time.Sleep(time.Second)
	if _, err := os.Stat(filepath.Join(s.dir, "data", "recordings")); !errors.Is(err, fs.ErrNotExist) || strings.Contains(s.banner.String(), "REC") {
		t.Errorf("%v\n%s", err, s.banner.String())
	}
}
