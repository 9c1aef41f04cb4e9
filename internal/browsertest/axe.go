package browsertest

import (
	"context"
	"os"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// audit runs axe in a page: what breaks a rule, one line each.
const audit = `(() => {
  window.__axe = null;
  axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"] }).then(
    ({ violations }) => { window.__axe = { lines: violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + " – " + (n.any[0] ?? n.all[0] ?? n.none[0])?.message)) }; },
    (e) => { window.__axe = { lines: [String(e)] }; });
  return 0;
})()`

// Axe reads the rules of accessibility, axe-core, that scripts/axe.sh has fetched into a file; "" without an error: it has not.
func Axe(file string) (string, error) {
	source, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return "", nil
	}
	return string(source), err
}

// Broken tells which rules of WCAG 2.2, A and AA, the page breaks.
func (t *Tab) Broken(axe string) []string {
	t.tb.Helper()
	if value[bool](t, "!window.axe") {
		value[float64](t, axe+"; 0")
	}
	value[float64](t, audit)
	t.Await("window.__axe")
	return value[[]string](t, "window.__axe.lines")
}

// Press presses and releases one of the keys that move the focus or end something.
func (t *Tab) Press(key string, code int64) {
	t.tb.Helper()
	for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeRawKeyDown, input.DispatchKeyEventTypeKeyUp} {
		t.Do(command(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: key, Code: key, WindowsVirtualKeyCode: code}))
	}
}

// NoScript keeps pages from running their scripts from now on.
func (t *Tab) NoScript() {
	t.tb.Helper()
	t.Do(command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}))
}

// List evaluates an expression.
func (t *Tab) List(expression string) []string { t.tb.Helper(); return value[[]string](t, expression) }

// Shot is the upper left part of the page in the window, as PNG.
func (t *Tab) Shot(width, height float64) []byte {
	t.tb.Helper()
	picture, err := chromedp.Run(t.ctx, func(ctx context.Context, target *chromedp.Target) (page.CaptureScreenshotResult, error) {
		return cdp.Call(ctx, target, page.CaptureScreenshot, page.CaptureScreenshotParams{Clip: &page.Viewport{Width: width, Height: height, Scale: 1}})
	})
	if err != nil {
		t.tb.Fatalf("browser: %v", err)
	}
	return picture.Data
}

// Cold has everything asked for anew, whatever the browser has; Cold(false) no more.
func (t *Tab) Cold(cold bool) {
	t.tb.Helper()
	t.Do(command(network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: cold}))
}
