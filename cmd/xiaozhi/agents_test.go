package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/devicetest"
)

// TestAgentsByHand makes, changes, deletes and restores agents with the words that a person types.
func TestAgentsByHand(t *testing.T) {
	t.Setenv("XIAOZHI_MCP_TOKEN", "")
	base, _ := serving(t, "asr: [openai]\nagents: {fixed: {voice: slt}}\n")
	flash := &devicetest.Flash{}
	if _, err := devicetest.Boot(t.Context(), base+"/xiaozhi/ota/", devicetest.Options{DeviceID: "24:6f:28:aa:10:02", Flash: flash}, nil); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	alone := file("a.yaml", "voice: kal\nwake_words: [ahoy]\n")
	below := file("b.yaml", "agents:\n  whatever:\n    voice: awb\n")
	broken := file("c.yaml", "voice: [\n")
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 0, "  config.yaml:2\n"},
		{[]string{"set", "pirate", "--note", "a try", "prompt=storyteller", "voice=slt", "llm=rules", "tools.deny=play_music, exit"}, 0, "\"deny\": [\n      \"play_music\",\n      \"exit\"\n    ]"},
		{[]string{"set", "pirate", "voice=rms", "llm="}, 0, `"voice": "rms"`},
		{[]string{"show", "pirate"}, 0, `"prompt": "storyteller"`},
		{[]string{"set", "pirate", "--file", alone}, 0, `"ahoy"`},
		{[]string{"set", "pirate", "--file", below}, 0, `"voice": "awb"`},
		{[]string{"revisions", "pirate"}, 0, `{"llm":["rules"],"prompt":"storyteller","tools":{"deny":["play_music","exit"]},"voice":"slt"}  a try`},
		{[]string{"list"}, 0, "  revision 4 / "},
		{[]string{"set", "Käpt'n 1", "voice=slt"}, 0, "Käpt'n 1"},
		{[]string{"--json", "show", "pirate"}, 0, `"rev":4`},
		{[]string{"delete", "pirate"}, 0, "done: pirate"},
		{[]string{"show", "pirate"}, 1, "there is no agent pirate"},
		{[]string{"restore", "pirate", "2"}, 0, `"voice": "rms"`},
		{[]string{"restore", "pirate", "77"}, 1, "pirate has no revision 77, but 1 to 5"},
		{[]string{"set", "pirate", "voise=slt"}, 1, "unknown key agents.pirate.voise (did you mean agents.pirate.voice?)"},
		{[]string{"set", "fixed", "voice=rms"}, 1, "the agent fixed is set at "},
		{[]string{"set", "pirate", "--file", broken}, 1, "c.yaml"},
		{[]string{"set", "pirate", "voice"}, 2, `"voice" is not KEY=VALUE`},
		{[]string{"set", "pirate"}, 2, "set needs NAME KEY=VALUE / NAME --file FILE"},
		{[]string{"set", "pirate", "--file", alone, "voice=slt"}, 2, "set needs"},
		{[]string{"restore", "pirate", "first"}, 2, "restore needs NAME REV"},
		{[]string{"show"}, 2, "show needs NAME"},
		{[]string{"promote", "x"}, 2, "promote"},
	} {
		var out, why bytes.Buffer
		code := agents(t.Context(), append([]string{"--server", base}, tc.args...), &out, &why)
		if code != tc.code || !strings.Contains(out.String()+why.String(), tc.want) || strings.Contains(why.String(), "misused") {
			t.Errorf("%q: %d %s%s", tc.args, code, &out, &why)
		}
	}
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"agent", "24-6F-28-AA-10-02", "pirate"}, 0, "done: 24:6f:28:aa:10:02 pirate"},
		{nil, 0, "agent pirate"},
		{[]string{"agent", "246f28aa1002", "pirat"}, 1, "there is no agent pirat (did you mean pirate?)"},
		{[]string{"agent", "246f28aa1003", "pirate"}, 1, "no device is known as 24:6f:28:aa:10:03"},
		{[]string{"agent", "246f28aa1002"}, 0, "done: 24:6f:28:aa:10:02"},
		{[]string{"agent"}, 2, "agent needs ID [NAME]"},
	} {
		code, out, why := runDevices(t, base, tc.args...)
		if code != tc.code || !strings.Contains(out+why, tc.want) {
			t.Errorf("%q: %d %s%s", tc.args, code, out, why)
		}
	}
}

// Without a token nothing is shown and nothing changes.
func TestAgentsForTheOwner(t *testing.T) {
	base, _ := serving(t, "asr: [openai]\n")
	t.Setenv("XIAOZHI_MCP_TOKEN", "wrong")
	var out, why bytes.Buffer
	if code := agents(t.Context(), []string{"--server", base, "set", "pirate", "voice=slt"}, &out, &why); code != 1 || out.Len() > 0 || !strings.Contains(why.String(), "token") {
		t.Errorf("%d %s %s", code, &out, &why)
	}
}
