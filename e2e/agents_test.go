package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// TestAgentsWhileDevicesTalk: an agent that is changed by the command counts from the next turn of a device that stays
// connected: its prompt, its voice and its model. A restart, and one by kill -9, keeps it. What is wrong changes nothing.
func TestAgentsWhileDevicesTalk(t *testing.T) {
	t.Parallel()
	ctx := limit(t)
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, func(r *openaitest.Request) openaitest.Reply {
		prompt, first := "no prompt", r.JSON()["messages"].([]any)[0]
		for name, sign := range map[string]string{"storyteller": "story", "teacher": "language teacher"} {
			if strings.Contains(fmt.Sprint(first), sign) {
				prompt = name
			}
		}
		return openaitest.Text(fmt.Sprintf("I am model %v by the %s.", r.JSON()["model"], prompt))
	})
	config := fmt.Sprintf(`
llm: [alpha, rules]
tts: [alpha]
providers:
  alpha: {type: openai, base_url: %q, api_key: k, model: Alpha}
  beta: {type: openai, base_url: %q, api_key: k, model: Beta}
`, cloud.URL(), cloud.URL())
	dir := t.TempDir()
	boot := func(c string) *server {
		s, err := launch(setup{config: c, env: []string{"XIAOZHI_LLM=alpha,rules"}}, dir)
		if err != nil {
			t.Fatal(err)
		}
		var once sync.Once
		t.Cleanup(func() {
			once.Do(func() { _ = s.end() })
			if t.Failed() {
				t.Logf("the server's log:\n%s", s.log.String())
			}
		})
		return s
	}
	command := func(s *server, args ...string) (string, error) {
		t.Helper()
		base := strings.TrimSuffix(s.ota, "/xiaozhi/ota/")
		all := append([]string{args[0], "--server", base, "--data", filepath.Join(s.dir, "data")}, args[1:]...)
		out, err := exec.CommandContext(ctx, binary, all...).CombinedOutput()
		return string(out), err
	}
	must := func(s *server, args ...string) {
		t.Helper()
		if out, err := command(s, args...); err != nil {
			t.Fatalf("%q: %v: %s", args, err, out)
		}
	}
	hears := func(d *devicetest.Device, words, voice string) {
		t.Helper()
		before := len(cloud.Requests(openaitest.Speak))
		if r := ask(ctx, t, d, "who are you"); r.Text() != words {
			t.Errorf("the device hears %q, want %q", r.Text(), words)
		}
		voices := map[string]bool{}
		for _, r := range cloud.Requests(openaitest.Speak)[before:] {
			if strings.Contains(fmt.Sprint(r.JSON()["input"]), "I am model") {
				voices[fmt.Sprint(r.JSON()["voice"])] = true
			}
		}
		if voice != "" && (len(voices) != 1 || !voices[voice]) {
			t.Errorf("it is spoken by %v, want %s", voices, voice)
		}
	}
	o := devicetest.Options{DeviceID: newDeviceID(), ClientID: "5b1f4a3e-0000-4a66-9a5e-0c2b8a6f1d77"}
	s := boot(config)
	d := s.dial(ctx, t, o)
	hears(d, "I am model Alpha by the no prompt.", "")
	must(s, "agents", "set", "pirate", "prompt=storyteller", "voice=nova", "language=en")
	must(s, "devices", "agent", o.DeviceID, "pirate")
	hears(d, "I am model Alpha by the storyteller.", "nova")
	must(s, "agents", "set", "pirate", "prompt=teacher", "voice=onyx", "llm=beta,rules")
	hears(d, "I am model Beta by the teacher.", "onyx")

	for want, args := range map[string][]string{
		"unknown key agents.pirate.voise (did you mean agents.pirate.voice?)":            {"agents", "set", "pirate", "voise=x"},
		"agents.pirate.llm: there is no providers.betta (did you mean beta?)":            {"agents", "set", "pirate", "llm=betta"},
		"there is no agent pirrate (did you mean pirate?)":                               {"devices", "agent", o.DeviceID, "pirrate"},
		"agents.pirate.tools.deny: there is no tool play_musik (did you mean play_music": {"agents", "set", "pirate", "tools.deny=play_musik"},
		"agents.pirate.llm: deepseek cannot be used: ":                                   {"agents", "set", "pirate", "llm=deepseek"},
	} {
		out, err := command(s, args...)
		if err == nil || !strings.Contains(out, want) || strings.Count(strings.TrimSpace(out), "\n") != 0 {
			t.Errorf("%q: %v %s", args, err, out)
		}
	}
	hears(d, "I am model Beta by the teacher.", "onyx")

	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.over
	d.Close()
	s = boot(config)
	d = s.dial(ctx, t, o)
	hears(d, "I am model Beta by the teacher.", "onyx")
	must(s, "agents", "restore", "pirate", "1")
	hears(d, "I am model Alpha by the storyteller.", "nova")
	if out, err := command(s, "agents", "revisions", "pirate"); err != nil || strings.Count(out, "admin-token") != 3 {
		t.Errorf("%v %s", err, out)
	}
	must(s, "agents", "delete", "pirate")
	hears(d, "I am model Alpha by the no prompt.", "")
	if log := s.log.String(); !strings.Contains(log, "the agent of a device is gone") {
		t.Error("the log does not say that the device has another agent")
	}
	must(s, "agents", "restore", "pirate", "2")
	d.Close()
	s.stop(t)

	// Without the section of its model the agent is left out, and the device is served by that of all.
	s = boot(strings.Replace(config, "  beta:", "  gamma:", 1))
	d = s.dial(ctx, t, o)
	hears(d, "I am model Alpha by the no prompt.", "")
	if out, err := command(s, "agents", "list"); err != nil || !strings.Contains(out, "there is no providers.beta") {
		t.Errorf("%v %s", err, out)
	}
}
