package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/certificate"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
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

// bases lists the addresses of the server, that of the public first, then those in its networks.
func bases(cfg *config.Config, at []net.Addr) (all []string) {
	if cfg.Server.PublicURL != "" {
		public := strings.TrimRight(cfg.Server.PublicURL, "/")
		if rest, ok := strings.CutPrefix(public, "ws"); ok { // ws and wss are http and https to ask for an address
			public = "http" + rest
		}
		all = append(all, public)
	}
	for _, addr := range at {
		for _, host := range reachable(addr) {
			all = append(all, "http://"+host)
		}
	}
	return all
}

// Addresses lists what speakers can be given as the OTA address.
func (a setupOf) Addresses() (all []string) {
	for _, base := range bases(a.cfg, a.listened()) {
		all = append(all, base+"/xiaozhi/ota/")
	}
	return all
}

// listened are the addresses at which the server listens, or will.
func (a setupOf) listened() (at []net.Addr) {
	all := a.seen.open
	if len(all) == 0 {
		all = a.cfg.Server.Listen
	}
	for _, listen := range all {
		if tcp, err := net.ResolveTCPAddr("tcp", listen); err == nil {
			at = append(at, tcp)
		}
	}
	return at
}

// Shut lists the addresses that speakers could be given if the server did not listen at this machine alone.
func (a setupOf) Shut() (all []string, port string, local bool) {
	if a.cfg.Server.PublicURL != "" {
		return nil, "", false
	}
	for _, at := range a.listened() {
		tcp, ok := at.(*net.TCPAddr)
		if !ok || !tcp.IP.IsLoopback() {
			return nil, "", false
		}
		port = cmp.Or(port, strconv.Itoa(tcp.Port))
		for _, host := range reachable(&net.TCPAddr{Port: tcp.Port}) {
			if !strings.HasPrefix(host, "127.") {
				all = append(all, "http://"+host+"/xiaozhi/ota/")
			}
		}
	}
	return all, port, port != ""
}

// authorityPath is where browsers get the certificate of the authority that is to be trusted.
const authorityPath = "/console/ca.crt"

// tlsFolder holds the authority of this server, below the data folder.
const tlsFolder = "tls"

// https opens the listener for browsers and shows its certificate. Its methods are for one goroutine, but ServeHTTP.
type https struct {
	tls    config.TLS
	folder string // of the authority
	source *certificate.Source
	log    *slog.Logger
}

func newHTTPS(cfg *config.Config, data string, log *slog.Logger) *https {
	return &https{tls: cfg.Server.TLS, folder: filepath.Join(data, tlsFolder), log: log}
}

// look reads the files of the certificate and reports what is wrong with them, and what is shown.
func (h *https) look(to *engines.Report) error {
	t := h.tls
	switch {
	case t.Listen == "":
		return nil
	case t.Cert == "":
		to.Line("  TLS  " + message.Both("app/tls-made", h.folder))
		return nil
	}
	pair, err := certificate.Read(t.Cert, t.Key)
	if err != nil {
		return err
	}
	to.Line("  TLS  " + message.Both("app/tls-files", t.Cert, pair.Leaf.NotAfter.Format(time.DateOnly), strings.Join(certificate.Hosts(pair.Leaf), " ")))
	if trouble := certificate.Trouble(t.Cert, pair, time.Now()); trouble != "" {
		to.Line("     ! " + trouble)
		h.log.Warn("certificate", "why", trouble)
	}
	return nil
}

// open makes the certificate ready for the names of this server, and opens its address, if it has one.
func (h *https) open(ctx context.Context, names []string) (all []net.Listener, err error) {
	if h.tls.Listen == "" {
		return nil, nil
	}
	h.source, err = certificate.Open(certificate.Options{
		Cert: h.tls.Cert, Key: h.tls.Key, Dir: h.folder, Names: append(slices.Clone(names), "localhost"), Addresses: ownInterfaces, Log: h.log,
	})
	if err != nil {
		return nil, err
	}
	if all, err = listenAll(ctx, []string{h.tls.Listen}); err != nil {
		err = fmt.Errorf("server.tls.listen: %w", err)
	}
	return all, err
}

// ownInterfaces lists the addresses of this machine.
func ownInterfaces() (all []netip.Addr) {
	found, _ := net.InterfaceAddrs() // none, where the system does not tell
	for _, a := range found {
		if n, ok := a.(*net.IPNet); ok {
			if at, ok := netip.AddrFromSlice(n.IP); ok {
				all = append(all, at.Unmap())
			}
		}
	}
	return all
}

// plainPort returns the port of HTTP that devices use where HTTPS has a certificate that they do not accept; "": they
// accept it, are told another address, or there is no HTTPS.
func plainPort(s config.Server) string {
	if s.TLS.Listen == "" || s.TLS.Cert != "" || s.PublicURL != "" || len(s.Listen) == 0 {
		return ""
	}
	_, port, _ := net.SplitHostPort(s.Listen[0]) // the config has checked it
	return port
}

// banner tells a person where browsers ask by HTTPS, and how they come to trust it.
func (h *https) banner(w io.Writer, safe, plain []net.Listener) {
	if len(safe) == 0 {
		return
	}
	fmt.Fprintln(w, message.Both("app/tls"))
	for _, host := range reachable(safe[0].Addr()) {
		fmt.Fprintf(w, "  https://%s/\n", host)
	}
	if h.source.Authority() != nil && len(plain) > 0 {
		if hosts := reachable(plain[0].Addr()); len(hosts) > 0 {
			fmt.Fprintf(w, "  %s\n", message.Both("app/tls-authority", "http://"+hosts[0]+authorityPath, h.source.Fingerprint()))
		}
	}
	fmt.Fprintln(w)
}

// ServeHTTP gives the certificate of this server's authority to whoever wants to trust it.
func (h *https) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if h.source == nil || h.source.Authority() == nil {
		access.Refuse(w, http.StatusNotFound, "app/tls-none", message.Both("app/tls-none"))
		return
	}
	access.JSONHeaders(w)
	w.Header().Set("Content-Type", "application/x-x509-ca-cert")
	w.Header().Set("Content-Disposition", `attachment; filename="xiaozhi-ca.crt"`)
	_, _ = w.Write(h.source.Authority()) // the other end may be gone
}
