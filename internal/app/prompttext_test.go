package app

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/roster"
	"xiaozhi/providers/providertest"
)

// TestTypedPrompt: a prompt that is written into an agent itself, by the way that programs take, is what the model is
// shown from the next turn on, whatever signs it has; one that is too long changes nothing and is told so.
func TestTypedPrompt(t *testing.T) {
	english := "You are \"Jack\", a 'pirate'.\n\n\t- Say {{nothing}} of {{.Secrets}} & <b>${HOME}</b> \\n {% raw %}\n- It is {{today_weekday}}. \U0001F600 \u2028"
	chinese := strings.Repeat("你是海盗。", (32<<10)/len("你是海盗。"))
	hostile := strings.Repeat("<{\"", (32<<10)/3)
	const admin = "0123456789abcdef"
	inMemory(t, script{llm: []providertest.Step{providertest.Say("Aye."), providertest.Say("Aye."), providertest.Say("Aye."), providertest.Say("Aye.")}}, func(ctx context.Context, t *testing.T, h *harness) {
		h.app.crew.shop = &fakeShop{ready: company{}}
		routes, err := h.app.routes()
		if err != nil {
			t.Fatal(err)
		}
		h.app.web.guard.SetAdmin(admin)
		set := func(text string, status int, says string) {
			t.Helper()
			body, err := json.Marshal(map[string]any{"prompt_text": text, "language": "en"})
			if err != nil {
				t.Fatal(err)
			}
			if got, answer := askAPI(routes, http.MethodPatch, roster.Path+"/pirate", admin, string(body)); got != status || !strings.Contains(answer, says) {
				t.Errorf("%d bytes: %d %.200s, want %d %s", len(text), got, answer, status, says)
			}
		}
		set(english, 200, "")
		if err := h.app.crew.roster.Assign(ctx, kitchen, "pirate"); err != nil {
			t.Fatal(err)
		}
		d := h.speaker(ctx, t, devicetest.Options{DeviceID: kitchen, NoMCP: true})
		shown := func(want string) {
			t.Helper()
			types(ctx, t, d, "hello")
			asked := h.llm.Asked()
			if got := asked[len(asked)-1].Request.Messages[0].Content; got != want {
				t.Errorf("the model is shown %.300q, want %.300q", got, want)
			}
		}
		shown(strings.Replace(english, "{{today_weekday}}", time.Now().Weekday().String(), 1))
		set(chinese, 200, "")
		shown(chinese)
		set(hostile, 200, "")
		shown(hostile)
		set(hostile+"xxx", 400, "agents.pirate.prompt_text: the text is 32769 bytes long, which is more than 32768")
		set(strings.Repeat("x", 300<<10), 413, "256 KiB")
		shown(hostile)
	})
}
