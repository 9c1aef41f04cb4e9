package catalog

import (
	"testing"

	"xiaozhi/providers/service"
)

// TestSchemes holds what base_url may begin with against what the kinds make of it: each role can be made.
func TestSchemes(t *testing.T) {
	for _, k := range Kinds() {
		if k.Here != nil {
			continue
		}
		for _, scheme := range k.Begins() {
			s := service.Section{
				Name: "a", Key: "k", ID: "i", Secret: "s", BaseURL: scheme + "://h.example:1/v1", Models: map[service.Role]string{service.LLM: "m", service.Embed: "m"},
				Voices: map[string]string{"": "a|b|zh"}, Settings: map[string]any{"chat_id": "x"},
			}
			for _, r := range k.Roles() {
				if err := makes(k, r, s); err != nil {
					t.Errorf("%s may begin with %s, but %s is not made: %v", k.Type, scheme, r, err)
				}
			}
		}
	}
}

// makes makes what a kind does in a role.
func makes(k service.Kind, r service.Role, s service.Section) (err error) {
	switch r {
	case service.ASR:
		_, err = k.ASR(s)
	case service.LLM:
		_, err = k.LLM(s)
	case service.TTS:
		_, err = k.TTS(s)
	case service.Embed:
		_, err = k.Embed(s)
	case service.Voiceprint:
		_, err = k.Voiceprint(s)
	default:
		_, err = k.Realtime(s)
	}
	return err
}
