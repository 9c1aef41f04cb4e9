package browsertest

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// hearing looks 50 times a second at what a page gives to the loudspeaker, and at what it gets from the microphone: when
// a sentence began and when the last of it was heard.
const hearing = `(() => {
  const sound = window.__sound = { arrived: 0, begun: 0, first: 0, last: 0, peak: 0, loud: 0 };
  const said = window.__said = { begun: 0, last: 0 };
  const open = AudioContext.prototype.createMediaStreamSource;
  AudioContext.prototype.createMediaStreamSource = function (stream) {
    const source = open.call(this, stream), ear = new AnalyserNode(this, { fftSize: 2048 }), window = new Float32Array(2048);
    connect.call(source, ear);
    setInterval(() => {
      ear.getFloatTimeDomainData(window);
      if (!window.some((v) => Math.abs(v) > 0.02)) { return; }
      const now = performance.now();
      if (now - said.last > 500) { said.begun = now; }
      said.last = now;
    }, 20);
    return source;
  };
  window.WebSocket = class extends WebSocket {
    constructor(...how) {
      super(...how);
      this.addEventListener("message", ({ data }) => { if (typeof data !== "string") { sound.arrived ||= performance.now(); } });
    }
  };
  const connect = AudioNode.prototype.connect;
  AudioNode.prototype.connect = function (to, ...rest) {
    if (to instanceof AudioDestinationNode) {
      const ear = new AnalyserNode(this.context, { fftSize: 1024 }), window = new Float32Array(1024);
      connect.call(this, ear);
      setInterval(() => {
        ear.getFloatTimeDomainData(window);
        const peak = window.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
        if (peak > 0) { sound.begun ||= performance.now(); }
        if (peak > 0.01) { sound.last = performance.now(); sound.first ||= sound.last; sound.loud += 20; }
        sound.peak = Math.max(sound.peak, peak);
      }, 20);
    }
    return connect.call(this, to, ...rest);
  };
  addEventListener("securitypolicyviolation", (e) => console.error("CSP: " + e.violatedDirective + " " + e.blockedURI));
})()`

// expected are parts of what Chromium complains of and no page can help: headers that it takes from trusted origins only, and
// forms that come back with a mistake.
var expected = []string{
	"The Cross-Origin-Opener-Policy header has been ignored, because the URL's origin was untrustworthy", "Clear-Site-Data header",
	"the server responded with a status of 422",
}

// patience is how long something may take that a person would wait for. A busy machine takes its time.
const patience = 30 * time.Second

// How long Await waits until it looks again: first and at most. Each look takes a millisecond of three processes.
const (
	soonest = 10 * time.Millisecond
	latest  = 100 * time.Millisecond
)

// Tab is a page with cookies of its own. It is for one goroutine, and fails its test where something cannot be done.
type Tab struct {
	tb  testing.TB
	ctx context.Context

	mu      sync.Mutex
	foreign []string
	trouble []string
	asked   map[network.RequestID]*Asked
}

// Tab opens one for a test, which ends with it.
func (b *Browser) Tab(tb testing.TB, limit time.Duration) *Tab {
	tb.Helper()
	t := &Tab{tb: tb}
	ctx, stop := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(t.note))
	t.ctx = ctx
	tb.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil { // without a limit, which would be that of the page
		tb.Fatalf("browser: %v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	t.ctx = ctx
	tb.Cleanup(cancel)
	t.Do(
		command(network.Enable, network.EnableParams{}), command(log.Enable, cdp.Empty{}),
		command(page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: hearing}),
	)
	return t
}

// command is an action that sends one command.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, t, c, params)
		return chromedp.Void{}, err
	}
}

// value evaluates an expression.
func value[T any](t *Tab, expression string) T {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.tb.Fatalf("browser: %s: %v%s", expression, err, t.shown())
	}
	return v
}

