package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/directory"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/toolcount"
	"xiaozhi/mcp"
	"xiaozhi/mcp/external"
	"xiaozhi/mcp/external/oauth"
	"xiaozhi/mcp/router"
	"xiaozhi/store"
)

// fakeSource is a program with what a test puts into it.
type fakeSource struct {
	devices []fleet.Device
	tools   map[string][]router.Listed // of devices
	asleep  map[string]bool
	here    []router.Listed
	servers []external.Status
	calls   store.CallList
	asked   store.CallFilter

	called  []mcp.Call
	on      []string
	sure    []bool
	answer  mcp.ActionResponse
	invalid string
	err     error
	tested  error

	after func()   // a call
	set   Settings // nil: nothing can be changed
	tried []external.Entry
}

func (s *fakeSource) Devices(context.Context) ([]fleet.Device, error) { return s.devices, nil }

func (s *fakeSource) Survey(_ context.Context, device string) ([]router.Listed, bool, error) {
	return s.tools[device], !s.asleep[device], nil
}

func (s *fakeSource) Here() []router.Listed { return s.here }

func (s *fakeSource) Call(_ context.Context, device string, call mcp.Call) (mcp.ActionResponse, string, error) {
	s.called, s.on = append(s.called, call), append(s.on, device)
	return s.answer, s.invalid, s.err
}

func (s *fakeSource) CallHere(_ context.Context, call mcp.Call, sure bool) (mcp.ActionResponse, string) {
	s.called, s.on, s.sure = append(s.called, call), append(s.on, ""), append(s.sure, sure)
	if s.after != nil {
		s.after()
	}
	return s.answer, s.invalid
}

func (s *fakeSource) FindCalls(_ context.Context, f store.CallFilter, _ store.Page) (store.CallList, error) {
	s.asked = f
	return s.calls, nil
}

func (s *fakeSource) Counts() []toolcount.Count {
	tally := toolcount.New()
	tally.Note(router.Record{Source: "device", Outcome: "error", Late: true})
	tally.Note(router.Record{Source: "device", Outcome: "none"})
	tally.Note(router.Record{Source: "external:maps", Outcome: "error", Refusal: router.RefusedConsent})
	return tally.Counts()
}

func (s *fakeSource) Servers() []external.Status { return s.servers }

func (s *fakeSource) TestServer(_ context.Context, name string) (time.Duration, int, error) {
	for _, one := range s.servers {
		if one.Name == name {
			return 12 * time.Millisecond, one.Listed, s.tested
		}
	}
	return 0, 0, mcp.ErrClosed
}

func (s *fakeSource) TryServer(_ context.Context, _ string, e external.Entry) (external.Status, time.Duration, error) {
	s.tried = append(s.tried, e)
	return external.Status{Listed: 2, Lines: []string{"a line"}}, time.Millisecond, s.tested
}

func (s *fakeSource) RestartServer(name string) error {
	_, _, err := s.TestServer(context.Background(), name)
	return err
}

func (s *fakeSource) Login(_ context.Context, name, redirect string) (string, error) {
	if _, _, err := s.TestServer(context.Background(), name); err != nil {
		return "", err
	}
	return "https://login.example/authorize?" + url.Values{"redirect_uri": {redirect}, "state": {"s1"}}.Encode(), nil
}

func (s *fakeSource) LoggedIn(_ context.Context, answer url.Values) (string, error) {
	if answer.Get("state") != "s1" {
		return "", oauth.ErrState
	}
	return "maps", s.tested
}

func (s *fakeSource) Logout(_ context.Context, name string) error { return s.RestartServer(name) }

func (s *fakeSource) DeviceID(typed string) string { return strings.ToLower(typed) }

func (s *fakeSource) DeviceOwner(_ context.Context, device string) (string, error) {
	for _, d := range s.devices {
		if d.ID == device {
			return d.Owner, nil
		}
	}
	return "", account.ErrNoDevice
}

var (
	olga = account.Person{ID: "o", Name: "olga", Role: account.Owner, Proved: time.Now()}
	anna = account.Person{ID: "a", Name: "anna", Role: account.Member}
)

// visitor asks the pages as somebody, past the guard.
type visitor struct {
	t    *testing.T
	mux  *http.ServeMux
	who  account.Person
	lang string
}

