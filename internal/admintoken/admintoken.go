// Package admintoken is the secret by which programs of the owner reach the server:
// a file in the data folder that only the owner can read.
package admintoken

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"xiaozhi/internal/private"
	"xiaozhi/internal/text/message"
)

const (
	file  = "admin-token"
	bytes = 32 // of randomness
)

// Path returns where the token of a data folder is.
func Path(data string) string { return filepath.Join(data, file) }

// Ensure returns the token of a data folder, and makes it if there is none. Several
// programs may call it at the same time.
func Ensure(data string) (string, error) {
	token, err := Read(data)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	var b [bytes]byte
	_, _ = rand.Read(b[:]) // never fails
	if err := private.CreateSecret(Path(data), []byte(hex.EncodeToString(b[:])+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return Read(data)
}

// Read returns the token of a data folder. It is [fs.ErrNotExist] where the server has
// not made one yet, and a [*private.OpenError] if others may read or write it.
func Read(data string) (string, error) {
	text, err := private.ReadSecret(Path(data))
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if b, err := hex.DecodeString(token); err != nil || len(b) != bytes {
		return "", fmt.Errorf("%s: %w", Path(data), errors.New(message.Both("private/no-token")))
	}
	return token, nil
}