// note keeps what a test wants to know of what happened.
func (t *Tab) note(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		t.went(e.Request.URL)
		if u, err := url.Parse(e.Request.URL); err == nil && t.asked != nil {
			t.asked[e.RequestID] = &Asked{Path: u.Path, Kind: e.Type}
		}
	case *network.EventRequestServedFromCache:
		if asked := t.asked[e.RequestID]; asked != nil {
			asked.Cached, asked.come = true, true
		}
	case *network.EventResponseReceived:
		if asked := t.asked[e.RequestID]; asked != nil {
			asked.Cached, asked.come = asked.Cached || e.Response.FromDiskCache, true
		}
	case *network.EventLoadingFailed:
		if asked := t.asked[e.RequestID]; asked != nil {
			asked.come = true
		}
	case *network.EventDataReceived:
		if asked := t.asked[e.RequestID]; asked != nil {
			asked.Size += int64(e.DataLength)
		}
	case *network.EventWebSocketCreated:
		t.went(e.URL)
	case *page.EventJavascriptDialogOpening:
		t.trouble = append(t.trouble, "a dialog: "+e.Message)
	case *runtime.EventExceptionThrown:
		t.trouble = append(t.trouble, exceptionText(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			var all []string
			for _, arg := range e.Args {
				all = append(all, string(arg.Value)+arg.Description)
			}
			t.trouble = append(t.trouble, strings.Join(all, " "))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError && !slices.ContainsFunc(expected, func(part string) bool { return strings.Contains(e.Entry.Text, part) }) {
			t.trouble = append(t.trouble, e.Entry.Text+" "+e.Entry.URL)
		}
	}
}

// went notes a request that leaves this machine.
func (t *Tab) went(address string) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost" || u.Hostname() == PlainHost {
		return
	}
	t.foreign = append(t.foreign, address)
}

// Clean fails the test if the page has asked another host for something, or an error was told in its console.
func (t *Tab) Clean() {
	t.tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, address := range t.foreign {
		t.tb.Errorf("a request went to %s", address)
	}
	for _, what := range t.trouble {
		t.tb.Errorf("the browser complains: %s", what)
	}
}

// Trouble tells what the browser has complained of.
func (t *Tab) Trouble() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Concat(t.trouble, t.foreign)
}

// Do carries out actions.
func (t *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.tb.Fatalf("browser: %v%s", err, t.shown())
	}
}

