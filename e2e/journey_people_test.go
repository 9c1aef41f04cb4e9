package e2e

import (
	"fmt"
	"strings"
	"testing"

	"xiaozhi/internal/browsertest"
	"xiaozhi/internal/devicetest"
)

// login fills in the page by which people come in.
func (v *visitor) login(name, password string) {
	v.t.Helper()
	v.fill("name", name)
	v.fill("password", password)
	v.press("door/login")
}

// TestJourneyOwnOnly (J13): a member pairs a speaker and sees that one and its talks, and nothing of others'; a viewer sees how many
// there are and how they are, and no word. Pages and actions of others' things are refused, also by their address.
func TestJourneyOwnOnly(t *testing.T) {
	journey(t, deskByNight, func(t *testing.T, l look) {
		s, owner := onJourney(t)
		ctx := limit(t)
		for _, role := range []string{"member", "viewer"} {
			order := fmt.Sprintf(`{"name":"%s-%s","role":"%s","password":%q}`, role, l.lang, role, goodPassword)
			if a := s.http(ctx, t, "POST /api/v1/users", order, s.with(owner)); a.status != 200 {
				t.Fatal(a.status, a.body)
			}
		}
		theirs, mine := deviceOfLook(13, l), deviceOfLook(14, l)
		foreign := s.speaker(t, devicetest.Options{DeviceID: theirs}, s.accepted(t))
		ask(ctx, t, foreign, "a platypus in "+l.lang)

		member := l.visit(t, s, "", "devices")
		member.login("member-"+l.lang, goodPassword)
		member.reads("devices/none")
		d := s.speaker(t, devicetest.Options{DeviceID: mine}, func(code string) {
			member.lacks(code)
			member.fill("code", code)
			member.press("devices/pair-now")
			member.reads("devices/paired")
		})
		ask(ctx, t, d, "a wombat in "+l.lang)
		member.sees("I heard a wombat in " + l.lang + ".")
		member.lacks(member.words("devices/forget"))
		member.open("devices")
		member.sees(mine)
		member.lacks(theirs)
		member.Await(`document.querySelector("nav [aria-current]")`)
		if links := member.Text(`[...document.querySelectorAll("aside nav li a")].map((a) => a.pathname.split("/").pop()).join(" ")`); strings.Contains(links, "settings") || strings.Contains(links, "services") {
			t.Errorf("the navigation of a member: %s", links)
		}
		member.open("conversations")
		member.found("a wombat in " + l.lang)
		member.lacks("platypus")
		for _, path := range []string{"devices/" + theirs, "services", "users", "log", "settings"} {
			member.open(path)
			member.lacks(theirs)
			if shown := member.Text(`document.querySelector("h1").innerText`); shown != member.words("frame/problem") {
				t.Errorf("%s shows a member %q", path, shown)
			}
		}
		member.wide()

		viewer := l.visit(t, s, "", "overview")
		viewer.login("viewer-"+l.lang, goodPassword)
		viewer.reads("overview/today")
		viewer.lacks("wombat")
		viewer.open("devices")
		viewer.reads("devices/counted")
		viewer.lacks(mine)
		viewer.lacks(theirs)
		if viewer.Number(`document.querySelectorAll("main a[href^='/console/devices/'], main form[method=post]").length`) != 0 {
			t.Error("a viewer is offered what only others may do")
		}
		for _, path := range []string{"devices/" + mine, "conversations", "talk"} {
			viewer.open(path)
			viewer.lacks("wombat")
			if shown := viewer.Text(`document.querySelector("h1").innerText`); shown != viewer.words("frame/problem") {
				t.Errorf("%s shows a viewer %q", path, shown)
			}
		}
		viewer.wide()
	})
}

// TestJourneyPasswordLost (J14): who has lost the password reads on the page what to do on the machine, does it, and comes in with the
// new one. Pages that were open with the old one are closed within a moment.
func TestJourneyPasswordLost(t *testing.T) {
	journey(t, phoneByNight, func(t *testing.T, l look) {
		s, owner := onJourney(t)
		ctx := limit(t)
		name := "lost-" + l.lang
		if a := s.http(ctx, t, "POST /api/v1/users", fmt.Sprintf(`{"name":%q,"role":"member","password":%q}`, name, goodPassword), s.with(owner)); a.status != 200 {
			t.Fatal(a.status, a.body)
		}
		open := l.visit(t, s, "", "devices")
		open.login(name, goodPassword)
		open.Await(`document.querySelector("[data-live-switch]")?.textContent === document.body.dataset.live`)

		v := l.visit(t, s, "", "users/me")
		v.login(name, "forgotten it all")
		v.sees(v.sentence("account/bad-login"))
		if kept := v.Text(`document.getElementById("f-name").value`); kept != name {
			t.Errorf("of the name %q is left", kept)
		}
		v.press("door/forgotten")
		v.sees("xiaozhi user passwd NAME")
		v.wide()
		const next = "nine blue kettles hum"
		s.command(ctx, t, next+"\n", "passwd", name)
		open.Await(`location.pathname === "/console/login"`)
		if a := s.http(ctx, t, "POST /api/v1/login", credentials("", name, goodPassword)); a.status != 401 {
			t.Errorf("the lost password: %d", a.status)
		}
		v.login(name, next)
		v.Await(`location.pathname === "/console/users/me"`)
		v.reads("people/this")
		if n := v.Number(`document.querySelectorAll("[aria-labelledby=h-sessions] li").length`); n != 1 {
			t.Errorf("%v sessions", n)
		}
		v.done()
	})
}

