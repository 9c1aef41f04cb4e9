package e2e

import (
	"fmt"
	"strings"
	"testing"

	"xiaozhi/internal/devicetest"
)

// TestJourneyPairing (J3): a speaker asks, and its code is typed on the page Devices, which has shown it by itself; it talks, and the
// page shows what is said. A code that nobody waits with is explained at its field, with what was typed. A speaker that was erased
// has to be accepted again, and talks as the same device.
func TestJourneyPairing(t *testing.T) {
	journey(t, phoneByNight, func(t *testing.T, l look) {
		s, owner := onJourney(t)
		id := deviceOfLook(3, l)
		v := l.visit(t, s, owner, "devices")
		v.Await(`document.querySelector("[data-live-switch]").textContent === document.body.dataset.live`)
		d := s.speaker(t, devicetest.Options{DeviceID: id}, func(code string) {
			v.Await(fmt.Sprintf(`[...document.querySelectorAll("#devices .tag.num")].some((e) => e.textContent === %q)`, code))
			wrong := fmt.Sprint(9-code[0]%10) + code[1:]
			v.fill("code", wrong)
			v.press("devices/pair-now")
			v.reads("devices/other-server")
			v.reads("checkup/callers")
			v.sees(id + " bread-compact-wifi")
			if said := v.Text(`document.querySelector(".field.wrong .mistake").textContent`); !strings.Contains(said, "OTA") {
				t.Errorf("of a code that nobody waits with it says %q", said)
			}
			if kept := v.Text(`document.getElementById("f-code").value`); kept != wrong {
				t.Errorf("of what was typed %q is left", kept)
			}
			if at := v.Text(`document.activeElement.matches("[data-errors]") ? "the errors" : document.activeElement.tagName`); at != "the errors" {
				t.Errorf("the focus is at %s", at)
			}
			v.wide()
			v.fill("code", code[:3]+" "+code[3:])
			v.press("devices/pair-now")
			v.reads("devices/paired")
		})
		v.reads("devices/state-idle")
		ask(limit(t), t, d, "do you know me")
		v.sees("I heard do you know me.")
		v.fill("name", "speaker of "+l.lang)
		v.press("devices/rename")
		v.reads("devices/renamed")
		d.Close()
		v.reads("devices/state-asleep")

		v.open("devices")
		again := s.speaker(t, devicetest.Options{DeviceID: id, ClientID: "erased"}, func(code string) {
			v.pressWhat(fmt.Sprintf(`[...document.querySelectorAll("#devices li")].find((e) => e.innerText.includes(%q) && e.innerText.includes(%q))?.querySelector("button[value=accept]")`, id, code))
			v.reads("devices/paired")
		})
		ask(limit(t), t, again, "and now")
		v.open("devices/" + id)
		v.sees("speaker of " + l.lang)
		v.sees("I heard and now.")
		v.done()
	})
}

// deviceOfLook is the id of the device of a journey with a look.
func deviceOfLook(journey int, l look) string {
	n := 1
	if l.lang == "zh" {
		n = 2
	}
	return fmt.Sprintf("24:6f:28:15:%02x:%02x", journey, n)
}

// TestJourneySaying (J11): what a speaker is told from its page has a fate that the page shows by itself: a speaker that talks is
// told at once, one that is idle hears all of it, and one that sleeps hears it at its next contact.
func TestJourneySaying(t *testing.T) {
	journey(t, phoneByDay, func(t *testing.T, l look) {
		s, owner := onJourney(t)
		ctx := limit(t)
		o := devicetest.Options{DeviceID: deviceOfLook(11, l), Flash: &devicetest.Flash{}, ClientID: "own"}
		d := s.speaker(t, o, s.accepted(t))
		v := l.visit(t, s, owner, "devices/"+o.DeviceID)
		fate := func(words, id string) {
			t.Helper()
			v.Await(fmt.Sprintf(`[...document.querySelectorAll("#letters li")].some((e) => e.innerText.includes(%q) && e.querySelector(".state").textContent === %q)`, words, v.words(id)))
		}
		v.fill("words", "Dinner is ready.")
		v.press("devices/say-pause")
		v.reads("devices/said")
		if r := reply(ctx, t, d); !strings.Contains(r.Text(), "Dinner is ready.") || r.Frames == 0 {
			t.Errorf("idle, it says %q in %d frames", r.Text(), r.Frames)
		}
		fate("Dinner is ready.", "devices/fate-heard")

		if err := d.Detect("a story please"); err != nil {
			t.Fatal(err)
		}
		v.reads("devices/state-speaking")
		v.fill("words", "The bath runs over.")
		v.press("devices/say-now")
		if r := reply(ctx, t, d); strings.Contains(r.Text(), "number 39") {
			t.Errorf("the story was not cut: %q", r.Text())
		}
		if r := reply(ctx, t, d); !strings.Contains(r.Text(), "The bath runs over.") {
			t.Errorf("talking, it says %q", r.Text())
		}
		fate("The bath runs over.", "devices/fate-heard")

		d.Close()
		v.reads("devices/state-asleep")
		v.fill("words", "Good morning.")
		v.press("devices/say-pause")
		v.reads("devices/said-later")
		fate("Good morning.", "devices/fate-queued")
		v.fill("words", "This is withdrawn.")
		v.press("devices/say-pause")
		fate("This is withdrawn.", "devices/fate-queued")
		v.pressWhat(`[...document.querySelectorAll("#letters li")].find((e) => e.innerText.includes("This is withdrawn."))?.querySelector("button[value=withdraw]")`)
		v.reads("devices/withdrawn")
		again := s.speaker(t, o, func(string) { t.Error("it has to be accepted again") })
		if r := reply(ctx, t, again); !strings.Contains(r.Text(), "Good morning.") {
			t.Errorf("awake, it says %q", r.Text())
		}
		fate("Good morning.", "devices/fate-heard")
		v.lacks(v.words("devices/fate-queued"))

		v.fill("words", "Are you coming?")
		v.press("devices/ask")
		if r := reply(ctx, t, again); !strings.Contains(r.Text(), "Are you coming?") {
			t.Errorf("it asks %q", r.Text())
		}
		if err := again.Detect("in ten minutes"); err != nil {
			t.Fatal(err)
		}
		v.reads("devices/answered")
		v.sees("“in ten minutes”")
		v.done()
	})
}