// shown is the address and the text of the page, for a test that has failed.
func (t *Tab) shown() string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 2*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + document.body?.innerText.slice(0, 1500)`))
	if err != nil {
		text = err.Error()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("\nthe page shows:\n%s\n%q", text, t.trouble)
}

// Cookie sets one for a host.
func (t *Tab) Cookie(host, name, content string) {
	t.tb.Helper()
	only := true
	t.Do(command(network.SetCookie, network.SetCookieParams{Name: name, Value: content, Domain: host, Path: "/", HTTPOnly: &only}))
}

// Go opens an address.
func (t *Tab) Go(address string) {
	t.tb.Helper()
	t.Do(chromedp.Navigate(address))
}

// Number evaluates an expression.
func (t *Tab) Number(expression string) float64 { t.tb.Helper(); return value[float64](t, expression) }

// Text evaluates an expression.
func (t *Tab) Text(expression string) string { t.tb.Helper(); return value[string](t, expression) }

// Await waits until an expression is true, also in a page that comes after this one, and where scripts do not run.
func (t *Tab) Await(expression string) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	for pause := soonest; ; pause = min(pause*3/2, latest) {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		if ctx.Err() != nil || err != nil && !left(err) {
			t.tb.Fatalf("browser: waiting for %s: %v%s", expression, err, t.shown())
		}
		if ok {
			return
		}
		time.Sleep(pause) // a process of its own
	}
}

// left reports whether something failed because its page was left.
func left(err error) bool {
	for _, part := range []string{"context was destroyed", "Cannot find context", "navigated", "uniqueContextId", "Promise was collected"} {
		if strings.Contains(err.Error(), part) {
			return true
		}
	}
	return false
}

// Click presses an element shortly. It looks for it again if the part of the page that holds it was shown anew meanwhile.
func (t *Tab) Click(selector string) {
	t.tb.Helper()
	t.on(selector, chromedp.Click(chromedp.CSS(selector)))
}

// on does something to an element, again if that was exchanged for a newer one in between.
func (t *Tab) on(selector string, do chromedp.Action[chromedp.Void]) {
	t.tb.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	for {
		err := chromedp.Do(ctx, do)
		if err == nil {
			return
		}
		if ctx.Err() != nil || !exchanged(err) {
			t.tb.Fatalf("browser: %s: %v%s", selector, err, t.shown())
		}
	}
}

// exchanged reports whether something failed because its element was no longer there.
func exchanged(err error) bool {
	for _, part := range []string{"Could not find node with given id", "does not have a layout object", "is detached from document"} {
		if strings.Contains(err.Error(), part) {
			return true
		}
	}
	return false
}

// Type types into an element.
func (t *Tab) Type(selector, text string) {
	t.tb.Helper()
	t.on(selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Focus gives an element the keys, with the same patience as Click.
func (t *Tab) Focus(selector string) {
	t.tb.Helper()
	t.on(selector, chromedp.Focus(chromedp.CSS(selector)))
}

// Hold presses an element with the pointer; release lets it go.
func (t *Tab) Hold(selector string) (release func()) {
	t.tb.Helper()
	t.on(selector, chromedp.ScrollIntoView(chromedp.CSS(selector)))
	x := t.Number(fmt.Sprintf("(r => r.x + r.width / 2)(document.querySelector(%q).getBoundingClientRect())", selector))
	y := t.Number(fmt.Sprintf("(r => r.y + r.height / 2)(document.querySelector(%q).getBoundingClientRect())", selector))
	mouse := func(kind input.DispatchMouseEventType) {
		t.tb.Helper()
		t.Do(command(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, ClickCount: 1}))
	}
	mouse(input.DispatchMouseEventTypeMousePressed)
	return func() { mouse(input.DispatchMouseEventTypeMouseReleased) }
}

// HoldKey presses a key where the focus is; release lets it go.
func (t *Tab) HoldKey(key, code string) (release func()) {
	t.tb.Helper()
	press := func(kind input.DispatchKeyEventType) {
		t.tb.Helper()
		e := input.DispatchKeyEventParams{Type: kind, Key: key, Code: code}
		if kind == input.DispatchKeyEventTypeKeyDown && len(key) == 1 {
			e.Text = key
		}
		t.Do(command(input.DispatchKeyEvent, e))
	}
	press(input.DispatchKeyEventTypeKeyDown)
	return func() { press(input.DispatchKeyEventTypeKeyUp) }
}

// exceptionText says what a script has thrown.
func exceptionText(e *runtime.ExceptionDetails) string {
	if e.Exception != nil {
		return e.Exception.Description
	}
	return e.Text
}

// Begun tells how long after its first packet had arrived the first sound went to the loudspeaker, in ms, to 20 ms.
func (t *Tab) Begun() float64 {
	t.tb.Helper()
	return value[float64](t, "__sound.begun - __sound.arrived")
}

// Spoken waits until the microphone has heard a whole sentence that began after now.
func (t *Tab) Spoken() {
	t.tb.Helper()
	now := value[float64](t, "performance.now()")
	t.Await(fmt.Sprintf("__said.begun > %f && performance.now() - __said.last > 600", now))
}

// Deaf forgets what was heard.
func (t *Tab) Deaf() {
	t.tb.Helper()
	value[float64](t, `Object.assign(__sound, { arrived: 0, begun: 0, first: 0, last: 0, loud: 0, peak: 0 }), 0`)
}

// Screen gives the page a size, and the theme that the system has.
func (t *Tab) Screen(width, height int64, dark bool) {
	t.tb.Helper()
	theme := "light"
	if dark {
		theme = "dark"
	}
	t.Do(
		command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1}),
		command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}}}),
	)
}

// Picture is the whole page, as PNG.
func (t *Tab) Picture() []byte {
	t.tb.Helper()
	picture, err := chromedp.Run(t.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.tb.Fatalf("browser: %v", err)
	}
	return picture
}
