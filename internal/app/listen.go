package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"xiaozhi/internal/text/message"
)

// listenAll opens every address or none of them. ctx is about the opening only.
func listenAll(ctx context.Context, addrs []string) ([]net.Listener, error) {
	var out []net.Listener
	var how net.ListenConfig
	for _, addr := range addrs {
		l, err := how.Listen(ctx, "tcp", addr)
		if err != nil {
			for _, open := range out {
				open.Close()
			}
			return nil, explainListen(addr, err)
		}
		out = append(out, l)
	}
	return out, nil
}

// explainListen names the process that holds a port, where the system tells.
func explainListen(addr string, err error) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s: %w", message.Both("app/cannot-listen", addr), err)
	}
	_, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	if who := portHolder("/proc", n); who != "" {
		return errors.New(message.Both("app/port-taken-by", port, who) + " (server.listen, --listen)")
	}
	return errors.New(message.Both("app/port-taken", port) + " (server.listen, --listen)")
}

// portHolder returns the name and id of the process that listens on a TCP port, from
// Linux's proc file system; "" when it does not tell.
func portHolder(proc string, port int) string {
	inodes := map[string]bool{}
	for _, file := range []string{"net/tcp", "net/tcp6"} {
		table, err := os.ReadFile(filepath.Join(proc, file))
		if err != nil {
			continue
		}
		for line := range strings.SplitSeq(string(table), "\n") {
			f := strings.Fields(line)
			const listening = "0A"
			if len(f) < 10 || f[3] != listening {
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			if p, err := strconv.ParseInt(hex, 16, 32); err == nil && int(p) == port {
				inodes["socket:["+f[9]+"]"] = true
			}
		}
	}
	if len(inodes) == 0 {
		return ""
	}
	links, err := filepath.Glob(filepath.Join(proc, "[0-9]*", "fd", "*"))
	if err != nil {
		return ""
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err != nil || !inodes[to] {
			continue
		}
		dir := filepath.Dir(filepath.Dir(link))
		name, err := os.ReadFile(filepath.Join(dir, "comm"))
		if err != nil {
			continue
		}
		return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), filepath.Base(dir))
	}
	return ""
}

// reachable lists the host:port pairs under which a listener can be reached
// from other machines first, then from this one. Only IPv4: devices know no other.
func reachable(addr net.Addr) []string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return nil
	}
	port := strconv.Itoa(tcp.Port)
	if !tcp.IP.IsUnspecified() && tcp.IP != nil {
		return []string{net.JoinHostPort(tcp.IP.String(), port)}
	}
	var out, local []string
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return []string{net.JoinHostPort("127.0.0.1", port)}
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil || n.IP.IsLinkLocalUnicast() {
			continue
		}
		if n.IP.IsLoopback() {
			local = append(local, net.JoinHostPort(n.IP.String(), port))
		} else {
			out = append(out, net.JoinHostPort(n.IP.String(), port))
		}
	}
	return append(out, local...)
}
