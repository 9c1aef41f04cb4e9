// Package outbound asks hosts of the world by HTTP within bounds: every address is looked at right before it is connected to, after its
// name was resolved, so that no name leads where it must not; answers have a time, their headers a size; errors name no address, which
// may hold a key.
package outbound

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"xiaozhi/internal/nearby"
)

// maxHeader is how much of the headers of an answer is read, in bytes.
const maxHeader = 64 << 10

// StatusError says that a server answered, but not with what was asked for.
type StatusError int

// Error names the status.
func (e StatusError) Error() string {
	return fmt.Sprintf("the service answered %d %s", int(e), http.StatusText(int(e)))
}

// Options configure a client. Timeout, Check and Redirect must be set.
type Options struct {
	Timeout time.Duration // of connecting, and until an answer begins
	// Check says why an address must not be connected to; nil: it may be.
	Check func(at netip.Addr) error
	// Redirect says why another address must not be asked in the place of the one before; nil: it may be.
	Redirect func(req *http.Request, via []*http.Request) error
	Keep     time.Duration           // for which a connection stays open for what is asked next; 0: none does
	Packed   bool                    // answers may be packed; else they come as they are
	Wrap     func(net.Conn) net.Conn // stands before each connection; nil: nothing does
}

// NewClient makes a client. It sets no time for a whole answer.
func NewClient(o Options) *http.Client {
	dialer := &net.Dialer{Timeout: o.Timeout, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		return o.Check(at.Addr().Unmap())
	}}
	dial := dialer.DialContext
	if o.Wrap != nil {
		dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return o.Wrap(c), nil
		}
	}
	return &http.Client{
		CheckRedirect: o.Redirect,
		Transport: &http.Transport{
			DialContext:            dial,
			DisableKeepAlives:      o.Keep == 0,
			DisableCompression:     !o.Packed,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        o.Keep,
			TLSHandshakeTimeout:    o.Timeout,
			ResponseHeaderTimeout:  o.Timeout,
			MaxResponseHeaderBytes: maxHeader,
		},
	}
}

// Plain is err without the address that was asked, which may hold a key.
func Plain(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// NamesHome reports whether a host is plainly one of the owner's own network: an address in it, localhost, or a name that no public
// host has.
func NamesHome(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return nearby.NotPublic(a)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ends := []string{".localhost", ".local", ".lan", ".home", ".internal", ".home.arpa"}
	return !strings.Contains(host, ".") || slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(host, end) })
}
