package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/openaitest"
)

const goodKey = "sk-the-right-key-0123456789"

// locks has a cloud refuse all keys but one; its model calls the tool that it is offered.
func locks(cloud *openaitest.Server) {
	for _, role := range []openaitest.Role{openaitest.Chat, openaitest.Transcribe, openaitest.Speak} {
		cloud.Handle(role, func(r *openaitest.Request) openaitest.Reply {
			switch {
			case r.Header.Get("Authorization") != "Bearer "+goodKey:
				return openaitest.Failure(http.StatusUnauthorized, "Incorrect API key provided.")
			case role == openaitest.Transcribe:
				return openaitest.JSON(200, `{"text":"The weather is nice today, let us go for a walk."}`)
			case role == openaitest.Speak:
				return openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, time.Second), 4096)
			case bytes.Contains(r.Body, []byte(`"role":"tool"`)):
				return openaitest.Text("It is 23 degrees.")
			}
			return openaitest.Calls(openaitest.Call{ID: "c", Name: "get_temperature", Arguments: `{"city":"Beijing"}`})
		})
	}
}

// TestJourneyServices (J7): a voice with a wrong key rests, and its page says so; a wrong key is told in words, the right one speaks,
// hears and answers before it is saved. What will change is shown, and counts without a restart: the voice works, live. Its place is
// changed by the keyboard, and taken back.
func TestJourneyServices(t *testing.T) {
	journey(t, deskByDay, func(t *testing.T, l look) {
		cloud := startCloud(t)
		locks(cloud)
		s := start(t, setup{speaks: true, config: "tts: [mine, local]\nproviders: {mine: {type: openai, base_url: '" + cloud.URL() + "', api_key: sk-stale-stale-stale-stale}}\n"})
		v := l.visit(t, s, s.own(limit(t), t), "services")
		v.reads("services/is-resting")
		v.sees(v.sentence("services/unauthorized"))
		v.wide()
		v.open("services/of/mine")
		v.fill("set.api_key", "sk-wrong-wrong-wrong-wrong")
		v.press("services/test")
		v.sees(v.sentence("services/unauthorized"))
		v.fill("set.api_key", goodKey)
		v.press("services/test")
		v.Await(`document.querySelector("#report audio")?.duration > 0.9`)
		v.reads("services/said")
		v.lacks(goodKey)
		v.wide()
		v.press("services/save") // with the key that was typed for the test
		v.Await(`document.querySelector("#plan")`)
		v.sees("providers.mine.api_key")
		v.wide()
		v.press("services/apply")
		v.reads("services/applied")
		v.Await(fmt.Sprintf(`document.querySelector("#chains [aria-labelledby=h-tts] li").innerText.includes(%q)`, v.words("services/is-ready")))
		order := func(want ...string) {
			t.Helper()
			v.Await(fmt.Sprintf(`[...document.querySelectorAll("#chains [aria-labelledby=h-tts] li a")].map((a) => a.innerText).join() === %q`, strings.Join(want, ",")))
		}
		moved := func(revision int, want ...string) { // the answer is there too, not only what others are shown
			t.Helper()
			v.Await(fmt.Sprintf(`location.search === "?undo=%d"`, revision))
			order(want...)
		}
		order("mine", "local")
		v.Focus(`#down-tts-mine`)
		v.HoldKey(" ", "Space")()
		moved(2, "local", "mine")
		v.Await(`document.activeElement.id === "up-tts-mine"`) // there is no way down any more
		v.HoldKey(" ", "Space")()
		moved(3, "mine", "local")
		v.press("services/undo")
		order("local", "mine")
		v.Await(`location.search !== "?undo=3"`)
		v.Text(`(() => {
			const rows = [...document.querySelectorAll("#chains [aria-labelledby=h-tts] li")], with_ = { bubbles: true, cancelable: true, dataTransfer: new DataTransfer() };
			rows[1].querySelector(".grip").dispatchEvent(new DragEvent("dragstart", with_));
			rows[0].dispatchEvent(new DragEvent("dragover", with_));
			rows[0].dispatchEvent(new DragEvent("drop", with_));
			return "";
		})()`)
		order("mine", "local")
		v.done()
	})
}

// TestJourneyServiceAdded (J1, J16): a new server is set up with a service of one's own by what the pages say, without script too.
func TestJourneyServiceAdded(t *testing.T) {
	journey(t, phoneByDay, func(t *testing.T, l look) {
		cloud := startCloud(t)
		locks(cloud)
		s := start(t, setup{speaks: true, config: "asr: [vosk]\n"}) // nobody has to hear
		v := l.visit(t, s, s.own(limit(t), t), "setup/services")
		if l.lang == "en" {
			v.withoutScript()
		}
		v.press("services/own-title")
		v.fill("set.base_url", cloud.URL())
		v.fill("set.api_key", goodKey)
		v.fill("set.model", "fake-1")
		v.sees("XIAOZHI_LLM") // it keeps it from thinking here
		v.press("services/role-tts")
		v.press("services/test")
		v.reads("services/worked")
		v.reads("services/said")
		v.wide()
		v.press("services/use")
		v.reads("setup/added", "OpenAI")
		v.wide()
		v.open("services")
		v.Await(`document.querySelector("[aria-labelledby=h-tts] li a").innerText === "openai"`)
		v.done()
	})
}

// sentence is the text of an id as a sentence.
func (v *visitor) sentence(id string) string {
	v.t.Helper()
	words := []rune(v.words(id))
	return strings.ToUpper(string(words[:1])) + string(words[1:])
}
