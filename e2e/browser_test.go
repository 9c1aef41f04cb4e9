package e2e

import (
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/browsertest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/speechtest"
)

// The browser of all journeys hears one sentence again and again while a page has the microphone open.
const heardByBrowser = "vm-msgsaved"

var (
	browser = sync.OnceValues(func() (*browsertest.Browser, error) {
		clip, err := spokenClip()
		if err != nil {
			return nil, err
		}
		browserStarted = true
		return browsertest.Start(clip.PCM())
	})
	browserStarted bool // of testMain, when no test runs any more
)

// spokenClip is that sentence.
func spokenClip() (speechtest.Clip, error) {
	clips, err := speechtest.Prompts()
	if err != nil {
		return speechtest.Clip{}, err
	}
	at := slices.IndexFunc(clips, func(c speechtest.Clip) bool { return strings.Contains(c.Name, heardByBrowser) })
	if at < 0 {
		return speechtest.Clip{}, errors.New("no clip " + heardByBrowser)
	}
	return clips[at], nil
}

// endBrowser ends the one that tests have started.
func endBrowser() {
	if browserStarted {
		if b, err := browser(); err == nil {
			b.Close()
		}
	}
}

// consoleServer is a server with an owner, whose pages are looked at. Its recogniser knows the sentence of the browser only,
// and forgives what a busy machine drops of it.
var consoleServer = sharedServer{setup: func() (setup, error) {
	clip, err := spokenClip()
	if err != nil {
		return setup{}, err
	}
	cloud, err := openaitest.New() // ends with the process
	if err != nil {
		return setup{}, err
	}
	cloud.Handle(openaitest.Transcribe, knowing(clip))
	return setup{speaks: true, config: "asr: [ears]\nproviders: {ears: {type: openai, base_url: '" + cloud.URL() + "', api_key: none, asr_model: ears}}\n"}, nil
}}

// console opens a tab of the owner at a host, which is one of this machine.
func console(t *testing.T, host, path string, lasts time.Duration) *browsertest.Tab {
	t.Helper()
	b := browsertest.Need(t, browser)
	s := consoleServer.use(t)
	consoleServer.owned.Do(func() { consoleServer.owner = s.own(limit(t), t) })
	s.waitReady(limit(t), t)
	tab := b.Tab(t, lasts)
	show(tab, consoleServer.owner, host)
	tab.Go(s.at(host) + path)
	return tab
}

// show gives a tab the cookie of a session at a host.
func show(tab *browsertest.Tab, cookie, host string) {
	name, value, _ := strings.Cut(cookie, "=")
	tab.Cookie(host, name, value)
}

// at is the address of the server under another name of this machine.
func (s *server) at(host string) string {
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(s.base(), "http://"))
	return "http://" + net.JoinHostPort(host, port)
}
