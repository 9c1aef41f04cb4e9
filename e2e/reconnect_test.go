package e2e

import (
	"strings"
	"testing"

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
	s := start(t, setup{env: cloudEnv(cloud)})
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
