package config

import (
	"strings"
	"testing"
)

// TestSpeakers: what is wrong with the settings of people who are known by their voices is named, and off is the default.
func TestSpeakers(t *testing.T) {
	if c := Default(); c.Identifies() {
		t.Error("voices are told apart by default")
	}
	for text, want := range map[string]string{
		"voice: {identify: on}":                                                     "",
		"voice: {identify: perhaps}":                                                "voice.identify",
		"voice: {identify: on}\nstore: {driver: none}":                              "store.driver: none",
		"voice: {identify: on}\ntools: {confirm_by: {\"self.door.*\": []}}":         "nobody could say yes",
		"voice: {identify: on}\ntools: {confirm_by: {\"self.door.*\": [\" \"]}}":    "1 to 64",
		"voice: {identify: on}\nagents: {a: {people: [Anna]}, b: {people: [ANNA]}}": "already talks to the agent",
	} {
		_, err := loadText(t, text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestAgentFor: people talk to the agent that their device has for them, else to that of which they are, whatever the letters.
func TestAgentFor(t *testing.T) {
	c := Default()
	c.Agents["sea"], c.Agents["land"] = Persona{People: []string{"Anna", "Ben"}}, Persona{}
	c.Devices.ByID["d"] = Device{People: map[string]string{"ben": "land"}}
	c.Tools.ConfirmBy = map[string][]string{"self.door.*": {"Carl"}}
	for _, row := range []struct {
		device, person, agent string
		rights                bool
	}{
		{"d", "anna", "sea", true},
		{"d", " BEN ", "land", true},
		{"other", "Ben", "sea", true},
		{"d", "carl", "", true},
		{"d", "Dora", "", false},
		{"d", "", "", false},
	} {
		if got := c.AgentFor(row.device, row.person); got != row.agent {
			t.Errorf("%q at %s talks to %q, want %q", row.person, row.device, got, row.agent)
		}
		if got := c.GivesRights(row.person); got != row.rights {
			t.Errorf("the name %q gives rights: %v", row.person, got)
		}
	}
}
