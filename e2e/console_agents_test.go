package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/browsertest"
	"xiaozhi/internal/openaitest"
)

// TestAgentJourney: somebody changes an agent while it answers: this answer is the old one's to its end, the next one the new
// one's. The kept turn is tried with another model, beside what it was; voices are compared by keys, and one is picked.
func TestAgentJourney(t *testing.T) {
	t.Parallel()
	b := browsertest.Need(t, browser)
	cloud, err := openaitest.New()
	if err != nil {
		t.Fatal(err)
	}
	defer cloud.Close()
	cloud.Handle(openaitest.Chat, func(r *openaitest.Request) openaitest.Reply {
		who := "the old one"
		if strings.Contains(string(r.Body), "You are the new one.") {
			who = "the new one"
		}
		if r.JSON()["model"] == "second" {
			return openaitest.Text("I am the second model.")
		}
		return openaitest.TextEvery(300*time.Millisecond, "This is ", who+". ", "It goes on. ", "And on. ", "And this is still ", who+".")
	})
	section := func(model string) string {
		return fmt.Sprintf("{type: openai, api_key: k, model: %s, base_url: '%s'}", model, cloud.URL())
	}
	s := start(t, setup{env: []string{"XIAOZHI_LLM=first"}, config: "llm: [first]\ntts: [first]\nasr: [first]\nconsole: {currency: EUR}\nproviders:\n  first: " + section("first") + "\n  second: " + section("second") + "\n"})
	cookie := s.own(limit(t), t)
	s.waitReady(limit(t), t)
	talk, other := b.Tab(t, talkTime), b.Tab(t, talkTime)
	for _, tab := range []*browsertest.Tab{talk, other} {
		show(tab, cookie, loopback)
	}
	said := func(words string) string {
		return fmt.Sprintf(`document.querySelector('.talk-said')?.textContent.includes(%q)`, words)
	}

	// The agent is changed during a turn.
	other.Go(s.base() + "/console/agents/default?lang=en")
	other.Click(`#from-own`)
	other.Type(`#f-long-text`, "You are the new one. {{asistant_name}}")
	talk.Go(s.base() + "/console/talk?codec=pcm&lang=en")
	talk.Type(`[data-talk="text"]`, "tell me of yourself\r")
	talk.Await(said("This is the old one."))
	other.Click(`.agent-save [value="save"]`)
	other.Await(`document.querySelector("#e-long-text")?.textContent.includes("Line 1")`) // and what was typed is still there
	other.Text(`document.querySelector("#f-long-text").value = document.querySelector("#f-long-text").value.replace("asis", "assis"), ""`)
	other.Click(`.agent-save [value="save"]`)
	other.Await(`document.querySelector(".note.ok")?.textContent.includes("Saved")`)
	talk.Await(said("And this is still the old one."))
	talk.Await(stateIs("idle"))
	talk.Type(`[data-talk="text"]`, "and tell me again\r")
	talk.Await(said("And this is still the new one."))
	talk.Await(stateIs("idle"))

	// A turn again, with another model: what comes of it appears by itself.
	other.Go(s.base() + "/console/conversations?lang=en")
	other.Await(`document.querySelector(".talk-day a")`)
	other.Click(`.talk-day a`)
	other.Await(`document.querySelector('a[href^="/console/trials/turns/"]')`)
	other.Click(`a[href^="/console/trials/turns/"]`)
	other.Await(`document.querySelector("#f-llm")`)
	other.Text(`document.querySelector("#f-llm").value = "second", ""`)
	other.Click(`form[action^="/console/trials/turns/"] button`)
	other.Await(`document.querySelector(".trial-table")?.textContent.includes("I am the second model.") && document.querySelector(".trial-table").textContent.includes("still the old one")`)
	other.Await(`document.querySelector("#run-state .state.ok") && document.querySelector('.trial-table audio[src^="/api/v1/sounds/"]')`)

	// Voices side by side.
	other.Go(s.base() + "/console/trials/voices?lang=en&agent=default")
	other.Click(`form[action="/console/trials/voices"] button`)
	other.Await(`document.querySelector("#run-state .state.ok") && document.querySelectorAll("[data-nth] audio").length >= 2`)
	other.Text(`document.activeElement.blur(), window.__played = [], document.addEventListener("play", (e) => __played.push(e.target.closest("[data-nth]").dataset.nth), true), ""`)
	other.HoldKey("2", "Digit2")()
	other.Await(`__played.join() === "2"`)
	other.HoldKey("1", "Digit1")()
	other.Await(`__played.join() === "2,1" && document.querySelector('[data-nth="2"] audio').paused`)
	other.Await(`document.activeElement.closest("[data-nth]")?.dataset.nth === "1"`)
	other.Type(`[data-nth="1"] [data-pick]`, "\r")
	other.Await(`document.querySelector(".note.ok")?.textContent.includes("default now speaks as")`)
	other.Clean()
	talk.Clean()
}
