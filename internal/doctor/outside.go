package doctor

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"xiaozhi/internal/contact"
)

// Outside asks the server by the address that devices are told, as if from outside: through its proxy, with the
// certificate that devices see.
type Outside struct {
	URL        string // of the settings: http(s)://host[:port][/prefix]; "": devices are told what they asked at
	TrustProxy bool   // the server believes a proxy
	Talk       string // path of sockets, below the URL
	Health     string // path of a page that only says ok
	Knock      func() (path string, came func() bool)
	Header     http.Header    // that marks the request for a socket
	Roots      *x509.CertPool // of public authorities; nil: those that Mozilla trusts
	Now        func() time.Time
}

// Limits of a question.
const (
	outsideTime = 5 * time.Second // of all of them
	outsideBody = 4 << 10
	fewDays     = 14 // left to a certificate
)

// Check asks.
func (o Outside) Check(ctx context.Context) (all []Finding, around contact.Around) {
	if o.URL == "" {
		return []Finding{ok(Proxy, "doctor/proxy-none")}, around
	}
	base, err := url.Parse(o.URL)
	if err != nil || base.Host == "" {
		return []Finding{bad(Proxy, Problem, contact.Say("doctor/public-unread", o.URL), contact.Say("doctor/public-unread-do"))}, around
	}
	switch base.Scheme {
	case "ws":
		base.Scheme = "http"
	case "wss":
		base.Scheme = "https"
	}
	base.Path = strings.TrimRight(base.Path, "/")
	around.Port = base.Port()
	ctx, cancel := context.WithTimeout(ctx, outsideTime)
	defer cancel()
	asked := &asked{Outside: o, base: base}
	client := asked.client()
	defer client.CloseIdleConnections()
	if !asked.reachable(ctx, client) {
		return asked.found, around
	}
	asked.certificate()
	asked.own(ctx, client)
	around.NoUpgrade = !asked.socket(ctx, client)
	around.PrivateCertificate = asked.private
	return asked.found, around
}

// asked collects findings of one round of questions.
type asked struct {
	Outside
	base    *url.URL
	chain   []*x509.Certificate
	found   []Finding
	private bool // devices do not take the certificate
}

func (a *asked) add(f Finding) { a.found = append(a.found, f) }

// client asks like a device, but takes any certificate: it is judged afterwards, and nothing secret is sent.
func (a *asked) client() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			DialContext: (&net.Dialer{Timeout: outsideTime / 2}).DialContext, TLSHandshakeTimeout: outsideTime / 2, DisableKeepAlives: true,
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: a.base.Hostname(), NextProtos: []string{"http/1.1"}}, //nolint:gosec // see above
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // devices follow none
	}
}

// get asks for a path below the base.
func (a *asked) get(ctx context.Context, client *http.Client, path string, header http.Header) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.base.String()+path, nil)
	if err != nil {
		return 0, "", err
	}
	req.Header = header
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	if resp.TLS != nil {
		a.chain = resp.TLS.PeerCertificates
	}
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return resp.StatusCode, "", nil
	}
	data, _ := io.ReadAll(io.LimitReader(resp.Body, outsideBody)) // what is there counts
	return resp.StatusCode, string(data), nil
}

// reachable asks for the page that says ok.
func (a *asked) reachable(ctx context.Context, client *http.Client) bool {
	address := a.base.String() + a.Health
	status, body, err := a.get(ctx, client, a.Health, http.Header{})
	switch {
	case err != nil:
		id, do := "doctor/public-silent", contact.Say("doctor/public-silent-do")
		if _, ok := errors.AsType[*net.DNSError](err); ok {
			id, do = "doctor/public-name", contact.Say("doctor/public-name-do", a.base.Hostname())
		}
		a.add(bad(Proxy, Problem, contact.Say(id, address, short(err)), do))
	case status != http.StatusOK || strings.TrimSpace(body) != "ok":
		a.add(bad(Proxy, Problem, contact.Say("doctor/public-strange", address, status), contact.Say("doctor/public-strange-do")))
	default:
		a.add(ok(Proxy, "doctor/public-answers", address))
		return true
	}
	return false
}

// short is an error without the address that it repeats.
func short(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	return plain(err)
}

// own finds out whether it is this server that answers there.
func (a *asked) own(ctx context.Context, client *http.Client) {
	if a.Knock == nil {
		return
	}
	path, came := a.Knock()
	if _, _, err := a.get(ctx, client, path, http.Header{}); err == nil && !came() {
		a.add(bad(Proxy, Problem, contact.Say("doctor/public-other", a.base.String()), contact.Say("doctor/public-other-do")))
	}
	if !a.TrustProxy && a.base.Scheme == "https" {
		a.add(bad(Proxy, Warning, contact.Say("doctor/proxy-untrusted"), contact.Say("doctor/proxy-untrusted-do")))
	}
}

