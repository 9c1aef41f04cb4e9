package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/browsertest"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/testall"
)

// journeyServer is the server on which journeys pair, rename, say and forget, each with devices of its own. A person has to accept
// devices; the model repeats what it is asked, and the voice is a tone.
var journeyServer = sharedServer{setup: func() (setup, error) {
	cloud, err := openaitest.New() // ends with the process
	if err != nil {
		return setup{}, err
	}
	cloud.Handle(openaitest.Chat, holding(retelling))
	cloud.Handle(openaitest.Transcribe, tones)
	cloud.Handle(openaitest.Speak, holding(briefly))
	return setup{speaks: true, env: cloudEnv(cloud), config: "auth: {pairing: ask}\nasr: [cloud]\ntts: [cloud]\nrecording: {sound: both}\n" + cloudSection(cloud)}, nil
}}

// cloudSection makes a fake service a section named cloud.
func cloudSection(cloud *openaitest.Server) string {
	return "providers: {cloud: {type: openai, base_url: '" + cloud.URL() + "', api_key: none, model: fake-1, asr_model: ears, tts_model: voice}}\n"
}

// onJourney is that server with its owner's cookie.
func onJourney(t *testing.T) (s *server, owner string) {
	t.Helper()
	s = journeyServer.use(t)
	journeyServer.owned.Do(func() { journeyServer.owner = s.own(limit(t), t) })
	return s, journeyServer.owner
}

// look is how somebody looks at the console.
type look struct {
	lang  string
	width int64
	dark  bool
}

// The looks of all journeys: each of them has two, which are different in everything. make test has the first of them.
var (
	phoneByNight = [2]look{{"zh", 360, true}, {"en", 1280, false}}
	phoneByDay   = [2]look{{"en", 360, false}, {"zh", 1280, true}}
	deskByNight  = [2]look{{"en", 1280, true}, {"zh", 360, false}}
	deskByDay    = [2]look{{"zh", 1280, false}, {"en", 360, true}}
)

// eachLook reports whether journeys are gone with both looks: in make journeys and make test-all.
func eachLook() bool { return testall.Running() || os.Getenv("JOURNEYS") != "" }

// underway are the journeys that somebody is on: few at a time, so that none takes longer than its limits on a busy machine.
var underway = make(chan struct{}, 6)

// journey goes the same way with one look, or with both.
func journey(t *testing.T, looks [2]look, way func(t *testing.T, l look)) {
	t.Helper()
	t.Parallel()
	browsertest.Need(t, browser)
	for i, l := range looks {
		if i > 0 && !eachLook() {
			break
		}
		theme := "light"
		if l.dark {
			theme = "dark"
		}
		t.Run(fmt.Sprintf("%s, %d px, %s", l.lang, l.width, theme), func(t *testing.T) {
			t.Parallel()
			underway <- struct{}{}
			defer func() { <-underway }()
			way(t, l)
		})
	}
}

// visitor is a person at a page of the console. It is for one goroutine, as its tab.
type visitor struct {
	*browsertest.Tab

	t    *testing.T
	s    *server
	host string
	look look

	plain bool // without script
}

// visit opens a tab for somebody with a cookie ("": a stranger), and a page in it.
func (l look) visit(t *testing.T, s *server, cookie, path string) *visitor {
	t.Helper()
	return l.visitAt(t, s, loopback, cookie, path)
}

// visitAt is visit under another name of this machine.
func (l look) visitAt(t *testing.T, s *server, host, cookie, path string) *visitor {
	t.Helper()
	v := &visitor{Tab: browsertest.Need(t, browser).Tab(t, talkTime), t: t, s: s, host: host, look: l}
	v.Screen(l.width, 800, l.dark)
	v.Cookie(host, "lang", l.lang)
	if cookie != "" {
		show(v.Tab, cookie, host)
	}
	v.open(path)
	return v
}

// open goes to a page by its address.
func (v *visitor) open(path string) {
	v.t.Helper()
	v.Go(v.s.at(v.host) + "/console/" + path)
}

// lexicons are the texts of pages by language and id.
var lexicons = sync.OnceValues(func() (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for _, lang := range []string{"en", "zh"} {
		all[lang] = map[string]string{}
		files, err := filepath.Glob(filepath.Join("..", "console", "ui", "words", lang, "*.txt"))
		if err != nil {
			return nil, err
		}
		for _, file := range append([]string{filepath.Join("..", "internal", "text", "message", lang+".txt")}, files...) {
			content, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			for line := range strings.Lines(string(content)) {
				if id, words, ok := strings.Cut(strings.TrimRight(line, "\n"), " = "); ok {
					all[lang][id] = words
				}
			}
		}
	}
	return all, nil
})

