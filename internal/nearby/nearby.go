// Package nearby knows which addresses are of this machine and of networks at home, and which of those nobody may have the
// server ask: where machines find their own settings. Every other package asks here.
package nearby

import (
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Is reports whether an address is of this machine or of a private network.
func Is(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast()
}

// IsHost is [Is] of an address that is written without a port. A name is none.
func IsHost(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && Is(a)
}

// inner are ranges that lead to this machine or its networks too, or nowhere, some of them by a gateway between IPv4 and
// IPv6.
var inner = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32",
)

// NotPublic reports whether an address cannot be one of the Internet.
func NotPublic(a netip.Addr) bool {
	a = a.Unmap()
	return !a.IsValid() || Is(a) || a.IsMulticast() || a.IsUnspecified() || contains(inner, a)
}

// doors are where machines of clouds find their own settings and keys: beside the link-local addresses those of Alibaba,
// Oracle, Azure and Amazon.
var doors = prefixes("100.100.100.200/32", "192.0.0.192/32", "168.63.129.16/32", "fd00:ec2::254/128", "fd20:ce::254/128")

// IsDoor reports whether an address is one at which machines find their own settings: a link-local one, also where a
// gateway between IPv4 and IPv6 stands in between, or one of a cloud. No service of people is there.
func IsDoor(a netip.Addr) bool {
	a = embedded(a.WithZone("").Unmap())
	return a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast() || a.IsMulticast() || contains(doors, a)
}

// IsDoorHost is [IsDoor] of a host as it is typed: an address written in any way that resolvers read. A name is none.
func IsDoorHost(host string) bool {
	host = strings.TrimSuffix(host, ".")
	a, err := netip.ParseAddr(host)
	if err != nil {
		a = numbered(host)
	}
	return IsDoor(a)
}

// ErrDoor says that an address is not asked.
var ErrDoor = errors.New("link-local addresses and those of cloud metadata are not asked: machines find their own settings there")

// Careful is the Control of a net.Dialer that connects to no door: it sees the address after the name was resolved.
func Careful(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || IsDoor(at.Addr()) { // an address that cannot be read is none to trust
		return ErrDoor
	}
	return nil
}

// embedded returns the IPv4 address to which a gateway leads (NAT64, 6to4), or the address as it is.
func embedded(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	b := a.As16()
	switch {
	case netip.MustParsePrefix("64:ff9b::/96").Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	case netip.MustParsePrefix("2002::/16").Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

// numbered reads an address of one to four numbers, each decimal, octal or hexadecimal, as resolvers do; the zero address: it
// is none.
func numbered(host string) netip.Addr {
	parts := strings.Split(host, ".")
	if len(parts) > 4 {
		return netip.Addr{}
	}
	var all uint64
	for i, part := range parts {
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts)) // the last number fills what is left
		}
		n, err := strconv.ParseUint(part, 0, bits)
		if err != nil {
			return netip.Addr{}
		}
		all = all<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(all >> 24), byte(all >> 16), byte(all >> 8), byte(all)})
}

func prefixes(all ...string) (out []netip.Prefix) {
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func contains(all []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(all, func(p netip.Prefix) bool { return p.Contains(a) })
}
