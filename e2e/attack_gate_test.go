package e2e

import (
	"net/http"
	"strings"
	"testing"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// TestAttackDeniedTool: a tool that the settings deny, in another case and across its
// slashes, is run for nobody, by none of its names and by none of the ways in.
func TestAttackDeniedTool(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	s := start(t, setup{config: "tools: {deny: [\"SELF.AUDIO_*\"]}\n"})
	board := devicetest.NewBoard()
	d := s.dial(ctx, t, devicetest.Options{DeviceID: "24:6f:28:ab:06:01", Tools: board.Tools()})
	s.waitForTools(ctx, t, d)
	before := board.Values().Volume
	owner := []string{"Authorization: Bearer " + s.adminToken(t), "Content-Type: application/json"}
	const arguments = `"arguments":{"volume":7}}`
	for _, name := range []string{"self.audio_speaker.set_volume", "self_audio_speaker_set_volume", "SELF.audio_speaker.set_volume"} {
		for path, body := range map[string]string{
			"/api/devices/24:6f:28:ab:06:01/tools/call": `{"name":"` + name + `",` + arguments,
			"/api/mcp/tools/call":                       `{"name":"device-246f28ab0601.` + name + `",` + arguments,
		} {
			if a := s.knock(ctx, t, http.MethodPost, path, body, owner...); a.status == http.StatusOK && !strings.Contains(a.body, `"isError":true`) {
				t.Errorf("%s %s: %d %s", path, name, a.status, a.body)
			}
		}
		for stream, called := range map[string]string{"/api/mcp/jsonrpc": "device-246f28ab0601." + name, "/api/mcp/jsonrpc/device-246f28ab0601": name} {
			a := s.knock(ctx, t, http.MethodPost, stream, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+called+`",`+arguments+`}`, owner...)
			if !strings.Contains(a.body, `"error"`) && !strings.Contains(a.body, `"isError":true`) {
				t.Errorf("%s %s: %s", stream, called, a.body)
			}
		}
	}
	ask(ctx, t, d, "set the volume to 7")
	if now := board.Values().Volume; now != before {
		t.Errorf("the volume was %d and is %d", before, now)
	}
	if log := s.log.String(); strings.Contains(log, `volume":7`) || strings.Contains(log, "volume:7") {
		t.Error("the arguments are in the log")
	}
}

// TestAttackToolByTool: a tool of this server that works another one is no way around
// the yes which that one needs, neither for the model nor from outside.
func TestAttackToolByTool(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, obeys)
	s := start(t, setup{env: append(cloudEnv(cloud), "XIAOZHI_LLM=openai"), config: "tools: {confirm: [\"Self.Audio_*.Set_*\"]}\n"})
	const id = "24:6f:28:ab:0c:01"
	board := devicetest.NewBoard()
	d := s.dial(ctx, t, devicetest.Options{DeviceID: id, Tools: board.Tools()})
	s.waitForTools(ctx, t, d)
	before := board.Values()
	owner := []string{"Authorization: Bearer " + s.adminToken(t), "Content-Type: application/json"}
	for tool, may := range map[string]bool{"adjust_volume": false, "adjust_brightness": true} {
		for path, body := range map[string]string{
			"/api/devices/" + id + "/tools/call": `{"name":"` + tool + `","arguments":{"change":"min"}}`,
			"/api/mcp/tools/call":                `{"name":"device.` + tool + `","arguments":{"device_id":"` + id + `","change":"min"}}`,
		} {
			if a := s.knock(ctx, t, http.MethodPost, path, body, owner...); a.refused() == may {
				t.Errorf("%s %s: %d %s", path, tool, a.status, a.body)
			}
		}
	}
	ask(ctx, t, d, `call adjust_volume {"change":"min"}`)
	if now := board.Values(); now.Volume != before.Volume || now.Brightness == before.Brightness {
		t.Errorf("it was %+v and is %+v", before, now)
	}
}
