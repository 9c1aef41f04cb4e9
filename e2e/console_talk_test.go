package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/browsertest"
	"xiaozhi/internal/speechtest"
)

const (
	pushButton = `[data-talk="push"]`
	talkTime   = 4 * time.Minute
	loopback   = "127.0.0.1"
)

// toolCalls calls invented tools of each kind.
const toolCalls = `import(document.querySelector('script[src$="/talk.js"]').src.replace("talk.js", "talk-tools.js")).then(({ Tools }) => {
	const answers = [];
	const tools = new Tools({}, (m) => { if (m.id) { answers.push([m.id, m.result?.content?.[0].text ?? m.result?.nonsense, m.result?.isError ?? "", m.error?.code ?? ""].join(" ").trim()); window.__answers = answers; } });
	["answer", "late", "wrong", "bad", "never"].forEach((how, i) => {
		tools.set({ name: how, description: "x", argument: "", how, text: how + "!", seconds: 0.2 });
		if (how !== "answer") { tools.handle({ jsonrpc: "2.0", id: i, method: "tools/call", params: { name: how } }); }
	});
	tools.handle({ jsonrpc: "2.0", id: 9, method: "tools/call", params: { name: "nobody" } });
}), ""`

const wantToolAnswers = "2 wrong! true; 3 bad!; 9   -32601; 1 late! false"

// stateIs is true in the page while it is in one of some states.
func stateIs(states ...string) string {
	return fmt.Sprintf("%q.split(' ').includes(document.getElementById('talk').dataset.state)", strings.Join(states, " "))
}

// attempts is how many sentences may be said until one is understood: a busy machine loses too much of some on their way to the page.
const attempts = 3

// understood reports whether the server has understood what was said to the page in the nth turn. It fails the test at the last attempt.
func understood(t *testing.T, tab *browsertest.Tab, n int) bool {
	t.Helper()
	clip := clipNamed(t, speechtest.Prompts, heardByBrowser)
	tab.Await(fmt.Sprintf(`document.querySelectorAll('.talk-said .user span').length >= %d`, n))
	heard := tab.Text(fmt.Sprintf(`document.querySelectorAll('.talk-said .user span')[%d].textContent`, n-1))
	errs, _ := speechtest.WER(clip.Text, heard)
	if errs > 1 {
		t.Logf("said %q, heard %q", clip.Text, heard)
	}
	if errs > 1 && n == attempts {
		t.Error("nothing of what was said was understood")
	}
	return errs <= 1
}

// sayTo says a sentence to a page that listens as long as it is held. It fails the test if the server does not understand it.
func sayTo(t *testing.T, tab *browsertest.Tab, hold func() (release func())) {
	t.Helper()
	for n := 1; n <= attempts; n++ {
		release := hold()
		tab.Await(stateIs("listening"))
		tab.Spoken()
		release()
		if understood(t, tab, n) {
			return
		}
	}
}

// answeredAloud fails the test unless an answer was shown and heard: all of it, or its beginning.
func answeredAloud(t *testing.T, tab *browsertest.Tab, all bool) {
	t.Helper()
	tab.Await(`document.querySelector('.talk-said .server span')?.textContent.length > 1`)
	if all {
		tab.Await(stateIs("idle", "listening"))
	} else {
		tab.Await("__sound.loud > 200")
	}
	tab.Await("__sound.peak > 0.05 && __sound.last - __sound.first > 150")
	t.Logf("the first sound was heard %.0f ms after it had come", tab.Begun())
	if over := tab.Text(`document.getElementById('talk').dataset.overflow`); over != "0" {
		t.Errorf("%s packets were thrown away", over)
	}
}

// endsBy has the next connection of a page end at once by a code, as a server ends one, with a reason for its log.
func endsBy(code int, reason string) string {
	return fmt.Sprintf(`dispatchEvent(new Event("pagehide")), window.WebSocket = class { static OPEN = 1; constructor() { setTimeout(() => this.onclose({ code: %d, reason: %q })); } close() {} send() {} }, ""`, code, reason)
}

