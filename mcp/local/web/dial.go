package web

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// dialer connects to the host's addresses. Each is looked at right before it is
// used, after its name was resolved, so that no name can lead inside.
func dialer(host string) func(ctx context.Context, network, address string) (net.Conn, error) {
	inside := namesInside(host)
	d := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		ap, err := netip.ParseAddrPort(address)
		if err != nil || (internal(ap.Addr()) && !inside) {
			return ErrInternal
		}
		return nil
	}}
	return d.DialContext
}

// namesInside reports whether a configured host is plainly one of the owner's
// own network: an address in it, localhost, or a name that no public host has.
func namesInside(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return internal(a)
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.Contains(host, ".") {
		return true
	}
	for _, end := range []string{".localhost", ".local", ".lan", ".home", ".internal", ".home.arpa"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}
