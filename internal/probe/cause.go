package probe

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/providers"
	"xiaozhi/providers/transport"
)

// Cause names a sort of failure that a person can do something about, by the id of its sentence in the catalogue of messages.
type Cause string

// The causes.
const (
	Unknown     Cause = "services/unavailable"
	WrongKey    Cause = "services/unauthorized"
	NoCredit    Cause = "services/no-credit"
	TooOften    Cause = "services/rate-limited"
	BadRequest  Cause = "services/bad-request"
	NoModel     Cause = "services/no-model"
	NoVoice     Cause = "services/no-voice"
	NoLanguage  Cause = "services/no-language"
	NoHost      Cause = "services/no-host"
	NoListener  Cause = "services/no-listener"
	NoNetwork   Cause = "services/no-network"
	NoAnswer    Cause = "services/no-answer"
	Proxy       Cause = "services/proxy"
	Certificate Cause = "services/certificate"
	Clock       Cause = "services/clock"
	Blocked     Cause = "services/blocked"
	Nonsense    Cause = "services/nonsense"
)

// about reports whether words of a service, in lower case, speak of one thing, by the words for it in both languages.
func about(words, id string) bool {
	said := func(of string) bool { return strings.Contains(words, of) }
	return slices.ContainsFunc(message.List(text.English, id), said) || slices.ContainsFunc(message.List(text.Chinese, id), said)
}

// CauseOf finds out what is wrong when a service has failed; "" if the error is none of a service. free says that the
// service has no keys that could be wrong.
func CauseOf(err error, free bool) Cause {
	if providers.LacksLanguage(err) {
		return NoLanguage
	}
	failed, ok := errors.AsType[*providers.Error](err)
	if !ok {
		if c := connection(err); c != Unknown {
			return c
		}
		return ""
	}
	words := strings.ToLower(failed.Err.Error())
	refused, answered := errors.AsType[*transport.Refusal](err)
	switch {
	case answered && refused.Status == http.StatusProxyAuthRequired:
		return Proxy
	case failed.Kind == providers.NoCredit:
		return NoCredit
	case failed.Kind == providers.RateLimited:
		return TooOften
	case failed.Kind == providers.Unavailable && !answered:
		return connection(err)
	case failed.Kind == providers.Unavailable && refused.Status >= 200 && refused.Status < 400: // a page in place of a socket
		return Nonsense
	case failed.Kind == providers.Unavailable:
		return Unknown
	case answered && refused.Skewed, about(words, "services/about-clock"):
		return Clock
	case about(words, "services/about-voice"):
		return NoVoice
	case about(words, "services/about-model"):
		return NoModel
	case answered && (refused.Status == http.StatusNotFound || refused.Status == http.StatusMethodNotAllowed):
		return Nonsense
	case failed.Kind == providers.BadRequest:
		return BadRequest
	case free:
		return Blocked
	}
	return WrongKey
}

// connection finds out why nothing was answered.
func connection(err error) Cause {
	words := err.Error()
	op, _ := errors.AsType[*net.OpError](err)
	name, unnamed := errors.AsType[*net.DNSError](err)
	late, timed := errors.AsType[net.Error](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case op != nil && (op.Op == "proxyconnect" || strings.HasPrefix(op.Op, "socks")), strings.Contains(words, "socks connect"), strings.Contains(words, "proxy: "):
		return Proxy
	case unnamed && name.IsNotFound:
		return NoHost
	case unnamed, errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN):
		return NoNetwork
	case expired(err):
		return Clock
	case plain, strings.Contains(words, "server gave HTTP response to HTTPS client"), strings.Contains(words, "x509: "), strings.Contains(words, "tls: "):
		return Certificate
	case errors.Is(err, syscall.ECONNREFUSED):
		return NoListener
	case errors.Is(err, transport.ErrStalled), timed && late.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return NoAnswer
	case strings.Contains(words, "malformed HTTP"), strings.Contains(words, "not the JSON expected"), strings.Contains(words, "bad handshake"), strings.Contains(words, "invalid character"):
		return Nonsense
	}
	return Unknown
}

// expired reports whether a certificate is not valid at the time of this machine.
func expired(err error) bool {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
	return ok && invalid.Reason == x509.Expired
}

// addresses are what may hold a key in the text of an error.
var addresses = regexp.MustCompile(`\b([a-z][a-z0-9+.-]*://)(?:[^\s/@"]*@)?([^\s?#"]*)[?#][^\s"]*|\b([a-z][a-z0-9+.-]*://)[^\s/@"]*@`)

// Plain returns the words of an error without queries of addresses and names of users in them.
func Plain(err error) string {
	return addresses.ReplaceAllString(err.Error(), "$1$2$3")
}
