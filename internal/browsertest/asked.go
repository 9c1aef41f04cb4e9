package browsertest

import (
	"time"

	"github.com/chromedp/cdproto/network"
)

// Asked is something that a page has asked for.
type Asked struct {
	Path   string
	Kind   network.ResourceType
	Size   int64 // of what came, unpacked
	Cached bool  // nothing was asked: the browser had it
	come   bool  // the beginning of it, or that there is none
}

// Asks opens an address, waits until nothing more is loaded, and tells what was asked for.
func (t *Tab) Asks(address string) (all []Asked) {
	t.tb.Helper()
	t.mu.Lock()
	t.asked = map[network.RequestID]*Asked{}
	t.mu.Unlock()
	t.Go(address)
	t.Await(`document.readyState === "complete"`)
	for until := time.Now().Add(patience); !t.allCome() && time.Now().Before(until); {
		time.Sleep(soonest) // only the answer tells whether it comes from the cache
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, asked := range t.asked {
		all = append(all, *asked)
	}
	t.asked = nil
	return all
}

// allCome reports whether everything that the page has asked for has begun to come.
func (t *Tab) allCome() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, asked := range t.asked {
		if !asked.come {
			return false
		}
	}
	return true
}