// socket asks for a socket as a device does, and gives it back at once.
func (a *asked) socket(ctx context.Context, client *http.Client) bool {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // it never fails
	header := http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {base64.StdEncoding.EncodeToString(key)}}
	for name, values := range a.Header {
		header[name] = values
	}
	status, _, err := a.get(ctx, client, a.Talk, header)
	address := "ws" + strings.TrimPrefix(a.base.String(), "http") + a.Talk
	switch {
	case status == http.StatusSwitchingProtocols:
		a.add(ok(Proxy, "doctor/socket-open", address))
	case status == http.StatusUnauthorized || status == http.StatusServiceUnavailable: // it has come as far as the server
		a.add(ok(Proxy, "doctor/socket-asked", address, status))
	case err != nil:
		a.add(bad(Proxy, Problem, contact.Say("doctor/socket-cut", address, short(err)), contact.Say("doctor/socket-refused-do")))
		return false
	default:
		a.add(bad(Proxy, Problem, contact.Say("doctor/socket-refused", address, status), contact.Say("doctor/socket-refused-do")))
		return false
	}
	return true
}

// certificate judges what answers https.
func (a *asked) certificate() {
	if len(a.chain) == 0 {
		return
	}
	leaf, host := a.chain[0], a.base.Hostname()
	between := x509.NewCertPool()
	for _, c := range a.chain[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: a.roots(), Intermediates: between, CurrentTime: a.Now()})
	left := leaf.NotAfter.Sub(a.Now())
	days := int(left.Hours() / 24)
	switch name := leaf.VerifyHostname(host); {
	case left < 0:
		a.private = true
		a.add(bad(Proxy, Problem, contact.Say("doctor/certificate-over", leaf.NotAfter.Format(time.DateOnly)), contact.Say("doctor/certificate-over-do")))
	case name != nil:
		a.private = true
		a.add(bad(Proxy, Problem, contact.Say("doctor/certificate-name", host, names(leaf)), contact.Say("doctor/certificate-name-do", host)))
	case err != nil:
		a.private = true
		a.add(bad(Proxy, Problem, contact.Say("doctor/certificate-private", issuer(leaf)), contact.Say("doctor/certificate-private-do", host)))
	case days < fewDays:
		a.add(bad(Proxy, Warning, contact.Say("doctor/certificate-days", days, issuer(leaf)), contact.Say("doctor/certificate-over-do")))
	default:
		a.add(ok(Proxy, "doctor/certificate", issuer(leaf), days))
	}
}

// CheckHTTPS judges what browsers are shown by the server itself; nil: it has no HTTPS. made says that an authority of the
// server has signed it.
func CheckHTTPS(shown *x509.Certificate, made bool, now time.Time) []Finding {
	if shown == nil {
		return []Finding{ok(HTTPS, "doctor/https-none")}
	}
	days := int(shown.NotAfter.Sub(now).Hours() / 24)
	switch {
	case now.After(shown.NotAfter):
		return []Finding{bad(HTTPS, Problem, contact.Say("doctor/certificate-over", shown.NotAfter.Format(time.DateOnly)), contact.Say("doctor/certificate-over-do"))}
	case days < fewDays:
		return []Finding{bad(HTTPS, Warning, contact.Say("doctor/certificate-days", days, issuer(shown)), contact.Say("doctor/certificate-over-do"))}
	case made:
		return []Finding{ok(HTTPS, "doctor/https-made", names(shown), days)}
	}
	return []Finding{ok(HTTPS, "doctor/https-files", names(shown), issuer(shown), days)}
}

func (a *asked) roots() *x509.CertPool {
	if a.Roots != nil {
		return a.Roots
	}
	pool := x509.NewCertPool()
	for root := range bundle.Roots() {
		if c, err := x509.ParseCertificate(root.Certificate); err == nil {
			pool.AddCert(c)
		}
	}
	return pool
}

// maxNames is how many names of a certificate are told.
const maxNames = 5

func names(c *x509.Certificate) string {
	all := c.DNSNames
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	if len(all) > maxNames {
		all = append(all[:maxNames:maxNames], "…")
	}
	return strings.Join(all, ", ")
}

func issuer(c *x509.Certificate) string {
	if len(c.Issuer.Organization) > 0 {
		return c.Issuer.Organization[0]
	}
	return c.Issuer.CommonName
}
