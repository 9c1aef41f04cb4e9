package app

import (
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
)

func TestListenNamesPortHolder(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	taken := fmt.Sprintf("127.0.0.1:%d", port)
	if _, err = listenAll(t.Context(), []string{"127.0.0.1:0", taken}); err == nil {
		t.Fatal("a taken port was no error")
	}
	for _, want := range []string{fmt.Sprint(port), "server.listen", "端口"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if _, statErr := os.Stat("/proc/self/fd"); statErr == nil && !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("%q does not name this process", err)
	}
}

func TestReachable(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := reachable(l.Addr())
	if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "127.0.0.1:") {
		t.Errorf("reachable(%s) = %v", l.Addr(), got)
	}
	one := reachable(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000})
	if len(one) != 1 || one[0] != "127.0.0.1:8000" {
		t.Errorf("a bound address: %v", one)
	}
}