func visit(t *testing.T, s *fakeSource, who account.Person) *visitor {
	t.Helper()
	site, err := ui.New(ui.Options{Files: []fs.FS{Files}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, route := range New(site, access.Door{Guard: access.New(access.Options{Log: slog.New(slog.DiscardHandler)})}, NewDesk(s), s.set).Routes() {
		mux.Handle(route.Pattern, route.Handler)
	}
	return &visitor{t, mux, who, "en"}
}

// ask asks for a page, or posts a form by pairs of name and value.
func (v *visitor) ask(path string, form ...string) *httptest.ResponseRecorder {
	v.t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if len(form) > 0 {
		values := url.Values{}
		for i := 0; i+1 < len(form); i += 2 {
			values.Add(form[i], form[i+1])
		}
		r = httptest.NewRequest(http.MethodPost, path, strings.NewReader(values.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.Header.Set("Accept-Language", v.lang)
	w := httptest.NewRecorder()
	v.mux.ServeHTTP(w, access.As(r, v.who))
	return w
}

// want asks and looks for texts in the answer, as people read them.
func (v *visitor) want(w *httptest.ResponseRecorder, status int, texts ...string) string {
	v.t.Helper()
	body := w.Body.String()
	if w.Code != status {
		v.t.Errorf("%d, want %d:\n%.2000s", w.Code, status, body)
	}
	for _, text := range texts {
		if !strings.Contains(body, text) {
			v.t.Errorf("no %q in\n%.9000s", text, body[max(0, strings.Index(body, "<main")):])
		}
	}
	return body
}

func listed(source, name, schema string) router.Listed {
	tool := mcp.Tool{Name: name, Source: source, Description: "Does " + name + ".", Schema: json.RawMessage(cmp.Or(schema, `{"type":"object"}`))}
	l := router.Listed{Offer: router.Offer{Tool: tool, LLMName: mcp.FunctionName(name)}}
	l.Kind, l.Why = mcp.ExplainKind(tool, nil)
	return l
}

// house is a server with two speakers of two people.
func house() *fakeSource {
	denied := listed("device", "self.shell.run", "")
	denied.Hidden, denied.LLMName = "deny: self.shell.*", ""
	reboot := listed("device", "self.reboot", "")
	reboot.Hidden, reboot.LLMName = router.ForPeople, ""
	return &fakeSource{
		devices: []fleet.Device{{ID: "m1", Name: "kitchen", Owner: "a"}, {ID: "m2", Owner: "b", Board: "box"}},
		tools: map[string][]router.Listed{
			"m1": {listed("local", "clock", ""), listed("device", "self.lamp.set", ""), denied, reboot},
			"m2": {listed("local", "clock", ""), listed("iot", "Fan.on", "")},
		},
		asleep: map[string]bool{"m2": true},
		here:   []router.Listed{listed("local", "clock", ""), listed("external:maps", "find", "")},
	}
}

var rowName = regexp.MustCompile(`<li><div><a href="/console/tools/[^"]*">(.*?)</a>`)

func rowsIn(body string) (names []string) {
	for _, m := range rowName.FindAllStringSubmatch(body, -1) {
		names = append(names, strings.ReplaceAll(m[1], "<wbr>", ""))
	}
	return names
}

// TestList: owners see all tools once, members those of their own devices; each says whose it is, and why it is as it is.
func TestList(t *testing.T) {
	s := house()
	v := visit(t, s, olga)
	body := v.want(v.ask(path), 200, "Server maps", "kitchen", "its name begins with “set”", "deny: self.shell.*", "Speakers asleep: 1.", `data-topic="tools"`)
	if got := strings.Join(rowsIn(body), " "); got != "clock self.lamp.set self.reboot self.shell.run Fan.on find" {
		t.Errorf("the owner sees %q", got)
	}
	v.want(v.ask(path+"?after=zzz"), 400, "no such place in the list")
	for query, want := range map[string]string{
		"?q=LAMP": "self.lamp.set", "?source=external": "find", "?device=M1": "clock self.lamp.set self.reboot self.shell.run", "?device=m1&source=device&q=shell": "self.shell.run", "?q=%00": "", "?after=i%00%00%00": "",
	} {
		if got := strings.Join(rowsIn(v.want(v.ask(path+query), 200)), " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	v.want(v.ask(path+"?q=nothing"), 200, "No tool fits")
	v.want(v.ask(path+"?device=other"), 404)
	v.who = anna
	body = v.want(v.ask(path), 200)
	if got := strings.Join(rowsIn(body), " "); got != "clock self.lamp.set self.reboot self.shell.run" || strings.Contains(body, "/console/tools/servers") {
		t.Errorf("a member sees %q", got)
	}
	v.want(v.ask(path+"?device=m2"), 404)
	v.lang = "zh"
	v.want(v.ask(path), 200, "名称以“set”开头", "本服务器")
}

// TestListPages: a long list comes in pages, on which each tool is once.
func TestListPages(t *testing.T) {
	s := &fakeSource{}
	for i := range 120 {
		s.here = append(s.here, listed("local", fmt.Sprintf("tool_%03d", (i*7)%120), ""))
	}
	v := visit(t, s, olga)
	next, seen := path, map[string]bool{}
	for range 9 {
		body := v.want(v.ask(next), 200, "Tools: 120")
		for _, name := range rowsIn(body) {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		m := regexp.MustCompile(`href="(/console/tools\?[^"]*after=[^"]*)"`).FindStringSubmatch(body)
		if m == nil {
			break
		}
		next = strings.ReplaceAll(m[1], "&amp;", "&")
	}
	if len(seen) != 120 {
		t.Errorf("%d tools", len(seen))
	}
}

// TestListMany: of many devices one is chosen first, so that a page is not slow.
func TestListMany(t *testing.T) {
	s := house()
	for i := range 30 {
		s.devices = append(s.devices, fleet.Device{ID: fmt.Sprintf("x%d", i), Owner: "o"})
	}
	v := visit(t, s, olga)
	if got := strings.Join(rowsIn(v.want(v.ask(path), 200, "There are 32 speakers")), " "); got != "clock find" {
		t.Errorf("%q", got)
	}
	if got := strings.Join(rowsIn(v.want(v.ask(path+"?device=m1"), 200)), " "); got != "clock self.lamp.set self.reboot self.shell.run" {
		t.Errorf("%q", got)
	}
}

// nasty are texts that others may send.
var nasty = []string{
	`<img src=x onerror=alert(1)>`, `{{.}}{{template "open"}}`, `</textarea></select><script>alert(1)</script>`, strings.Repeat("长名字 long ", 1000), "a\x00b\u202e\n\r\t", `"'` + "`" + `\`, "../../../etc/passwd", "javascript:alert(1)", "%s%d%!",
}

// TestHostile: whatever tools say of themselves is text, in the list, on their page and in the log.
func TestHostile(t *testing.T) {
	s := &fakeSource{devices: []fleet.Device{{ID: "m1", Name: nasty[0], Owner: "o"}}, tools: map[string][]router.Listed{}, answer: mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: nasty[0] + nasty[2]}}
	deep := strings.Repeat(`{"type":"array","items":`, 300) + `{}` + strings.Repeat(`}`, 300)
	for i, text := range nasty {
		quoted, _ := json.Marshal(text)
		schema := fmt.Sprintf(`{"type":"object","properties":{%s:{"type":"string","description":%s,"default":%s},"e":{"enum":[%s,1,null,{"a":[]}]},"j":{"type":["object","array"],"default":%s}},"required":[%s]}`,
			quoted, quoted, quoted, quoted, quoted, quoted)
		for _, schema := range []string{schema, `{"type":"object","properties":{"d":` + deep + `}}`, `{"properties":[1],"required":{"a":1}}`, `{"type":"object","properties":{"x":true,"y":7,"z":{"type":5,"enum":"x","minimum":"a"}}}`, `[]`, `"x"`, `{`} {
			l := listed("external:"+text, fmt.Sprintf("%d%s%d", i, text, len(s.here)), schema)
			l.Tool.Description, l.Why, l.Asks, l.LLMName = text, "tools.kinds: "+text, "tools.confirm: "+text, fmt.Sprintf("t%d", len(s.here))
			s.here = append(s.here, l)
		}
	}
	s.tools["m1"] = s.here
	s.servers = []external.Status{{Name: nasty[0], Where: nasty[2], About: nasty[0], Phase: external.Waiting, Trouble: external.Exited, Error: nasty[2], Lines: nasty, From: external.InFile, Transport: external.Stdio}}
	s.calls.Calls = []store.Call{{Name: nasty[0], Arguments: nasty[2], Result: nasty[0], Source: nasty[0], Fault: "error", DeviceID: nasty[0], Caller: nasty[0]}}
	v := visit(t, s, olga)
	check := func(where string, w *httptest.ResponseRecorder) {
		t.Helper()
		body := w.Body.String()
		for _, bad := range []string{"<img src=x", "<script>alert", "ZgotmplZ", `href="javascript`} {
			if strings.Contains(body, bad) {
				t.Errorf("%s has %q", where, bad)
			}
		}
		if w.Code >= 500 || len(body) > 400<<10 {
			t.Errorf("%s: %d, %d bytes", where, w.Code, len(body))
		}
	}
	for _, v.lang = range []string{"en", "zh"} {
		for _, p := range []string{path, path + "?q=" + url.QueryEscape(nasty[0]), callsPath, callsPath + "?tool=" + url.QueryEscape(nasty[2]), serversPath} {
			check(p, v.ask(p))
		}
	}
	for i, l := range s.here {
		p := herePath + idOf(l.Tool)
		check(l.Tool.Name, v.ask(p))
		if i%7 == 0 {
			check("a call of "+l.Tool.Name, v.ask(p, "do", "call", "sure", "yes", "arg-0", nasty[0], "arg-1", "0", "arg-2", `["`+"<img src=x"+`"]`))
		}
	}
}

const lampSchema = `{"type":"object","properties":{
	"note":{"type":"string","maxLength":5,"description":"A note."},
	"volume":{"type":"integer","minimum":0,"maximum":100,"description":"How loud."},
	"gain":{"type":"number","default":1.5},
	"on":{"type":"boolean"},
	"theme":{"enum":["light","dark",5]},
	"list":{"type":"array","items":{"type":"integer"}},
	"box":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}
},"required":["volume","theme"]}`

// TestForm: mistakes stand at their field and keep what was typed; what is right is called with, as the schema wants it.
func TestForm(t *testing.T) {
	s := house()
	lamp := listed("device", "lamp", lampSchema)
	s.tools["m1"], s.answer = append(s.tools["m1"], lamp), mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: "it is <b>done</b>"}
	v := visit(t, s, anna)
	page := onPath + "m1/" + idOf(lamp.Tool)
	body := v.want(v.ask(page), 200, "How loud.", "0 – 100", `value="1.5"`, "Call it on kitchen")
	if strings.Index(body, ">How loud.") > strings.Index(body, ">A note.") {
		t.Error("what is required is not first")
	}
	key := func(name string) string {
		fields, _ := fieldsOf(lamp.Tool.Schema)
		for _, f := range fields {
			if f.Name == name {
				return f.Key
			}
		}
		return ""
	}
	for typed, want := range map[string][]string{
		"":              {"volume", "Please fill this in."},
		"volume=loud":   {"volume", "A whole number is needed here"},
		"volume=5.5":    {"volume", "A whole number is needed here"},
		"volume=101":    {"volume", "100 at most."},
		"volume=-1":     {"volume", "0 at least."},
		"gain=much":     {"gain", "A number is needed here"},
		"gain=Inf":      {"gain", "A number is needed here"},
		"theme=9":       {"theme", "Choose one of the values."},
		"on=maybe":      {"on", "Choose one of the values."},
		"list=[1":       {"list", "This is not valid JSON."},
		`list=["a"]`:    {"list", "do not allow this"},
		`box={"m":1}`:   {"box", "do not allow this"},
		"note=too long": {"note", "5 characters at most."},
	} {
		name, value, _ := strings.Cut(typed, "=")
		form := []string{"do", "call", key("volume"), "50", key("theme"), "0"}
		switch name {
		case "":
			form = []string{"do", "call", key("theme"), "0"}
		case "volume":
			form[3] = value
		case "theme":
			form[5] = value
		default:
			form = append(form, key(name), value)
		}
		w := v.ask(page, form...)
		body := v.want(w, 422)
		at := regexp.MustCompile(`(?s)id="e-` + key(want[0]) + `">.*?</p>`).FindString(body)
		if !strings.Contains(at, want[1]) {
			t.Errorf("%q: at the field stands %q, want %q", typed, at, want[1])
		}
		if value != "" && name != "on" && name != "theme" && !strings.Contains(body, strings.ReplaceAll(value, `"`, "&#34;")) {
			t.Errorf("%q is not kept", typed)
		}
	}
	if len(s.called) > 0 {
		t.Fatalf("called with mistakes: %+v", s.called)
	}
	v.want(v.ask(page, "do", "call", key("volume"), " 050 ", key("theme"), "2", key("on"), "false", key("gain"), "", key("list"), "[1,2]", key("note"), " a "), 200, "it is &lt;b&gt;done&lt;/b&gt;", `id="answer"`)
	v.want(v.ask(page, "do", "call", "arguments", `{"volume":1,"theme":"dark","more":true}`), 200, `id="answer"`)
	v.want(v.ask(page, "do", "call", "arguments", `[1]`), 422, "Write one JSON object here")
	v.want(v.ask(page, "do", "call", "arguments", `{"theme":"pink","volume":1}`), 422, "do not allow this")
	var got []string
	for _, c := range s.called {
		got = append(got, c.Name+" "+c.Arguments)
	}
	if want := `lamp {"list":[1,2],"note":" a ","on":false,"theme":5,"volume":50}|lamp {"volume":1,"theme":"dark","more":true}`; strings.Join(got, "|") != want {
		t.Errorf("called with\n%s, want\n%s", strings.Join(got, "|"), want)
	}
	v.who = olga
	v.want(v.ask(onPath+"m2/"+idOf(lamp.Tool)), 404)
	v.want(v.ask(onPath+"m1/0000"), 404)
	v.want(v.ask(page, "do", "nothing"), 404)
}

// TestConsent: a tool that needs a yes is asked about: on this page, or by the speaker.
func TestConsent(t *testing.T) {
	s := house()
	wipe := listed("external:home", "wipe", "")
	wipe.Asks, wipe.Consent = "destructiveHint", true
	s.here, s.tools["m1"] = append(s.here, wipe), append(s.tools["m1"], wipe)
	v := visit(t, s, olga)
	here, there := herePath+idOf(wipe.Tool), onPath+"m1/"+idOf(wipe.Tool)
	v.want(v.ask(here), 200, "destroys something", `name="sure"`, "kitchen")
	v.want(v.ask(here, "do", "call"), 422, "Tick the box", `id="e-sure"`)
	if len(s.called) > 0 {
		t.Fatal("it was called without a yes")
	}
	v.want(v.ask(here, "do", "call", "sure", "yes"), 200)
	if body := v.want(v.ask(there), 200, "asks its user aloud"); strings.Contains(body, `name="sure"`) {
		t.Error("the page takes the place of the user's yes")
	}
	v.want(v.ask(there, "do", "call"), 200)
	if len(s.sure) != 1 || !s.sure[0] || strings.Join(s.on, " ") != " m1" {
		t.Errorf("%v %q", s.sure, s.on)
	}
}

// TestCannotCall: what is hidden, asleep or needs a device cannot be called, and the page says why.
func TestCannotCall(t *testing.T) {
	s := house()
	photo := listed("local", "photo", "")
	photo.Tool.NeedsDevice = true
	s.here = append(s.here, photo)
	v := visit(t, s, olga)
	for page, want := range map[string]string{
		herePath + idOf(photo.Tool):                  "Choose one below",
		onPath + "m2/" + idOf(s.tools["m2"][1].Tool): "asleep",
		onPath + "m1/" + idOf(s.tools["m1"][2].Tool): "cannot be called",
	} {
		if body := v.want(v.ask(page), 200, want); strings.Contains(body, `value="call"`) {
			t.Errorf("%s has a button", page)
		}
		v.want(v.ask(page, "do", "call"), 422, "cannot be called now")
	}
	lamp := onPath + "m1/" + idOf(s.tools["m1"][1].Tool)
	s.err = directory.ErrNotConnected
	v.want(v.ask(lamp, "do", "call"), 422, "cannot be called now")
	if s.err = nil; len(s.called) != 1 {
		t.Errorf("%d calls", len(s.called))
	}
	for range 20 {
		if w := v.ask(lamp, "do", "call"); w.Code == 422 {
			v.want(w, 422, "too often")
			return
		}
	}
	t.Error("nobody counts the calls")
}

// TestGone: a tool that has gone with its call leaves the outcome on the page.
func TestGone(t *testing.T) {
	s := house()
	find := herePath + idOf(s.here[1].Tool)
	s.answer = mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "the program ended"}
	s.after = func() { s.here = s.here[:1] }
	v := visit(t, s, olga)
	v.want(v.ask(find, "do", "call"), 200, "the program ended", "It is not there any more")
	v.want(v.ask(find), 404)
	v.want(v.ask(find, "do", "call"), 404)
}

// TestAnswer: texts are shown as texts, pictures as what their bytes are; others are only counted.
func TestAnswer(t *testing.T) {
	png := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 64)...)
	svg := []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)
	s := house()
	s.answer = mcp.ActionResponse{Action: mcp.ActionTypeReqLLM, Result: []any{"look: <i>", mcp.Image{MIMEType: "image/svg+xml", Data: png}, mcp.Image{MIMEType: "image/png", Data: svg}}}
	v := visit(t, s, anna)
	lamp := onPath + "m1/" + idOf(s.tools["m1"][1].Tool)
	body := v.want(v.ask(lamp, "do", "call"), 200, "look: &lt;i&gt;", `src="data:image/png;base64,iVBORw0K`, "Pictures that cannot be shown: 1.")
	if n := strings.Count(body, "<img"); n != 1 {
		t.Errorf("%d pictures", n)
	}
	s.answer = mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "the lamp is gone"}
	v.want(v.ask(lamp, "do", "call"), 200, "the lamp is gone", "state bad")
	s.answer, s.invalid = mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "x"}, `argument "volume": no`
	v.want(v.ask(lamp, "do", "call"), 422, "do not allow this")
	s.answer, s.invalid = mcp.ActionResponse{Action: mcp.ActionTypeNone}, ""
	v.want(v.ask(lamp, "do", "call"), 200, "has nothing to say")
}

