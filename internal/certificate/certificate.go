// Package certificate provides what the listener for HTTPS shows to browsers: a certificate of the owner's files, or one
// of an authority of this server's own.
package certificate

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Options configure a [Source].
type Options struct {
	Cert, Key string // PEM files; both "": the certificate is made
	Dir       string // of the authority by which it is made; it is made where it is missing
	Names     []string
	Addresses func() []netip.Addr // of this host now
	Now       func() time.Time    // nil: time.Now
	Log       *slog.Logger
}

// Source holds the certificate, and gets another one when its files or the addresses of the host have changed, or its
// time ends. Its methods may be called at the same time.
type Source struct {
	o         Options
	authority *authority // nil: the certificate is of files

	mu      sync.Mutex
	current *tls.Certificate
	seen    string    // what current was made of
	looked  time.Time // whether it is still so
	trouble string    // the last that was logged
}

// How often a handshake looks whether the certificate is still the right one.
const lookAgain = time.Second

// Open reads the files, or reads or makes the authority, and returns the source. Its errors say in both languages
// what is wrong with which file. A certificate whose time has ended is shown all the same.
func Open(o Options) (*Source, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Source{o: o}
	if o.Cert == "" {
		var err error
		if s.authority, err = openAuthority(o.Dir, o.Names, o.Now()); err != nil {
			return nil, err
		}
	}
	return s, s.renew()
}

// Config returns what a listener uses: TLS 1.2 and later.
func (s *Source) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate}
}

func (s *Source) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.o.Now(); now.Sub(s.looked) >= lookAgain || now.Before(s.looked) {
		s.looked = now
		if err := s.renew(); err != nil && err.Error() != s.trouble {
			s.trouble = err.Error()
			s.o.Log.Error("the certificate stays as it was", "err", err)
		}
	}
	return s.current, nil
}

// renew puts another certificate in the place of the current one, if that is no longer right. After an error it stays.
// The caller holds mu, or is alone.
func (s *Source) renew() error {
	var seen string
	var next tls.Certificate
	var err error
	if s.authority != nil {
		hosts := s.authority.hosts(s.o.Names, s.o.Addresses())
		seen = strings.Join(hosts, " ")
		if s.current != nil && seen == s.seen && s.o.Now().Add(renewBefore).Before(s.current.Leaf.NotAfter) {
			return nil
		}
		next, err = s.authority.leaf(hosts, s.o.Now())
	} else {
		if seen = stamp(s.o.Cert) + stamp(s.o.Key); s.current != nil && seen == s.seen {
			return nil
		}
		next, err = Read(s.o.Cert, s.o.Key)
	}
	if err != nil {
		return err
	}
	if s.current != nil {
		s.o.Log.Info("another certificate is shown", "for", strings.Join(Hosts(next.Leaf), " "), "until", next.Leaf.NotAfter)
	}
	s.current, s.seen, s.trouble = &next, seen, ""
	return nil
}

// Leaf returns the certificate that is shown now.
func (s *Source) Leaf() *x509.Certificate {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.Leaf
}

// Authority returns the certificate of the authority in PEM, for those who shall trust it; nil: the certificate is of
// files.
func (s *Source) Authority() []byte {
	if s.authority == nil {
		return nil
	}
	return s.authority.pem
}

// Fingerprint returns the SHA-256 of the authority's certificate, or of that of the files, as systems show it.
func (s *Source) Fingerprint() string {
	cert := s.Leaf()
	if s.authority != nil {
		cert = s.authority.cert
	}
	sum := sha256.Sum256(cert.Raw)
	parts := make([]string, len(sum))
	for i, b := range sum {
		parts[i] = strings.ToUpper(hex.EncodeToString([]byte{b}))
	}
	return strings.Join(parts, ":")
}

// Hosts lists the names and addresses that a certificate is for.
func Hosts(cert *x509.Certificate) []string {
	all := append([]string{}, cert.DNSNames...)
	for _, ip := range cert.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}
