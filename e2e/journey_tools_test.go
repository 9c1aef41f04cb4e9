package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"xiaozhi/internal/browsertest"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
)

// frail is a program that serves a tool, and ends when that is called.
const frail = `while read -r line; do
  id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
  *'"notifications/'*) ;;
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"frail","version":"1"}}}' ;;
  *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"print_page","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]}}' ;;
  *'"tools/call"'*) echo 'out of paper' >&2; exit 4 ;;
  *) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"what?"}}' ;;
  esac
done`

// shelfServer is a server with other people's servers of tools: one that is well, one without tools, one that never answers, a
// program that ends at once, and one that ends when it is used.
var shelfServer = sharedServer{setup: func() (setup, error) {
	cloud, err := openaitest.New() // ends with the process
	if err != nil {
		return setup{}, err
	}
	cloud.Handle(openaitest.Chat, echo)
	shelf := httptest.NewServer(http.HandlerFunc(serveShelf))
	shelfAddress = shelf.URL
	program, err := json.Marshal(frail)
	if err != nil {
		return setup{}, err
	}
	return setup{speaks: true, env: cloudEnv(cloud), config: `auth: {pairing: ask}
asr: [cloud]
tts: [cloud]
mcp: {transcripts: true}
tools:
  confirm: [self.lamp.turn_off]
  external:
    mcpServers:
      good: {url: "` + shelf.URL + `/good"}
      empty: {url: "` + shelf.URL + `/empty"}
      mute: {url: "` + shelf.URL + `/mute", protocol: legacy}
      dead: {command: sh, args: [-c, "echo no such folder: /srv/music >&2; exit 3"]}
      frail_en: {command: sh, args: [-c, ` + string(program) + `]}
      frail_zh: {command: sh, args: [-c, ` + string(program) + `]}
` + cloudSection(cloud)}, nil
}}

// shelfAddress is where those are; set with that server.
var shelfAddress string

// serveShelf answers as servers of tools.
func serveShelf(w http.ResponseWriter, r *http.Request) {
	var m rpc
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if r.URL.Path == "/mute" {
		<-r.Context().Done()
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	result := ""
	switch m.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"shelf","version":"1"}}`
	case "tools/list":
		result = `{"tools":[]}`
		if r.URL.Path == "/good" {
			result = `{"tools":[{"name":"find_book","description":"Finds a book. <img src=x onerror=alert(1)>","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object",` +
				`"properties":{"title":{"type":"string","description":"A part of its title."},"shelf":{"enum":["left","right"]},"most":{"type":"integer","minimum":1,"maximum":9}},"required":["title"]}},` +
				`{"name":"burn_all","description":"Burns all books.","annotations":{"destructiveHint":true},"inputSchema":{"type":"object"}}]}`
		}
	case "tools/call":
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"<b>%s</b> %v"}],"isError":false}`, m.Params.Name, m.Params.Arguments["title"])
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
		return
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// TestJourneyTools (J9): a tool of a speaker is called by a form, whose mistakes stand at their fields; one that needs a yes is asked
// about, aloud or on the page. A server that offers nothing, one that never answers and one whose program has ended are told apart, and
// a call says so if the program ends meanwhile. Of a speaker that sleeps the tools that it had are shown.
func TestJourneyTools(t *testing.T) {
	journey(t, deskByNight, func(t *testing.T, l look) {
		s := shelfServer.use(t)
		shelfServer.owned.Do(func() { shelfServer.owner = s.own(limit(t), t) })
		ctx, board := limit(t), devicetest.NewBoard()
		o := devicetest.Options{DeviceID: deviceOfLook(9, l), Tools: board.Tools(), Mode: devicetest.Auto}
		d := s.speaker(t, o, s.accepted(t))
		if err := d.ListenStart(devicetest.Auto); err != nil {
			t.Fatal(err)
		}
		s.waitForTools(ctx, t, d)
		v := l.visit(t, s, shelfServer.owner, "tools?device="+o.DeviceID)
		open := func(name string) {
			t.Helper()
			v.pressWhat(fmt.Sprintf(`[...document.querySelectorAll("#tools li a")].find((e) => e.innerText === %q)`, name))
			v.Await(fmt.Sprintf(`document.querySelector("h1")?.innerText === %q`, name))
			v.wide()
		}
		call := func() { t.Helper(); v.pressWhat(`document.querySelector('main button[value="call"]')`) }

		v.wide()
		open("self.audio_speaker.set_volume")
		v.sees(strings.ReplaceAll(v.words("tools/why-name", "set"), "%%", "%"))
		v.fill("arg-0", "250")
		call()
		v.reads("tools/too-big", "100")
		if kept := v.Text(`document.getElementById("f-arg-0").value`); kept != "250" {
			t.Errorf("of what was typed %q is left", kept)
		}
		v.wide()
		v.fill("arg-0", "33")
		call()
		v.Await(`document.querySelector("#answer pre")?.innerText.trim() === "true"`)
		if got := board.Values().Volume; got != 33 {
			t.Errorf("the volume is %d", got)
		}
		v.wide()

		v.open("tools?device=" + o.DeviceID)
		open("self.lamp.turn_off")
		v.reads("tools/asks-there")
		call()
		if q := reply(ctx, t, d); !isQuestion(q) {
			t.Errorf("the speaker asks %q", q.Text())
		}
		if err := d.Detect("yes please"); err != nil {
			t.Fatal(err)
		}
		v.Await(`document.querySelector("#answer .state.ok")`)

		v.open("tools?source=external")
		v.sees("<img src=x onerror=alert(1)>")
		open("burn_all")
		call()
		v.reads("tools/must-be-sure")
		v.pressWhat(`document.getElementById("f-sure")`)
		call()
		v.Await(`document.querySelector("#answer pre")?.innerText.includes("<b>burn_all</b>")`)

		v.open("tools?q=frail_" + l.lang)
		open("print_page")
		call()
		v.Await(`document.querySelector("#answer .state.bad")`)
		v.open("tools/servers")
		v.Await(`[...document.querySelectorAll("#servers > ul > li")].some((e) => e.querySelector("h2").innerText === "frail_` + l.lang + `" && e.textContent.includes("out of paper"))`)
		v.reads("tools/server-empty")
		v.reads("tools/trouble-exited")
		v.sees("no such folder: /srv/music")
		v.pressWhat(`[...document.querySelectorAll("#servers > ul > li")].find((e) => e.querySelector("h2").innerText === "good").querySelector('button[value="test"]')`)
		v.Await(`document.querySelector("main > .note.ok")`)
		v.reads("tools/trouble-unanswered")
		v.wide()

		v.open("tools/calls?device=" + o.DeviceID)
		v.sees("self.audio_speaker.set_volume")
		v.reads("tools/by-console")
		d.Close()
		v.open("devices/" + o.DeviceID)
		v.reads("devices/state-asleep")
		v.open("tools?device=" + o.DeviceID)
		v.reads("tools/this-asleep")
		open("self.audio_speaker.set_volume")
		v.reads("tools/cannot-asleep")
		v.done()
	})
}

