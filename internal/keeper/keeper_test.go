package keeper

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/internal/config"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
	"xiaozhi/store"
)

// FuzzBody: whatever a message is, it comes back.
func FuzzBody(f *testing.F) {
	f.Add("a", "", "", "")
	f.Add(`{"text":"x"}`, "c", "n", "{}")
	f.Add("", "", "n", "")
	f.Fuzz(func(t *testing.T, content, id, name, arguments string) {
		m := providers.Message{Role: providers.RoleAssistant, Content: content, ToolCallID: id}
		if name != "" {
			m.ToolCalls = []providers.ToolCall{{ID: id, Name: name, Arguments: arguments}}
			m.ToolCalls[0].Echo = providers.NewEcho("a model", `{"signature":"x"}`)
		}
		if id == "" {
			m.Echo = providers.NewEcho("a model", `"reasoning"`)
		}
		for _, s := range []*string{&m.Content, &m.ToolCallID} {
			*s = strings.ToValidUTF8(*s, "\uFFFD")
		}
		for i := range m.ToolCalls {
			c := &m.ToolCalls[i]
			c.ID, c.Name, c.Arguments = strings.ToValidUTF8(c.ID, "\uFFFD"), strings.ToValidUTF8(c.Name, "\uFFFD"), strings.ToValidUTF8(c.Arguments, "\uFFFD")
		}
		got, err := ReadMessage(store.Message{Role: string(m.Role), Body: messageBody(&m)})
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v became %+v, %v", m, got, err)
		}
		_, _ = ReadMessage(store.Message{Body: content}) // whatever stands there
	})
}

// BenchmarkHandOver is the time that the conversation spends on a turn for the store: of words alone, and with calls of tools.
func BenchmarkHandOver(b *testing.B) {
	now := time.Now()
	words := []providers.Message{{Role: providers.RoleUser, Content: "what time is it"}, {Role: providers.RoleAssistant, Content: "It is nine o'clock."}}
	calls := slices.Clone(words[:1])
	for _, id := range []string{"call-1", "call-2"} {
		calls = append(calls,
			providers.Message{Role: providers.RoleAssistant, ToolCalls: []providers.ToolCall{{ID: id, Name: "self_audio_speaker_set_volume", Arguments: `{"volume":40}`}}},
			providers.Message{Role: providers.RoleTool, ToolCallID: id, Content: "done"})
	}
	for _, test := range []struct {
		name     string
		messages []providers.Message
	}{{"words", words}, {"two-calls", append(calls, words[1])}} {
		b.Run(test.name, func(b *testing.B) {
			s, err := store.Open(b.Context(), store.Options{Path: filepath.Join(b.TempDir(), "x.db")})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			if err := s.Devices.Commit(b.Context(), store.DeviceChange{Save: []store.Identity{{ID: "m", Address: "m", State: store.DevicePaired, FirstAt: now}}}); err != nil {
				b.Fatal(err)
			}
			k := New(Options{Price: func(string) (config.Price, bool) { return config.Price{}, false }, Store: s, Device: "m", Valid: func(keep func()) { keep() }})
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if n%200 == 199 { // before a whole batch waits: writing is measured elsewhere
					b.StopTimer()
					if err := s.Log.Flush(b.Context()); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
				for _, m := range test.messages {
					for _, c := range m.ToolCalls {
						k.calls[c.ID] = router.Record{CallID: c.ID, Tool: "self.audio_speaker.set_volume", Source: "device", Started: now}
					}
				}
				k.Turn(&agent.Turn{
					Talk: agent.Talk{ID: "c", Began: now, Turns: 1}, At: now, Kind: agent.TurnSaid, Heard: "what time is it", Said: "It is nine o'clock.", Messages: test.messages,
				})
			}
		})
	}
}
