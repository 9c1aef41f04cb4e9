package e2e

import (
	"fmt"
	"testing"

	"xiaozhi/internal/browsertest"
	"xiaozhi/internal/devicetest"
)

// TestConsoleTyped: what somebody has typed is still there after the form was refused for its size, and after the session had ended and
// the page asked for the password in between. A click counts although the part of the page that it is on has changed meanwhile.
func TestConsoleTyped(t *testing.T) {
	t.Parallel()
	browsertest.Need(t, browser)
	s, owner := onJourney(t)
	ctx := limit(t)
	if a := s.http(ctx, t, "POST /api/v1/users", `{"name":"typist","role":"owner","password":"`+goodPassword+`"}`, s.with(owner)); a.status != 200 {
		t.Fatal(a.status, a.body)
	}
	l := look{lang: "en", width: 1280}
	v := l.visit(t, s, "", "agents/-/new?template=empty")
	v.login("typist", goodPassword)
	v.Await(`document.querySelector("#f-long-text")`)
	const value = `document.querySelector("#f-long-text")?.value`
	save := func() {
		v.Await(`document.querySelector("#f-long-text").form.requestSubmit(document.querySelector("#f-long-text").form.querySelector("[value=save]")), true`)
	}
	v.fill("name", "typed")
	v.Text(`document.querySelector("#f-long-text").value = "x".repeat(3 << 20), ""`)
	save()
	v.Await(`document.querySelector("#lost")?.textContent.trim().length > 20`)
	if v.Number(value+".length") != 3<<20 {
		t.Error("a form that was too long is gone")
	}
	const kept = "Three hundred lines of a prompt."
	v.Text(`document.querySelector("#f-long-text").value = "` + kept + `", ""`)
	v.Cookie(v.host, "xiaozhi", "of a session that has ended")
	save()
	v.Await(`document.querySelector("main [name=password]")`)
	v.login("typist", goodPassword)
	v.Await(value + ` === "` + kept + `" && document.querySelector("[name=name]").value === "typed"`)

	d := s.speaker(t, devicetest.Options{DeviceID: deviceOfLook(61, l)}, s.accepted(t))
	ask(ctx, t, d, "an aardvark")
	v.open("conversations")
	v.Await(`[...document.querySelectorAll(".talk-day a")].find((e) => e.innerText.includes("an aardvark"))`)
	v.Text(`window.__came = 0, new EventSource("/console/events?on=talks").onmessage = () => __came++, ""`)
	talk := v.Text(`[...document.querySelectorAll(".talk-day a")].find((e) => e.innerText.includes("an aardvark")).getAttribute("href")`)
	release := v.Hold(`.talk-day a[href="` + talk + `"]`) // others talk at the same time
	before := v.Number(`__came`)
	ask(ctx, t, d, "an anteater")
	v.Await(fmt.Sprintf("__came > %v", before))
	release()
	v.sees("I heard an anteater.")
}