// TestTalkPage talks by the page as a person would, and measures what the browser gives to the loudspeaker.
func TestTalkPage(t *testing.T) {
	t.Parallel()
	speak := func(t *testing.T, tab *browsertest.Tab, all bool, hold func() func()) {
		t.Helper()
		sayTo(t, tab, hold)
		answeredAloud(t, tab, all)
		tab.Clean()
	}
	t.Run("push, PCM", func(t *testing.T) {
		t.Parallel()
		tab := console(t, loopback, "/console/talk?codec=pcm&lang=en", talkTime)
		speak(t, tab, true, func() func() { return tab.Hold(pushButton) })
		if codec := tab.Text(`document.querySelector('[data-talk="codec"]').textContent`); !strings.Contains(codec, "PCM") {
			t.Errorf("codec: %s", codec)
		}
		tab.Await(`document.querySelector('#last-turn svg')`)
		tab.Text(`URL.createObjectURL = (blob) => { blob.arrayBuffer().then((b) => (window.__wav = new Int16Array(b))); return "#"; }, ""`)
		tab.Click(`[data-talk="save"]`)
		tab.Await("window.__wav")
		loudest := `__wav.reduce((most, v, i) => i > 22 && i %% 2 === %d ? Math.max(most, Math.abs(v)) : most, 0)`
		if user, reply := tab.Number(fmt.Sprintf(loudest, 0)), tab.Number(fmt.Sprintf(loudest, 1)); user < 1000 || reply < 1000 || tab.Number("__wav[0]") != 0x4952 {
			t.Errorf("the file holds the user at %v and the answer at %v at most", user, reply)
		}
	})
	t.Run("Space, Opus", func(t *testing.T) {
		t.Parallel()
		tab := console(t, loopback, "/console/talk?codec=opus&lang=en", talkTime)
		tab.Focus(pushButton)
		speak(t, tab, false, func() func() { return tab.HoldKey(" ", "Space") })
		if codec := tab.Text(`document.querySelector('[data-talk="codec"]').textContent`); !strings.Contains(codec, "Opus") {
			t.Errorf("codec: %s", codec)
		}
	})
	t.Run("hands-free", func(t *testing.T) {
		t.Parallel()
		tab := console(t, loopback, "/console/talk?lang=zh", talkTime)
		tab.Click(`[data-talk="free"]`)
		for n := 1; n <= attempts && !understood(t, tab, n); n++ {
		}
		answeredAloud(t, tab, false)
		tab.Click(`[data-talk="free"]`)
		tab.Await(`document.querySelector('[data-talk="light"]').hidden`)
		tab.Text(endsBy(1011, "conversation cannot start"))
		tab.Type(`[data-talk="text"]`, "hello\r")
		tab.Await(`document.querySelector('[data-talk="trouble"]').textContent === "连接已断开：服务器内部出错，详情见服务器日志。再次说话或输入即可重新连接。"`)
		tab.Clean()
	})
	t.Run("interruption", func(t *testing.T) {
		t.Parallel()
		tab := console(t, loopback, "/console/talk?codec=pcm&lang=en", talkTime)
		soonest := math.Inf(1) // of a few: a busy machine forgets the page for a while
		for range 5 {
			tab.Deaf()
			tab.Text(`document.getElementById('talk').dataset.cut = "", ""`)
			tab.Type(`[data-talk="text"]`, "what can you do\r")
			tab.Await("__sound.loud > 200")
			tab.HoldKey("Escape", "Escape")()
			tab.Await("performance.now() - __sound.last > 600")
			tab.Await(stateIs("idle"))
			if tab.Text(`document.getElementById('talk').dataset.cut`) == "" {
				continue // it was over before
			}
			if soonest = min(soonest, tab.Number("__sound.last - Number(document.getElementById('talk').dataset.cut)")); soonest <= 100 {
				break
			}
		}
		if soonest > 100 {
			t.Errorf("the answer was heard for %v ms after the interruption", soonest)
		}
		tab.Deaf()
		tab.Type(`[data-talk="text"]`, "what time is it\r")
		tab.Await("__sound.loud > 200")
		tab.Clean()
	})
	t.Run("plain http", func(t *testing.T) {
		t.Parallel()
		tab := console(t, browsertest.PlainHost, "/console/talk?lang=en", talkTime)
		if tab.Number("Number(isSecureContext)") != 0 {
			t.Fatal("the browser trusts the page")
		}
		tab.Await(`!document.querySelector('[data-why="insecure"]').hidden && document.querySelector('[data-talk="push"]').disabled`)
		if says := tab.Text(`document.querySelector('[data-talk="no-microphone"]').innerText`); !strings.Contains(says, "http://localhost:") || !strings.Contains(says, "chrome://flags") {
			t.Errorf("it says %q", says)
		}
		tab.Type(`[data-talk="text"]`, "what time is it\r")
		answeredAloud(t, tab, true)
		tab.Clean()
	})
	t.Run("no microphone", func(t *testing.T) {
		t.Parallel()
		tab := console(t, loopback, "/console/talk?codec=pcm&lang=en", talkTime)
		for name, why := range map[string]string{"NotAllowedError": "refused", "NotFoundError": "none", "NotReadableError": "busy"} {
			tab.Text(fmt.Sprintf(`navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException("", %q)), ""`, name))
			tab.Click(pushButton)
			tab.Await(fmt.Sprintf(`[...document.querySelectorAll('[data-why]:not([hidden])')].map((e) => e.dataset.why).join() === %q`, why))
		}
		tab.Text(`delete navigator.mediaDevices.getUserMedia, ""`)
		tab.Focus(pushButton)
		tab.HoldKey("Enter", "Enter")()
		tab.Await(stateIs("listening") + ` && document.querySelector('[data-talk="no-microphone"]').hidden`)
		tab.HoldKey("Enter", "Enter")()
		tab.Await(stateIs("thinking", "speaking", "idle") + ` && document.querySelector('[data-talk="light"]').hidden`)
		tab.Clean()
	})
	t.Run("not kept, with another agent", func(t *testing.T) {
		t.Parallel()
		tab := console(t, loopback, "/console/talk?codec=pcm&lang=en", talkTime)
		tab.Click(`[data-talk="keep"]`)
		agent := tab.Text(`(s => (s.value = s.options[s.options.length - 1].value))(document.querySelector('[data-talk="agent"]'))`)
		tab.Type(`[data-talk="text"]`, "what time is it\r")
		answeredAloud(t, tab, true)
		tab.Text(`(async () => {
			const order = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ browser: document.getElementById("talk").dataset.browser }) };
			const { device } = await (await fetch("/console/talk/ticket", order)).json();
			const last = await (await fetch("/console/talk/last?device=" + device)).text();
			const { agents } = await (await fetch("/api/v1/agents")).json();
			window.__found = [last.includes("<svg"), agents.find((a) => a.devices.includes(device))?.name, localStorage.length].join(" ");
		})(), ""`)
		tab.Await("window.__found")
		if got, want := tab.Text("window.__found"), "false "+agent+" 0"; got != want {
			t.Errorf("kept, agent and how much the browser keeps: %q, want %q", got, want)
		}
		tab.Clean()
	})
	t.Run("tools", func(t *testing.T) {
		t.Parallel()
		tab := console(t, loopback, "/console/talk?codec=pcm&lang=en", talkTime)
		tab.Type(`[data-talk="text"]`, "what time is it\r")
		answeredAloud(t, tab, true)
		tab.Type(`[data-talk="text"]`, "set the volume to 40\r")
		tab.Await(`document.querySelector('[data-talk="volume"]').value === "40"`)
		tab.Text(`document.querySelector('[data-talk="tool-form"]').closest("details").open = true, ""`)
		tab.Type("#tool-name", "open_window")
		tab.Type("#tool-description", "Opens a window.")
		tab.Type("#tool-argument", "room\r")
		tab.Await(`/"result":\{"tools":\[.*open_window/.test(document.querySelector('[data-talk="messages"]').textContent)`)
		tab.Text(toolCalls)
		tab.Await("window.__answers?.length === 4")
		if got := tab.Text("__answers.join('; ')"); got != wantToolAnswers {
			t.Errorf("answers of invented tools:\n%s\nwant\n%s", got, wantToolAnswers)
		}
		if shown := tab.Text(`document.querySelector('[data-talk="messages"]').textContent`); strings.Contains(shown, "vis_") {
			t.Error("a token is shown among the messages")
		}
		tab.Clean()
	})
}