// TestJourneyToolSettings: what an owner sets of a tool counts at once, and a server of tools that is typed in is tried, kept and
// removed, while everything runs.
func TestJourneyToolSettings(t *testing.T) {
	t.Parallel()
	browsertest.Need(t, browser)
	s := shelfServer.use(t)
	shelfServer.owned.Do(func() { shelfServer.owner = s.own(limit(t), t) })
	s.waitReady(limit(t), t)
	v := look{"zh", 360, true}.visit(t, s, shelfServer.owner, "tools?q=find_book")
	v.pressText("find_book")
	for _, step := range []struct{ field, sees string }{{"deny", "tools/hidden"}, {"deny", "tools/kind-query"}, {"confirm", "tools/asks"}, {"confirm", "tools/kind-query"}} {
		v.pressWhat(`document.getElementById("f-` + step.field + `")`)
		v.press("tools/rules-save")
		v.press("settings/apply")
		v.Await(fmt.Sprintf(`[...document.querySelectorAll(".head .state")].some((e) => e.innerText === %q)`, v.words(step.sees)))
		v.Await(`document.querySelector("main > .note.ok")`)
		v.wide()
	}
	where := strings.TrimSuffix(shelfAddress, "/")
	v.open("tools/servers/edit")
	v.fill("name", "spare shelf")
	v.fill("url", where+"/empty")
	v.press("tools/server-save")
	v.reads("tools/bad-server-name")
	v.fill("name", "spare")
	v.fill("headers", "Authorization: Bearer sesame-open")
	v.press("tools/test")
	v.Await(`document.querySelector("main > .note.ok")`)
	v.fill("url", where+"/good")
	v.wide()
	v.press("tools/server-save")
	v.Await(`location.pathname.startsWith("/console/settings/-/plan/") && document.body.innerText.includes("mcpServers.spare.url")`) // nothing counts before it was seen
	v.press("settings/apply")
	v.Await(`document.querySelector("main > .note.ok")`)
	v.Await(`[...document.querySelectorAll("#servers h2")].some((e) => e.innerText === "spare" && e.parentElement.querySelector(".state.ok"))`)
	v.open("tools?source=external&q=find_book")
	v.Await(`document.querySelectorAll("#tools li").length === 2`)
	v.open("tools/servers/edit?name=spare")
	v.Await(`document.getElementById("f-url").value.endsWith("/good") && document.getElementById("f-headers").value === "Authorization: ••••"`)
	if strings.Contains(v.Text("document.documentElement.outerHTML"), "sesame-open") {
		t.Error("a secret comes back")
	}
	v.Text(`window.confirm = () => true, ""`) // it asks once more
	v.press("tools/server-remove")
	v.press("settings/apply")
	v.Await(`document.querySelector("main > .note.ok") && ![...document.querySelectorAll("#servers h2")].some((e) => e.innerText === "spare")`)
	v.done()
}
