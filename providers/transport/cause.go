package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
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
)

// Cause names a sort of failure that a person can do something about, by the id of its sentence in the catalogue of messages.
type Cause string

// The causes.
const (
	CauseUnknown  Cause = "services/unavailable"
	CauseKey      Cause = "services/unauthorized"
	CauseCredit   Cause = "services/no-credit"
	CauseRate     Cause = "services/rate-limited"
	CauseRequest  Cause = "services/bad-request"
	CauseModel    Cause = "services/no-model"
	CauseVoice    Cause = "services/no-voice"
	CauseLicence  Cause = "services/no-licence"
	CauseApp      Cause = "services/no-app"
	CauseLanguage Cause = "services/no-language"
	CauseHost     Cause = "services/no-host"
	CauseListener Cause = "services/no-listener"
	CauseNetwork  Cause = "services/no-network"
	CauseSilence  Cause = "services/no-answer"
	CauseProxy    Cause = "services/proxy"
	CauseTLS      Cause = "services/certificate"
	CauseClock    Cause = "services/clock"
	CauseBlocked  Cause = "services/blocked"
	CauseNonsense Cause = "services/nonsense"
	CauseBroken   Cause = "services/broke-off"
	CauseKeyless  Cause = "services/key-wanted"
)

// about reports whether words of a service, in lower case, speak of one thing, by the words for it in both languages.
func about(words, id string) bool {
	said := func(of string) bool { return strings.Contains(words, of) }
	return slices.ContainsFunc(message.List(text.English, id), said) || slices.ContainsFunc(message.List(text.Chinese, id), said)
}

// CauseOf finds out what is wrong when a service has failed; "" if the error is none of a service. free says that the
// service is used without a key.
func CauseOf(err error, free bool) Cause {
	if providers.LacksLanguage(err) {
		return CauseLanguage
	}
	failed, ok := errors.AsType[*providers.Error](err)
	if !ok {
		if c := connection(err); c != CauseUnknown {
			return c
		}
		return ""
	}
	words := strings.ToLower(failed.Err.Error())
	refused, answered := errors.AsType[*Refusal](err)
	switch {
	case answered && refused.Status == http.StatusProxyAuthRequired:
		return CauseProxy
	case failed.Kind == providers.NoCredit:
		return CauseCredit
	case failed.Kind == providers.RateLimited:
		return CauseRate
	case strings.Contains(words, "instead of sound: <"): // a page
		return CauseNonsense
	case failed.Kind == providers.Unavailable && !answered:
		return connection(err)
	case failed.Kind == providers.Unavailable && refused.Code == "" && refused.Status >= 200 && refused.Status < 400: // a page in place of a socket
		return CauseNonsense
	case failed.Kind == providers.Unavailable:
		return CauseUnknown
	case answered && refused.Skewed, about(words, "services/about-clock"):
		return CauseClock
	case about(words, "services/about-licence"):
		return CauseLicence
	case about(words, "services/about-voice"):
		return CauseVoice
	case about(words, "services/about-model"):
		return CauseModel
	case about(words, "services/about-app"):
		return CauseApp
	case failed.Kind == providers.BadRequest && answered && (refused.Status == http.StatusNotFound || refused.Status == http.StatusMethodNotAllowed):
		return CauseNonsense
	case failed.Kind == providers.BadRequest:
		return CauseRequest
	case free && (answered && refused.Status == http.StatusUnauthorized || about(words, "services/about-key")):
		return CauseKeyless
	case free:
		return CauseBlocked
	}
	return CauseKey
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
		return CauseProxy
	case unnamed && name.IsNotFound:
		return CauseHost
	case unnamed, errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETDOWN):
		return CauseNetwork
	case expired(err):
		return CauseClock
	case plain, strings.Contains(words, "server gave HTTP response to HTTPS client"), strings.Contains(words, "x509: "), strings.Contains(words, "tls: "):
		return CauseTLS
	case errors.Is(err, syscall.ECONNREFUSED):
		return CauseListener
	case errors.Is(err, ErrStalled), timed && late.Timeout(), errors.Is(err, os.ErrDeadlineExceeded):
		return CauseSilence
	case strings.Contains(words, "malformed HTTP"), strings.Contains(words, "not the JSON expected"), strings.Contains(words, "bad handshake"), strings.Contains(words, "invalid character"),
		strings.Contains(words, "a message claims"), strings.Contains(words, "not an event of"):
		return CauseNonsense
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), strings.Contains(words, "close 1006"), strings.Contains(words, "ended before the answer"):
		return CauseBroken
	}
	return CauseUnknown
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
