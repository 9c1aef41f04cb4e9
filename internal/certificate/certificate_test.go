package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// made returns a source of its own authority, whose clock and addresses the test moves.
func made(t *testing.T, dir string) (s *Source, now *time.Time, addresses *[]netip.Addr) {
	t.Helper()
	at, all := time.Now(), []netip.Addr{netip.MustParseAddr("192.168.1.5"), netip.MustParseAddr("8.8.4.4"), netip.MustParseAddr("fe80::1%eth0")}
	s, err := Open(Options{
		Dir: dir, Names: []string{"Nas", "nas.local", "localhost", "bad_name"}, Addresses: func() []netip.Addr { return all },
		Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, &at, &all
}

// handshake connects to what s shows, and says what the other side makes of it.
func handshake(s *Source, client *tls.Config) error {
	near, far := net.Pipe()
	defer near.Close()
	served := make(chan struct{})
	go func() {
		defer close(served)
		defer far.Close()
		_ = tls.Server(far, s.Config()).HandshakeContext(context.Background())
	}()
	err := tls.Client(near, client).Handshake()
	near.Close()
	<-served
	return err
}

func trusting(s *Source, name string) *tls.Config {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(s.Authority())
	return &tls.Config{RootCAs: pool, ServerName: name, Time: s.o.Now, MinVersion: tls.VersionTLS10}
}

// TestMadeCertificate: who trusts the authority reaches this host by its names and private addresses, with TLS 1.2 and
// later, and nothing else; the key of the authority is for its owner.
func TestMadeCertificate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tls")
	s, now, addresses := made(t, dir)
	for name, good := range map[string]bool{
		"nas": true, "nas.local": true, "localhost": true, "192.168.1.5": true, "127.0.0.1": true, "::1": true, "fe80::1": true,
		"8.8.4.4": false, "evil.example": false, "bad_name": false, "192.168.1.6": false,
	} {
		if err := handshake(s, trusting(s, name)); (err == nil) != good {
			t.Errorf("%s: %v", name, err)
		}
	}
	for version, good := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c := trusting(s, "nas")
		c.MaxVersion = version
		if err := handshake(s, c); (err == nil) != good {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
	stolen, err := s.authority.leaf([]string{"bank.example", "8.8.4.4"}, *now)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bank.example", "8.8.4.4"} {
		if _, err := stolen.Leaf.Verify(x509.VerifyOptions{Roots: trusting(s, "").RootCAs, DNSName: name}); err == nil {
			t.Errorf("who has the authority's key can be %s", name)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, KeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	first := s.Leaf().SerialNumber
	*addresses = append(*addresses, netip.MustParseAddr("10.9.8.7"))
	*now = now.Add(lookAgain)
	if err := handshake(s, trusting(s, "10.9.8.7")); err != nil || s.Leaf().SerialNumber.Cmp(first) == 0 {
		t.Errorf("a new address: %v", err)
	}
	second := s.Leaf().SerialNumber
	*now = now.Add(leafTime - renewBefore - time.Hour)
	if err := handshake(s, trusting(s, "nas")); err != nil || s.Leaf().SerialNumber.Cmp(second) != 0 {
		t.Errorf("early: %v", err)
	}
	*now = now.Add(2 * time.Hour)
	if err := handshake(s, trusting(s, "nas")); err != nil || s.Leaf().SerialNumber.Cmp(second) == 0 {
		t.Errorf("its time ends: %v", err)
	}
	again, _, _ := made(t, dir)
	if again.Fingerprint() != s.Fingerprint() || len(s.Fingerprint()) != 95 {
		t.Errorf("another authority after a restart: %s, %s", s.Fingerprint(), again.Fingerprint())
	}
	if err := os.WriteFile(filepath.Join(dir, CertFile), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir, Addresses: func() []netip.Addr { return nil }}); err == nil || !strings.Contains(err.Error(), CertFile) {
		t.Error(err)
	}
}

// write writes a pair of files for a host.
func write(t *testing.T, s *Source, dir, name, host string) (cert, key string) {
	t.Helper()
	leaf, err := s.authority.leaf([]string{host}, s.o.Now())
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(leaf.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestFiles: files are read again when they have changed; half a change leaves what there was; what is wrong with a file
// names it.
func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority, now, _ := made(t, filepath.Join(dir, "tls"))
	cert, key := write(t, authority, dir, "a", "nas")
	otherCert, otherKey := write(t, authority, dir, "b", "nas.local")
	locked, open := filepath.Join(dir, "locked.key"), filepath.Join(dir, "open.key")
	for file, text := range map[string]string{locked: "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n", open: "x"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ cert, key, names, says string }{
		{cert, otherKey, otherKey, "does not belong"}, {key, cert, key, "swapped"}, {cert, otherCert, otherCert, "no key"}, {filepath.Join(dir, "none"), key, "none", "cannot be read"},
		{cert, locked, locked, "passphrase"}, {cert, open, open, "chmod"}, {dir, key, dir, "cannot be read"},
	} {
		if _, err := Open(Options{Cert: c.cert, Key: c.key}); err == nil || !strings.Contains(err.Error(), c.names) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s, %s: %v", c.cert, c.key, err)
		}
	}
	s, err := Open(Options{Cert: cert, Key: key, Now: func() time.Time { return *now }, Log: slog.New(slog.DiscardHandler)})
	if err != nil || s.Authority() != nil {
		t.Fatal(err)
	}
	client := func(name string) *tls.Config { return trusting(authority, name) }
	later := func(from, to string) {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
		*now = now.Add(lookAgain)
		if err == nil {
			err = os.Chtimes(to, *now, *now)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := handshake(s, client("nas")); err != nil {
		t.Error(err)
	}
	later(otherCert, cert)
	if err := handshake(s, client("nas")); err != nil {
		t.Error("half a change:", err)
	}
	later(otherKey, key)
	if err := handshake(s, client("nas.local")); err != nil {
		t.Error("changed files:", err)
	}
	pair, err := Read(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	for at, says := range map[time.Duration]string{0: "", leafTime + time.Hour: "has ended", -48 * time.Hour: "valid from"} {
		if got := Trouble(cert, pair, now.Add(at)); (says == "") != (got == "") || !strings.Contains(got, says) {
			t.Errorf("%v: %q", at, got)
		}
	}
}
