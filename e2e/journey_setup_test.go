package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// begins opens the link of the start log, and becomes the owner.
func (l look) begins(t *testing.T, s *server) *visitor {
	t.Helper()
	code := s.setupCode(limit(t), t)
	v := l.visit(t, s, "", "login") // there is no account yet
	v.reads("setup/owner")
	v.open("setup#" + code)
	v.Await(fmt.Sprintf(`document.getElementById("f-code").value === %q`, code))
	if address := v.Text("location.href"); strings.Contains(address, code) {
		t.Errorf("the code stays in the address: %s", address)
	}
	v.fill("name", "anna")
	v.fill("password", goodPassword)
	v.fill("again", goodPassword+"x")
	v.Await(`document.getElementById("f-zone").value === Intl.DateTimeFormat().resolvedOptions().timeZone`)
	v.fill("zone", "Berlin")
	v.press("setup/found")
	v.reads("setup/passwords-differ")
	v.Text(`document.querySelector('[data-errors] a[href="#f-again"]').click(), ""`)
	v.Await(`location.hash === "#f-again" && document.readyState === "complete"`)
	if kept := v.Text(`["code", "name", "zone"].map((n) => document.getElementById("f-" + n).value).join(" ")`); kept != code+" anna Berlin" {
		t.Errorf("of code, name and zone %q is left", kept)
	}
	v.Await(`document.getElementById("e-zone").textContent.includes("Europe/Berlin")`)
	v.wide()
	v.fill("zone", "Europe/Berlin")
	v.fill("password", goodPassword)
	v.fill("again", goodPassword)
	v.press("setup/found")
	v.Await(`location.pathname === "/console/setup/services"`)
	return v
}

// TestJourneySetup (J1): from the link in the start log of an empty server to a spoken answer in the browser: owner, services, a
// speaker that calls meanwhile, the address for others, and a sentence that is said, understood and answered aloud.
func TestJourneySetup(t *testing.T) {
	journey(t, phoneByDay, func(t *testing.T, l look) {
		clip, err := spokenClip()
		if err != nil {
			t.Fatal(err)
		}
		cloud := startCloud(t)
		cloud.Handle(openaitest.Transcribe, knowing(clip))
		cloud.Handle(openaitest.Chat, echo)
		s := start(t, setup{speaks: true, env: cloudEnv(cloud), config: "asr: [cloud]\ntts: [cloud]\n" + cloudSection(cloud)})
		begun := time.Now()
		v := l.begins(t, s)
		v.reads("setup/services")
		v.wide()
		v.open("setup/speakers")
		v.reads("setup/no-speakers")
		s.speaker(t, devicetest.Options{DeviceID: newDeviceID()}, func(code string) {
			v.Await(fmt.Sprintf(`document.querySelector("#waiting .tag.num")?.textContent === %q`, code))
			v.wide()
			v.pressWhat(`document.querySelector("#waiting label")`)
			v.press("setup/mine")
			v.Await(`location.pathname === "/console/setup/address"`)
		})
		v.reads("setup/local") // it listens at this machine alone
		v.Await(`document.getElementById("address").textContent.includes("/xiaozhi/ota/")`)
		v.wide()
		v.press("setup/talk-here")
		v.Await(`document.querySelector('[data-talk="push"]')?.checkVisibility()`)
		sayTo(t, v.Tab, func() func() { return v.Hold(pushButton) })
		answeredAloud(t, v.Tab, true)
		t.Logf("%.1f s from the link to the end of the answer", time.Since(begun).Seconds())
		v.open("setup")
		v.reads("frame/not-found")
		v.wide()
	})
}

// TestJourneySetupSkipped (J2): the same with nothing: no key, every step skipped, no microphone. What is typed is answered aloud by
// what the program has by itself, and the overview says what is missing.
func TestJourneySetupSkipped(t *testing.T) {
	journey(t, phoneByNight, func(t *testing.T, l look) {
		s := start(t, setup{speaks: true, config: "server: {public_url: 'http://home.example'}\nmcp: {enabled: false}\n"})
		v := l.begins(t, s)
		for _, step := range []string{"speakers", "address"} {
			v.pressWhat(fmt.Sprintf(`[...document.querySelectorAll("main .acts a, main .acts button")].find((e) => (e.getAttribute("href") ?? e.formAction ?? "").includes("/console/setup/%s"))`, step))
			v.Await(`location.pathname === "/console/setup/` + step + `"`)
			v.wide()
		}
		v.Await(`document.getElementById("address").textContent === "http://home.example/xiaozhi/ota/" && document.querySelector(".qr svg")`)
		v.press("setup/finish")
		v.reads("overview/none")
		v.done()
		v.pressWhat(`document.querySelector("main .empty a[href='/console/talk']")`)
		v.Await(`document.querySelector('[data-talk="text"]')?.checkVisibility()`)
		v.Type(`[data-talk="text"]`, "what time is it\r")
		answeredAloud(t, v.Tab, true)
		v.done()
	})
}
