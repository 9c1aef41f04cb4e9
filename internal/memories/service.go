package memories

import (
	"fmt"
	"net/url"

	"xiaozhi/internal/config"
	"xiaozhi/memory/hosted"
	"xiaozhi/memory/mem0"
	"xiaozhi/memory/memobase"
)

// ServiceOf makes the memory service of the settings; nil: there is none.
func ServiceOf(c config.Memory) (service hosted.Service, err error) {
	account := hosted.Account{Name: c.Engine, BaseURL: c.BaseURL, Key: c.APIKey, Proxy: c.Proxy}
	own := c.BaseURL != ""
	for _, cloud := range []string{mem0.Cloud, memobase.Cloud} {
		own = own && !sameHost(c.BaseURL, cloud)
	}
	switch c.Engine {
	case config.Mem0:
		service, err = mem0.New(mem0.Options{Account: account, Own: own})
	case config.Memobase:
		service, err = memobase.New(memobase.Options{Account: account, Own: own})
	}
	if err != nil {
		return nil, fmt.Errorf("memory: %w", err)
	}
	return service, nil
}

// sameHost reports whether two addresses are of one host.
func sameHost(a, b string) bool {
	first, err := url.Parse(a)
	second, other := url.Parse(b)
	return err == nil && other == nil && first.Hostname() == second.Hostname()
}
