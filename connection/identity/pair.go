// Package identity knows who a device is: which pairs of Device-Id and Client-Id are
// known, how one becomes known, and which token is whose.
//
// What it decides is pure ([Next], [Canonical]); a [Book] carries it out and keeps
// what it must not forget in [Records].
package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// separators are what people and programs put between the digits of a MAC.
const separators = ":-._ "

// mark stands between the Device-Id and the rest in the id of a stranger. It stands
// in no other id.
const mark = "~"

// Canonical returns the one spelling of a Device-Id. A MAC is written as six pairs in
// lower case with colons, whatever separators and case it came with. Any other id is
// opaque: it stays as it is, in lower case and without "~".
func Canonical(id string) string {
	id = strings.ReplaceAll(strings.ToLower(strings.Trim(id, " \t\r\n")), mark, "_")
	if digits := digitsOf(id); digits != "" {
		var b strings.Builder
		for i := 0; i < len(digits); i += 2 {
			if i > 0 {
				b.WriteByte(':')
			}
			b.WriteString(digits[i : i+2])
		}
		return b.String()
	}
	return id
}

// digitsOf returns the twelve digits of a MAC in lower case, "" for anything else. A
// group of one digit, where there are six groups, lacks its zero.
func digitsOf(id string) string {
	groups := strings.FieldsFunc(id, func(r rune) bool { return strings.ContainsRune(separators, r) })
	if len(groups) == 6 {
		for i, g := range groups {
			if len(g) == 1 {
				groups[i] = "0" + g
			}
		}
	}
	digits := strings.Join(groups, "")
	if len(digits) != 12 || strings.Trim(digits, "0123456789abcdef") != "" {
		return ""
	}
	return digits
}

// clientHash returns what is kept of a Client-Id, which is a secret; "" for none.
func clientHash(clientID string) string {
	if clientID == "" {
		return ""
	}
	return hashOf(clientID)
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// strangerID returns the id of a stranger who says the address of another pair. It
// has at least eight digits of the hash, more with a longer length.
func strangerID(address, client string, length int) string {
	if client == "" {
		client = hashOf("")
	}
	return address + mark + client[:min(length, len(client))]
}
