package nearby

import (
	"errors"
	"net/netip"
	"testing"
)

// TestDoorsAsTyped reads addresses as resolvers do.
func TestDoorsAsTyped(t *testing.T) {
	for host, want := range map[string]bool{
		"169.254.169.254": true, "169.254.169.254.": true, "::ffff:169.254.1.1": true, "fe80::1": true, "fe80::1%eth0": true, "2852039166": true,
		"0xA9FEA9FE": true, "0251.0376.0251.0376": true, "169.254.43518": true, "169.16689662": true, "224.0.0.251": true,
		"100.100.100.200": true, "fd00:ec2::254": true, "fd00:0ec2:0:0::254": true, "192.0.0.192": true, "168.63.129.16": true,
		"64:ff9b::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true, "64:ff9b::6464:64c8": true,
		"192.168.1.10": false, "127.0.0.1": false, "2130706433": false, "example.com": false, "1.2.3.4.5": false, "": false, "a.254.1.1": false, "fd00::1": false,
		"100.100.100.201": false, "64:ff9b::808:808": false, "::1": false,
	} {
		if got := IsDoorHost(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

// TestCareful looks at what is dialled.
func TestCareful(t *testing.T) {
	for address, want := range map[string]bool{
		"169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "[fd00:ec2::254]:80": false, "100.100.100.200:80": false, "somewhere:80": false,
		"127.0.0.1:80": true, "192.168.1.10:11434": true, "[::1]:80": true, "1.1.1.1:443": true,
	} {
		if err := Careful("tcp", address, nil); (err == nil) != want || err != nil && !errors.Is(err, ErrDoor) {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestNear tells homes from the Internet.
func TestNear(t *testing.T) {
	for host, want := range map[string][2]bool{ // at home, not public
		"127.0.0.1": {true, true}, "::ffff:192.168.1.1": {true, true}, "fe80::1": {true, true}, "fd12::1": {true, true}, "100.64.0.1": {false, true},
		"0.0.0.0": {false, true}, "2002:7f00:1::": {false, true}, "8.8.8.8": {false, false}, "2606:4700::1": {false, false}, "172.32.0.1": {false, false},
	} {
		a := netip.MustParseAddr(host)
		if got := [2]bool{Is(a), NotPublic(a)}; got != want || IsHost(host) != want[0] {
			t.Errorf("%s: %v", host, got)
		}
	}
	if IsHost("home.lan") || !NotPublic(netip.Addr{}) {
		t.Error("a name is no address, and no address none of the Internet")
	}
}
