package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/private"
)

// Files of the authority in its folder.
const (
	CertFile = "ca.crt"
	KeyFile  = "ca.key"
)

// How long certificates are valid. Systems take 825 days at most of what is not an authority.
const (
	authorityYears = 10
	leafTime       = 90 * 24 * time.Hour
	renewBefore    = 30 * 24 * time.Hour
	early          = 24 * time.Hour // that clocks of those who look may be behind
)

// privateNetworks are the addresses that an authority may sign for: nobody can own them.
func privateNetworks() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range []string{
		"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7", "fe80::/10",
	} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// authority signs for names of this host and private addresses, and says so itself: who trusts it need not fear it for
// any other name.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// openAuthority reads the authority of a folder, or makes one for the names.
func openAuthority(dir string, names []string, now time.Time) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := private.Check(dir); err != nil {
		return nil, err
	}
	certFile, keyFile := filepath.Join(dir, CertFile), filepath.Join(dir, KeyFile)
	key, err := openKey(keyFile)
	if err != nil {
		return nil, err
	}
	text, err := private.Read(certFile)
	if errors.Is(err, fs.ErrNotExist) {
		if text, err = newAuthority(key, names, now); err == nil {
			err = private.CreateSecret(certFile, text)
		}
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, wrong("certificate/authority", certFile, keyFile)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil || !cert.IsCA || !key.PublicKey.Equal(cert.PublicKey) || now.After(cert.NotAfter) {
		return nil, wrong("certificate/authority", certFile, keyFile)
	}
	return &authority{cert, key, text}, nil
}

// openKey reads the key of an authority, or makes it.
func openKey(file string) (*ecdsa.PrivateKey, error) {
	text, err := private.ReadSecret(file)
	if errors.Is(err, fs.ErrNotExist) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			return nil, err
		}
		return key, private.CreateSecret(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	}
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*ecdsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, wrong("certificate/authority", file, file)
}

// newAuthority returns the certificate of an authority for the names, in PEM.
func newAuthority(key *ecdsa.PrivateKey, names []string, now time.Time) ([]byte, error) {
	host := "xiaozhi"
	if len(names) > 0 {
		host = names[0]
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "xiaozhi " + host + " " + now.Format(time.DateOnly), Organization: []string{"xiaozhi"}}, SerialNumber: serial(),
		NotBefore: now.Add(-early), NotAfter: now.AddDate(authorityYears, 0, 0), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: plainNames(names),
	}
	for _, p := range privateNetworks() {
		t.PermittedIPRanges = append(t.PermittedIPRanges, &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())})
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make an authority: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return big.NewInt(time.Now().UnixNano())
	}
	return n.Add(n, big.NewInt(1))
}

// hosts lists the names and addresses that the authority may sign for, in a fixed order.
func (a *authority) hosts(names []string, addresses []netip.Addr) []string {
	var all []string
	for _, name := range plainNames(names) {
		if slices.ContainsFunc(a.cert.PermittedDNSDomains, func(d string) bool { return name == d || strings.HasSuffix(name, "."+d) }) {
			all = append(all, name)
		}
	}
	for _, at := range append([]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, addresses...) {
		at = at.Unmap().WithZone("")
		if slices.ContainsFunc(privateNetworks(), func(p netip.Prefix) bool { return p.Contains(at) }) {
			all = append(all, at.String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// leaf makes a certificate for hosts. Its key is nowhere but in memory.
func (a *authority) leaf(hosts []string, now time.Time) (c tls.Certificate, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	t := &x509.Certificate{
		Subject: pkix.Name{CommonName: "xiaozhi"}, SerialNumber: serial(), NotBefore: now.Add(-early), NotAfter: now.Add(leafTime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, host := range hosts {
		if at, err := netip.ParseAddr(host); err == nil {
			t.IPAddresses = append(t.IPAddresses, at.AsSlice())
		} else {
			t.DNSNames = append(t.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, key.Public(), a.key)
	if err != nil {
		return c, fmt.Errorf("sign a certificate: %w", err)
	}
	c = tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}
	c.Leaf, err = x509.ParseCertificate(der)
	return c, err
}

// plainNames returns names as certificates can have them.
func plainNames(names []string) []string {
	var all []string
	for _, name := range names {
		name = strings.ToLower(strings.TrimSuffix(name, "."))
		_, err := netip.ParseAddr(name)
		odd := strings.Contains(name, "..") || strings.HasPrefix(name, ".") || strings.ContainsFunc(name, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-.", r)
		})
		if err != nil && name != "" && !odd && len(name) <= 253 && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}
