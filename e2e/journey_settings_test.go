package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// changeable starts a server whose chains can be changed in the console, but for what its own file pins.
func changeable(t *testing.T, chat openaitest.Script) (*server, *openaitest.Server) {
	t.Helper()
	cloud := startCloud(t)
	cloud.Handle(openaitest.Chat, chat)
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	const pins = "server: {max_lateness: 0s}\nvoice: {slow_notice: 0s}\n"
	if err := os.WriteFile(filepath.Join(dir, "data", "config.yaml"), []byte(pins), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := launch(setup{unpinned: true, config: "auth: {pairing: open}\nllm: [cloud]\nasr: [cloud]\ntts: [cloud]\n" + cloudSection(cloud)}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop(t)
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.log.String())
		}
	})
	return s, cloud
}

// TestJourneySettings (J10): a bad value is refused at its field, a good one is checked, shown as a difference, applied and undone;
// what a file pins says so with its place; two people who change the same key see both; and a change after which every turn fails is
// taken back by itself.
func TestJourneySettings(t *testing.T) {
	journey(t, deskByNight, func(t *testing.T, l look) {
		s, _ := changeable(t, echo)
		ctx := limit(t)
		owner := s.own(ctx, t)
		d := s.speaker(t, devicetest.Options{DeviceID: newDeviceID(), NoMCP: true}, func(string) {})
		ask(ctx, t, d, "before it")
		const key = "voice.barge_in"
		value := func(v *visitor, want string) {
			t.Helper()
			v.Await(fmt.Sprintf(`document.getElementById("f-v-%s")?.value === %q`, key, want))
		}
		v := l.visit(t, s, owner, "settings")
		v.press("settings/group-voice")
		pinned := v.Text(`document.getElementById("k-voice.slow_notice").innerText`)
		if !strings.Contains(pinned, "config.yaml:2") || v.Number(`Number(document.getElementById("f-v-voice.slow_notice").disabled)`) != 1 {
			t.Errorf("of what is pinned it says %q", pinned)
		}
		v.fill("v-"+key, "a while")
		v.press("settings/check")
		v.Await(fmt.Sprintf(`document.querySelector("[id='k-%s'] .mistake")`, key))
		value(v, "a while")
		v.wide()
		other := l.visit(t, s, owner, "settings/voice")
		other.fill("v-"+key, "500ms")

		v.fill("v-"+key, "400ms")
		v.press("settings/check")
		v.reads("settings/plan-what")
		v.sees("400ms")
		v.wide()
		v.press("settings/apply")
		v.sees(v.words("settings/applied", "1"))
		v.open("settings/voice")
		value(v, "400ms")

		other.press("settings/check")
		other.sees(other.words("settings/conflict", "olga", 1))
		other.sees("500ms")
		other.sees("400ms")
		other.wide()

		v.press("settings/undo")
		v.sees(v.words("settings/undone", "1", "2"))
		v.open("settings/voice")
		value(v, "280ms")
		v.Await(fmt.Sprintf(`!document.querySelector("[id='k-%s']").innerText.includes(%q)`, key, v.words("settings/from-console")))

		v.open("settings/providers")
		v.fill("v-providers.cloud.base_url", "http://127.0.0.1:9/v1")
		v.fill("v-providers.cloud.api_key", "sk-another-0123456789")
		v.press("settings/check")
		v.reads("settings/fails")
		v.press("settings/apply")
		v.sees(v.words("settings/applied", "3"))
		// The page says so at once, though what is gone back to is watched on.
		undone := `document.querySelector("#settings-state .note.warn")`
		for n := 0; n < 10 && v.Number("Number("+undone+" !== null)") == 0; n++ {
			ask(ctx, t, d, fmt.Sprint("after it ", n))
		}
		v.Await(undone + `?.innerText.includes("127.0.0.1:9")`)
		if r := ask(ctx, t, d, "and again"); r.Text() != "I heard and again." {
			t.Errorf("after it was taken back: %q", r.Text())
		}
		v.done()
	})
}
