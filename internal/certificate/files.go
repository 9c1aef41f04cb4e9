package certificate

import (
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"xiaozhi/internal/private"
	"xiaozhi/internal/text/message"
)

// Read reads a certificate with those that it stands on, and its key. Its errors say in both languages what is wrong with
// which file. Whether the certificate is valid now is not looked at: see [Trouble].
func Read(certFile, keyFile string) (c tls.Certificate, err error) {
	cert, err := blocks(certFile)
	if err != nil {
		return c, err
	}
	key, err := blocks(keyFile)
	if err != nil {
		return c, err
	}
	switch {
	case !holds(cert, "CERTIFICATE") && holds(cert, "PRIVATE KEY"):
		return c, wrong("certificate/swapped", certFile)
	case !holds(cert, "CERTIFICATE"):
		return c, wrong("certificate/no-certificate", certFile)
	case holds(key, "ENCRYPTED"):
		return c, wrong("certificate/locked", keyFile)
	case !holds(key, "PRIVATE KEY"):
		return c, wrong("certificate/no-key", keyFile)
	}
	if c, err = tls.X509KeyPair(cert, key); err == nil {
		return c, nil
	}
	if strings.Contains(err.Error(), "does not match") {
		return c, wrong("certificate/mismatch", keyFile, certFile)
	}
	return c, fmt.Errorf("%w: %w", wrong("certificate/broken", certFile, keyFile), err)
}

func wrong(id string, files ...any) error { return errors.New(message.Both(id, files...)) }

// blocks reads a file that others may not write.
func blocks(file string) ([]byte, error) {
	data, err := private.Read(file)
	if _, open := errors.AsType[*private.OpenError](err); err == nil || open {
		return data, err
	}
	return nil, fmt.Errorf("%w: %w", wrong("certificate/unread", file), err)
}

// holds reports whether a PEM file has a block whose type or header says so.
func holds(data []byte, kind string) bool {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if strings.Contains(block.Type, kind) || kind == "ENCRYPTED" && strings.Contains(block.Headers["Proc-Type"], kind) {
			return true
		}
	}
	return false
}

// Trouble says in both languages what browsers will not like of a certificate that a file has; "" for nothing.
func Trouble(file string, c tls.Certificate, now time.Time) string {
	switch {
	case now.After(c.Leaf.NotAfter):
		return message.Both("certificate/ended", file, c.Leaf.NotAfter.Format(time.DateOnly))
	case now.Before(c.Leaf.NotBefore):
		return message.Both("certificate/early", file, c.Leaf.NotBefore.Format(time.DateOnly))
	case len(Hosts(c.Leaf)) == 0:
		return message.Both("certificate/nameless", file)
	default:
		return ""
	}
}

// stamp tells one state of a file from the next.
func stamp(file string) string {
	info, err := os.Stat(file)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.ModTime().UnixNano(), " ", info.Size(), "\n")
}
