package e2e

import (
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// TestToolsAfterReconnect: a device that connects again and says nothing of its
// tools yet has them all the same; another device has not.
func TestToolsAfterReconnect(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Text("All is well."))
	s := start(t, setup{speaks: true, env: cloudEnv(cloud)})
	o := devicetest.Options{Tools: devicetest.NewBoard().Tools()}
	d := s.dial(ctx, t, o)
	s.waitForTools(ctx, t, d)
	d.Close()
	s.awaitLog(ctx, t, "device left", "session_id="+d.SessionID()) // what it has is remembered by then
	for i, id := range []string{"", "24:6f:28:aa:10:99"} {
		o.Quirks.MuteMCP, o.DeviceID = true, id
		d = s.dial(ctx, t, o)
		ask(ctx, t, d, "how are you today my friend")
		body := string(cloud.Requests(openaitest.Chat)[i].Body)
		if had := id == ""; strings.Contains(body, `"self_sensor_study_dust"`) != had || strings.Contains(body, "self_reboot") {
			t.Errorf("device %q: its tools are offered %v, want %v", id, !had, had)
		}
		d.Close()
	}
}

// TestOfferedAfterKill: a device that comes back after kill -9 is offered with the tools that it had, in its first turn,
// before it has said what they are, and so is one of the IoT era.
func TestOfferedAfterKill(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Reply(openaitest.Chat, openaitest.Text("One."), openaitest.Text("Two."), openaitest.Text("Three."), openaitest.Text("Four."))
	dir := t.TempDir()
	boot := func() *server {
		s, err := launch(setup{env: cloudEnv(cloud)}, dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = s.end() // one was killed
			if t.Failed() {
				t.Logf("the server's log:\n%s", s.log.String())
			}
		})
		s.waitReady(ctx, t)
		return s
	}
	speaker, _ := devicetest.Speaker()
	kitchen := devicetest.Options{DeviceID: newDeviceID(), Tools: devicetest.NewBoard().Tools()}
	hall := devicetest.Options{DeviceID: newDeviceID(), Profile: devicetest.OldIoT162, Things: []devicetest.Thing{speaker}}
	s := boot()
	for _, o := range []devicetest.Options{kitchen, hall} {
		d := s.dial(ctx, t, o)
		if o.Things == nil {
			s.waitForTools(ctx, t, d)
		}
		ask(ctx, t, d, "please tell me a story")
		time.Sleep(time.Second) // what is handed over is written within a quarter of that
		d.Close()
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.over

	s = boot()
	kitchen.Quirks.MuteMCP, hall.Things = true, nil
	for _, o := range []devicetest.Options{kitchen, hall} {
		d := s.dial(ctx, t, o)
		ask(ctx, t, d, "please tell me another")
		d.Close()
	}
	requests := cloud.Requests(openaitest.Chat)
	if len(requests) != 4 {
		t.Fatalf("%d model calls", len(requests))
	}
	for i, want := range []string{"self_sensor_study_dust", "self_speaker_get_volume", "self_sensor_study_dust", "self_speaker_get_volume"} {
		if body := string(requests[i].Body); !strings.Contains(body, want) {
			t.Errorf("request %d does not offer %s: %s", i, want, body)
		}
	}
}
