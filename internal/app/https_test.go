package app

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
)

// freePort returns a port of this machine that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// TestHTTPS: with an address for it, the server is reached by HTTPS too, with the same content; its certificate is
// trusted by who has fetched the authority by HTTP; the cookie of a login there is for HTTPS alone, and people are told
// HTTP for their devices, though a talk by HTTPS is one like any other.
func TestHTTPS(t *testing.T) {
	port, password := freePort(t), filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(password, []byte("correct horse battery"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XIAOZHI_ASR", "openai") // nothing to load
	t.Setenv("XIAOZHI_CONSOLE__OWNER", "anna")
	t.Setenv("XIAOZHI_CONSOLE__PASSWORD_FILE", password)
	t.Setenv("XIAOZHI_SERVER__TLS__LISTEN", "127.0.0.1:"+port)
	base, end := serving(t, "home/data")
	status, authority := get(t, base+authorityPath)
	pool := x509.NewCertPool()
	if status != http.StatusOK || !pool.AppendCertsFromPEM([]byte(authority)) {
		t.Fatalf("%d %s", status, authority)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	ask := func(method, path, body string) (*http.Response, string) {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://127.0.0.1:"+port+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(text)
	}
	resp, body := ask("GET", "/healthz", "")
	if resp.StatusCode != http.StatusOK || body != "ok\n" || resp.ProtoMajor != 2 || resp.Header.Get("Strict-Transport-Security") != "" {
		t.Errorf("%d %s %v", resp.StatusCode, body, resp.Header)
	}
	if resp, body = ask("GET", "/xiaozhi/ota/", ""); resp.StatusCode != http.StatusOK || strings.Contains(body, "https://127") {
		t.Errorf("people are told an address that devices cannot use: %s", body)
	}
	resp, body = ask("POST", "/api/v1/login", `{"name":"anna","password":"correct horse battery"}`)
	if c := resp.Cookies(); len(c) != 1 || c[0].Name != "__Host-xiaozhi" || !c[0].Secure || !c[0].HttpOnly || c[0].Path != "/" || c[0].Domain != "" {
		t.Errorf("%d %s %v", resp.StatusCode, body, c)
	}
	if resp, err := http.Get("http://127.0.0.1:" + port + "/healthz"); err != nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP at the port of HTTPS: %v", err)
	}
	nc, err := tls.Dial("tcp", "127.0.0.1:"+port, &tls.Config{RootCAs: pool})
	if err != nil {
		t.Fatal(err)
	}
	d, err := devicetest.Dial(t.Context(), devicetest.Options{URL: "ws://127.0.0.1:" + port + "/xiaozhi/v1/", NetConn: nc})
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	out, _, err := end()
	if err != nil {
		t.Fatal(err)
	}
	inOrder(t, out, "TLS", "home/data/tls", "https://127.0.0.1:"+port+"/", base+authorityPath, "SHA-256")
}

// TestBadCertificate: what is wrong with a file of the certificate stops the start, and the check of settings, with a
// sentence that names it; so does an address that somebody has.
func TestBadCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "no.pem")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	cfg.ASR, cfg.TTS, cfg.LLM = nil, nil, nil
	cfg.Server.TLS = config.TLS{Listen: "127.0.0.1:0", Cert: file, Key: file}
	a, err := Build(t.Context(), cfg, Options{Data: dir, Check: true, Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		a.Close()
	}
	if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "没有证书") {
		t.Error(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg.Server.TLS = config.TLS{Listen: taken.Addr().String()}
	if _, err := newHTTPS(cfg, dir, slog.New(slog.DiscardHandler)).open(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "server.tls.listen") {
		t.Error(err)
	}
}