// TestJourneyWithoutScript (J16): by forms and links alone, at an address as in a home, somebody logs in, changes language and colours,
// pairs a speaker, renames it, has it say something, searches what was said, keeps and deletes it, forgets the speaker, and logs out.
// The page Talk says that it needs a script.
func TestJourneyWithoutScript(t *testing.T) {
	journey(t, phoneByDay, func(t *testing.T, l look) {
		s, _ := onJourney(t)
		ctx := limit(t)
		id := deviceOfLook(16, l)
		v := l.visitAt(t, s, browsertest.PlainHost, "", "login")
		v.withoutScript()
		v.open("login?to=/console/devices")
		v.login("olga", goodPassword)
		v.reads("devices/title")
		flash := &devicetest.Flash{}
		d := s.speaker(t, devicetest.Options{DeviceID: id, Flash: flash}, func(code string) {
			v.fill("code", "12")
			v.press("devices/pair-now")
			v.sees(v.sentence("pairing/no-code"))
			v.fill("code", code)
			v.press("devices/pair-now")
			v.reads("devices/paired")
		})
		ask(ctx, t, d, "a quokka without script in "+l.lang)
		v.fill("name", "plain "+l.lang)
		v.press("devices/rename")
		v.reads("devices/renamed")
		v.fill("words", "Hello from a form.")
		v.press("devices/say-pause")
		v.reads("devices/said")
		if r := reply(ctx, t, d); !strings.Contains(r.Text(), "Hello from a form.") {
			t.Errorf("it says %q", r.Text())
		}
		d.Close()
		v.open("conversations?text=quokka+without+script+in+" + l.lang)
		v.found("quokka without script in " + l.lang)
		v.pressText("a quokka without script in " + l.lang)
		v.press("conversations/do-keep")
		v.reads("conversations/did-keep")
		v.press("conversations/delete-turn")
		v.reads("conversations/did-turn")
		v.open("devices/" + id)
		v.press("devices/forget")
		v.fill("typed", "plain "+l.lang)
		v.pressWhat(`document.querySelector("form[action$='/forget'] button")`)
		v.reads("devices/forgotten")
		v.open("talk")
		v.reads("talk/no-script")
		v.open("overview")
		other := map[string]string{"en": "中文", "zh": "English"}[l.lang]
		if l.width < 760 {
			v.pressWhat(`document.querySelector(".menu summary")`)
		}
		v.pressWhat(fmt.Sprintf(`[...document.querySelectorAll("nav button")].find((b) => b.checkVisibility() && b.innerText === %q)`, other))
		v.Await(fmt.Sprintf(`document.documentElement.lang !== %q`, l.lang))
		if l.width < 760 {
			v.pressWhat(`document.querySelector(".menu summary")`)
		}
		v.pressWhat(`[...document.querySelectorAll("nav button[name=theme]")].find((b) => b.checkVisibility())`)
		v.Await(fmt.Sprintf(`document.documentElement.dataset.theme === %q`, map[bool]string{true: "light", false: "dark"}[l.dark])) // the other one
		if l.width < 760 {
			v.pressWhat(`document.querySelector(".menu summary")`)
		}
		v.pressWhat(`[...document.querySelectorAll("form[action='/console/logout'] button")].find((b) => b.checkVisibility())`)
		v.Await(`location.pathname === "/console/login"`)
		v.open("devices")
		v.Await(`location.pathname === "/console/login"`)
		v.Clean()
	})
}

// found loads a page again until it shows a text: what was said is written a moment after the end of its turn.
func (v *visitor) found(text string) {
	v.t.Helper()
	for !strings.Contains(v.Text("document.body.innerText"), text) {
		if v.t.Context().Err() != nil {
			v.t.FailNow()
		}
		v.Go(v.Text("location.href"))
	}
}