// TestServers: each way in which a server fails has words of its own.
func TestServers(t *testing.T) {
	s := house()
	s.servers = []external.Status{
		{Name: "empty", Phase: external.Connected, From: external.InFile, Transport: external.HTTP},
		{Name: "veiled", Phase: external.Connected, Listed: 4, From: external.InSettings, Transport: external.HTTP},
		{Name: "mute", Phase: external.Waiting, Trouble: external.Unanswered, Error: "no answer in 15s", From: external.InSettings, Transport: external.SSE},
		{Name: "dead", Phase: external.Waiting, Trouble: external.Exited, Error: "exit status 3", Lines: []string{"no such folder: <b>"}, From: external.InSettings, Transport: external.Stdio},
		{Name: "away", Phase: external.Waiting, Trouble: external.Unreachable, Error: "connection refused", From: external.InSettings, Transport: external.HTTP},
		{Name: "good", Phase: external.Connected, Tools: 3, Listed: 5, Restarts: 2, From: external.DialledIn, Transport: external.WebSocket, Device: "m1", Lines: []string{"hello"}},
		{Name: "wrong", Phase: external.LeftOut, Trouble: external.Failed, Error: "there is neither a command nor a url", From: external.InFile},
	}
	v := visit(t, s, olga)
	v.want(v.ask(serversPath), 200, "offers 0 tools", "hides all of its tools", "never answered initialize", "no answer in 15s", "Its program ended", "no such folder: &lt;b&gt;",
		"Nothing answers at its address", "connection refused", "Tools: 3", "of 5", "neither a command", "Reconnects: 2", "only for m1", `data-topic="tool-servers"`)
	v.want(v.ask(serversPath+"?q=no+such+folder"), 200, "Nothing matches your search.")
	v.want(v.ask(serversPath+"?q=GOOD"), 200, `value="GOOD"`, "<h2>good</h2>")
	v.want(v.ask(serversPath, "do", "test", "server", "good"), 200, "good answers. Tools: 5, in 12 ms.")
	v.want(v.ask(serversPath, "do", "test", "server", "empty"), 200, "offers 0 tools")
	v.want(v.ask(serversPath, "do", "test", "server", "nobody"), 200, "did not answer as it should")
	s.tested = errTestTime
	v.want(v.ask(serversPath, "do", "test", "server", "mute"), 200, "did not answer as it should", "no answer within 10 s")
	s.tested = nil
	if w := v.ask(serversPath, "do", "restart", "server", "dead"); w.Code != 303 || w.Header().Get("Location") != serversPath {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	v.want(v.ask(serversPath, "do", "restart", "server", "nobody"), 422, "no such server")
	v.want(v.ask(serversPath, "do", "else"), 404)
	s.servers = nil
	v.want(v.ask(serversPath), 200, "No server of tools is set up")
}

// TestCalls: the log is filtered by what is asked for, members see that of their own devices.
func TestCalls(t *testing.T) {
	s := house()
	at := time.Now().Add(-time.Minute)
	s.calls = store.CallList{Calls: []store.Call{
		{ID: "1", DeviceID: "m1", At: at, Caller: "model", Name: "self.lamp.set", Source: "device", Kind: "control", Arguments: `{"on":true}`, Result: "ok", Took: 30 * time.Millisecond},
		{ID: "2", At: at, Caller: "console", Name: "find", Source: "external:maps", Kind: "query", Fault: "error", Took: time.Second},
		{ID: "3", At: at, Caller: "model", Name: "on", Source: "iot", Kind: "control", Fault: "error", Late: true, ArgumentsDigest: "a1", ResultDigest: "b2"},
		{ID: "4", At: at, Caller: "model", Name: "on", Source: "iot", Kind: "control", Fault: "error", Refusal: "invalid"},
	}, Next: store.Cursor{At: time.UnixMilli(1700000000123), ID: "2"}}
	v := visit(t, s, olga)
	v.want(v.ask(callsPath+"?tool=lamp&source=external&device=M1&failed=1"), 200, "kitchen", "by the model", "30 ms", "by somebody here", "failed", "{&#34;on&#34;:true}", "before=1700000000123-2")
	if want := (store.CallFilter{Tool: "lamp", Source: "external:", Device: "m1", Failed: true}); s.asked != want {
		t.Errorf("asked for %+v, want %+v", s.asked, want)
	}
	v.want(v.ask(callsPath), 200, "failed late", "wrong arguments", "Since the start of the server", `<th scope="row">Speaker</th><td class="n">2</td><td class="n">1</td><td class="n">1</td><td class="n">0</td>`, "no yes 1")
	program(t, s, account.Person{Role: account.Viewer}).want("GET /api/v1/tools/counts", "", 200, `{"source":"device","calls":2,"failed":1,"late":1,"refused":{"busy":0`, `"source":"none"`)
	v.want(v.ask(callsPath+"?before=x"), 400, "There is no such place in the list")
	s.calls = store.CallList{}
	v.want(v.ask(callsPath), 200, "No call was kept yet")
	v.want(v.ask(callsPath+"?failed=1"), 200, "No call is like this")
	v.who = anna
	v.want(v.ask(callsPath+"?device=m2"), 200)
	if strings.Contains(v.want(v.ask(callsPath), 200), "Since the start") {
		t.Error("a member is shown the calls of all")
	}
	if s.asked.Owner != "a" {
		t.Errorf("a member asked for %+v", s.asked)
	}
}

// manySource is a source of tools.
type manySource struct {
	mcp.Source
	tools []mcp.Tool
}

func (s manySource) GetAvailableTools() []mcp.Tool { return s.tools }

// TestReasons: all reasons that routers give have words of their own, in both languages.
func TestReasons(t *testing.T) {
	yes := true
	tool := func(source, name string, change func(*mcp.Tool)) mcp.Tool {
		l := mcp.Tool{Name: name, Source: source, Schema: json.RawMessage(`{}`)}
		if change != nil {
			change(&l)
		}
		return l
	}
	all := router.New(router.Options{
		Rules: router.Rules{Deny: []string{"denied"}, Confirm: []string{"open_*"}}, Kinds: map[string]mcp.Kind{"chosen": mcp.Control},
	}, manySource{tools: []mcp.Tool{
		tool("local", "said", func(t *mcp.Tool) { t.Kind = mcp.Query }), tool("local", "chosen", nil), tool("local", "hint", func(t *mcp.Tool) { t.Annotations.ReadOnly = &yes }),
		tool("local", "set_it", nil), tool("local", "other", nil), tool("local", "open_door", nil), tool("external:x", "wipe", func(t *mcp.Tool) { t.Annotations.Destructive = &yes }),
		tool("external:x", "buy", nil), tool("device", "denied", nil), tool("device", "reset", func(t *mcp.Tool) { t.Annotations.Audience = []string{"user"} }),
		tool("local", "double", func(t *mcp.Tool) { t.When = func([]mcp.Tool) bool { return false } }),
	}})
	defer all.Close()
	want := map[string][3]string{
		"said": {"tools/why-declared"}, "chosen": {"tools/why-setting chosen"}, "hint": {"tools/why-hint"}, "set_it": {"tools/why-name set"}, "other": {"tools/why-default"},
		"open_door": {"tools/why-name open", "tools/asks-setting open_*"}, "wipe": {"", "tools/asks-destroys"}, "buy": {"", "tools/asks-stranger"},
		"denied": {"", "", "tools/hidden-deny denied"}, "reset": {"", "", "tools/hidden-people"}, "double": {"", "", "tools/hidden-replaced"},
	}
	words := func(r Reason) string { return strings.TrimSpace(r.ID + " " + r.Of) }
	for _, l := range all.Survey() {
		w, w3 := rowOf(l, "", "", "en"), want[l.Tool.Name]
		if w3[0] != "" && words(w.KindWhy()) != w3[0] || (w3[1] != "") != (l.Asks != "") || w3[1] != "" && words(w.AsksWhy()) != w3[1] ||
			(w3[2] != "") != (l.Hidden != "") || w3[2] != "" && words(w.HiddenWhy()) != w3[2] {
			t.Errorf("%s: %v %v %v", l.Tool.Name, w.KindWhy(), w.AsksWhy(), w.HiddenWhy())
		}
		delete(want, l.Tool.Name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

// TestForPeople: a tool that is meant for people is marked as such, and called by a person under its own name.
func TestForPeople(t *testing.T) {
	s := house()
	v := visit(t, s, olga)
	reboot := onPath + "m1/" + idOf(s.tools["m1"][3].Tool)
	v.want(v.ask(path), 200, "For people only", "The model cannot call it; you can, here.")
	v.want(v.ask(reboot), 200, "For people only", `name="do" value="call"`)
	v.want(v.ask(reboot, "do", "call"), 200, `id="answer"`)
	if c := s.called; len(c) != 1 || c[0].Name != "self.reboot" || !c[0].Person || s.on[0] != "m1" {
		t.Errorf("called %+v", c)
	}
	v.want(v.ask(onPath+"m1/"+idOf(s.tools["m1"][2].Tool), "do", "call"), 422) // what is denied is for nobody
	call := "POST /api/v1/devices/m1/tools/" + idOf(s.tools["m1"][3].Tool) + "/call"
	for name, who := range map[string]account.Person{
		"a member":                   anna,
		"a token that calls tools":   {ID: "o", Role: account.Owner, Scopes: []account.Scope{account.Read, account.Tools}},
		"a member's that does all":   {ID: "a", Role: account.Member, Scopes: []account.Scope{account.Admin}},
		"an owner's token for all":   {ID: "o", Role: account.Owner, Scopes: []account.Scope{account.Admin}},
		"an owner who has logged in": olga,
	} {
		s.called = nil
		may, status := who.Role == account.Owner && !slices.Contains(who.Scopes, account.Tools), 403
		if may {
			status = 200
		}
		t.Run(name, func(t *testing.T) {
			program(t, s, who).want(call, "", status)
			if may != (len(s.called) == 1 && s.called[0].Person && s.called[0].Name == "self.reboot") {
				t.Errorf("called %+v", s.called)
			}
		})
	}
	program(t, s, olga).want("GET /api/v1/tools", "", 200, `"name":"self.reboot","source":"device","device":"m1","kind":"control","why":"its name begins with reboot","timeout_ms":0,"hidden":"people"`)
}

// TestLogin: an owner logs in to a server by a link, and comes back by the browser or by the address that it was led to.
// An answer to no login changes nothing.
func TestLogin(t *testing.T) {
	s := house()
	s.servers = []external.Status{
		{Name: "maps", Phase: external.Waiting, Trouble: external.Login, Error: "401", MoreAsked: true, From: external.InSettings, Transport: external.HTTP},
		{Name: "mail", Phase: external.Connected, Tools: 2, Listed: 2, LoggedIn: true, MoreAsked: true, Transport: external.HTTP, Resources: 4, Prompts: 1},
	}
	v := visit(t, s, olga)
	v.want(v.ask(serversPath), 200, "Wants a login", "somebody must allow it once", `value="login"`, `value="logout"`, "wants more rights", "Resources: 4, prompts: 1")
	far := v.want(v.ask(serversPath, "do", "login", "server", "maps"), 200, "Log in at login.example", "address of your own machine", `rel="noopener noreferrer"`)
	if !strings.Contains(far, url.QueryEscape("http://127.0.0.1/console/tools/servers/login")) {
		t.Errorf("led to\n%s", far)
	}
	near := v.want(v.ask("http://localhost:8000"+serversPath, "do", "login", "server", "maps"), 200, "comes back here by itself")
	if !strings.Contains(near, url.QueryEscape("http://localhost:8000/console/tools/servers/login")) {
		t.Errorf("led to\n%s", near)
	}
	v.want(v.ask(serversPath, "do", "login", "server", "nobody"), 422, "no such server")
	for _, w := range []*httptest.ResponseRecorder{
		v.ask(loginPath, "address", loginPath+"?state=s1&code=c"), v.ask(loginPath, "address", "http://127.0.0.1/console/tools/servers/login?state=s1&code=c"), v.ask(serversPath, "do", "logout", "server", "mail"),
	} {
		if w.Code != 303 || w.Header().Get("Location") != serversPath {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
	v.want(v.ask(loginPath+"?state=s1&code=c"), 200, "One step is left", `value="/console/tools/servers/login?code=c&amp;state=s1"`)
	v.want(v.ask(loginPath), 200, "Finish the login")
	v.want(v.ask(loginPath, "address", loginPath+"?state=other&code=c"), 422, "no login that was begun here")
	v.want(v.ask(loginPath, "address", "https://login.example/"), 422, "no address that a login leads to")
	s.tested = fmt.Errorf("the login was refused: access_denied (<b>%s)", strings.Repeat("x", 1000))
	if body := v.want(v.ask(loginPath, "address", loginPath+"?state=s1&error=access_denied"), 422, "The login failed", "access_denied", "&lt;b&gt;"); strings.Contains(body, strings.Repeat("x", 500)) {
		t.Error("the words of the server are shown whole")
	}
}