// words are those of an id, in the language of the visitor.
func (v *visitor) words(id string, values ...any) string {
	v.t.Helper()
	all, err := lexicons()
	if err != nil {
		v.t.Fatal(err)
	}
	found := all[v.look.lang][id]
	if found == "" {
		v.t.Fatalf("no text %s in %s", id, v.look.lang)
	}
	return fmt.Sprintf(found, values...)
}

// sees waits until the page shows a text.
func (v *visitor) sees(text string) {
	v.t.Helper()
	v.Await(fmt.Sprintf(`document.body?.innerText.replace(/\s+/g, " ").includes(%q)`, strings.Join(strings.Fields(text), " ")))
}

// reads waits until the page shows the words of an id.
func (v *visitor) reads(id string, values ...any) { v.t.Helper(); v.sees(v.words(id, values...)) }

// lacks fails the test if the page shows a text.
func (v *visitor) lacks(text string) {
	v.t.Helper()
	if strings.Contains(v.Text("document.body.innerText"), text) {
		v.t.Errorf("the page shows %q", text)
	}
}

// press presses what has the words of an id: a button, a link, or what opens something.
func (v *visitor) press(id string, values ...any) { v.t.Helper(); v.pressText(v.words(id, values...)) }

// pressText is press for a text that is none of the program's.
func (v *visitor) pressText(text string) {
	v.t.Helper()
	v.pressWhat(fmt.Sprintf(`[...document.querySelectorAll("main button, main a, main summary, main label")].find((e) => e.innerText.trim() === %q)`, text))
}

// pressWhat presses once what an expression finds, as soon as it is there and no form is on its way.
func (v *visitor) pressWhat(expression string) {
	v.t.Helper()
	found := fmt.Sprintf("!document.querySelector('form[aria-busy=true]') && (%s)", expression)
	for {
		v.Await(fmt.Sprintf(`((e) => e && e.checkVisibility() && !e.disabled)(%s)`, found))
		how := v.Text(fmt.Sprintf(`((e) => {
			if (!e || !e.checkVisibility() || e.disabled) { return "again"; } // the part was shown anew in between
			window.__left = true;
			e.click();
			return !e.closest("summary, label") && (%t || e.closest("a")) ? "goes" : "stays";
		})(%s)`, v.plain, found))
		if how == "again" {
			continue
		}
		if how == "goes" {
			v.Await(`!window.__left && document.readyState !== "loading"`)
		}
		return
	}
}

// fill types into a field, in the place of what is there.
func (v *visitor) fill(name, text string) {
	v.t.Helper()
	v.Await(fmt.Sprintf(`(() => {
		const e = [...document.querySelectorAll("main [name=" + CSS.escape(%q) + "]")].find((e) => e.checkVisibility() && !e.disabled);
		if (e) { e.focus(); e.value = %q; e.dispatchEvent(new Event("input", { bubbles: true })); }
		return e;
	})()`, name, text))
}

// withoutScript keeps pages from running their scripts from now on.
func (v *visitor) withoutScript() {
	v.t.Helper()
	v.NoScript()
	v.plain = true
}

// wide fails the test if the page is wider than the window.
func (v *visitor) wide() {
	v.t.Helper()
	for _, what := range v.List(wider) {
		v.t.Errorf("%s: %s", v.Text("location.pathname"), what)
	}
}

// done ends a journey: nothing was wider than the window, and the browser has not complained.
func (v *visitor) done() { v.t.Helper(); v.wide(); v.Clean() }

// speaker boots a device that a person accepts, and connects it.
func (s *server) speaker(t *testing.T, o devicetest.Options, accept func(code string)) *devicetest.Device {
	t.Helper()
	ctx := limit(t)
	if o.ClientID == "" {
		o.ClientID = "client of " + o.DeviceID
	}
	if o.Flash == nil {
		o.Flash = &devicetest.Flash{}
	}
	if o.Tools == nil {
		o.Tools = devicetest.NewBoard().Tools()
	}
	o.Waiting = devicetest.PollsOnce
	o.Limits.MaxPause, o.Limits.Tolerance = 300*time.Millisecond, 5*time.Second
	if o.Mode == "" {
		o.Mode = devicetest.Manual
	}
	var shown sync.Once
	p, err := devicetest.Boot(ctx, s.ota, o, func(code string) { shown.Do(func() { accept(code) }) })
	if err != nil {
		t.Fatal(err)
	}
	o.URL, o.Token = p.URL, p.Token
	d, err := devicetest.Dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

// accepted accepts a device by the command.
func (s *server) accepted(t *testing.T) func(code string) {
	return func(code string) {
		if out, err := s.order(limit(t), "pair", code); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}
