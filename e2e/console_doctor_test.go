package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"xiaozhi/internal/devicetest"
)

// TestDoctorTicksOff: the steps of a speaker tick off on an open page, one by one, from its first question to the end of a
// reply, and a link for phones does when somebody opens it.
func TestDoctorTicksOff(t *testing.T) {
	t.Parallel()
	const id = "24:6f:28:ab:12:01"
	step := func(n string, states ...string) string {
		return `[` + `"` + strings.Join(states, `","`) + `"].includes(document.querySelector('#steps ol > li:nth-child(` + n + `) .state').textContent)`
	}
	tab := console(t, loopback, "/console/doctor/"+id+"?lang=en", talkTime)
	s, ctx := consoleServer.use(t), limit(t)
	tab.Await(`document.querySelector('#steps [aria-current="step"]').textContent.includes('Switch the speaker off and on')`)
	tab.Await(`document.querySelector('[data-live-switch]').textContent === 'Live'`)
	o := devicetest.Options{DeviceID: id, ClientID: "own", Flash: &devicetest.Flash{}, Mode: devicetest.Manual, NoMCP: true, Waiting: devicetest.PollsOnce}
	o.Limits.MaxPause, o.Limits.Tolerance = 300*time.Millisecond, time.Second
	p, err := devicetest.Boot(ctx, s.ota, o, func(code string) {
		tab.Await(step("1", "done"))
		tab.Await(`document.querySelector('#steps .tag.num')?.textContent === '` + code + `'`)
		if _, err := s.order(ctx, "pair", code); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	tab.Await(step("2", "done"))
	tab.Await(`document.querySelector('#steps [aria-current="step"]').textContent.includes('say its wake word')`)
	o.URL, o.Token = p.URL, p.Token
	d, err := devicetest.Dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for _, n := range []string{"4", "5", "6"} {
		tab.Await(step(n, "done"))
	}
	ask(ctx, t, d, "what time is it")
	tab.Await(step("11", "done"))
	tab.Await(step("12", "done"))
	tab.Await(`document.querySelector('#steps [aria-current="step"]') === null`)
	tab.Clean()

	tab.Go(s.base() + "/console/doctor?lang=en")
	tab.Click(`button[value="phone"]`)
	tab.Await(`document.getElementById('phone-address')?.textContent.includes('/console/phone/')`)
	opens(ctx, t, s.base()+tab.Text(`new URL(document.getElementById('phone-address').textContent).pathname`))
	tab.Await(`document.querySelector('#phone .note')?.textContent.includes('opened on this machine itself')`)
	tab.Clean()
}

// opens asks for a page as a phone does, without logging in.
func opens(ctx context.Context, t *testing.T, address string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
}
