package identity

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"slices"
)

// tokenPrefix begins each token, so that people and scanners of secrets know it.
const tokenPrefix = "xzd_"

// maxOffered is how many tokens of a pair may wait for their first use: an answer may
// get lost, and a device keeps the last that it has read.
const maxOffered = 4

// newToken returns 256 random bits. It has no space, which firmware would take for a
// scheme.
func newToken() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // it never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// Tokens are the hashes of a pair's tokens (SHA-256, hex).
type Tokens struct {
	Used    string   // that the pair has used last; "": none yet
	Offered []string // handed out since, the oldest first; at most 4
}

// offer returns the tokens after one more was handed out.
func (t Tokens) offer(hash string) Tokens {
	t.Offered = append(slices.Clone(t.Offered), hash)
	if over := len(t.Offered) - maxOffered; over > 0 {
		t.Offered = t.Offered[over:]
	}
	return t
}

// check says what a shown token proves, and returns the tokens after it was used: it
// is the only one then.
func (t Tokens) check(shown string) (Tokens, Proof) {
	hash := hashOf(shown)
	if shown != "" && same(hash, t.Used) {
		return t, Right
	}
	right := false
	for _, offered := range t.Offered {
		right = same(hash, offered) || right
	}
	switch {
	case shown != "" && right:
		return Tokens{Used: hash}, Right
	case t.Used == "":
		return t, Unneeded
	default:
		return t, Missing
	}
}

// same compares in a time that does not tell how much was right.
func same(a, b string) bool { return b != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// handout holds all that decides whether an answer to OTA carries a token.
type handout struct {
	mode   Mode
	near   bool
	secure bool // nobody on the way can read the answer
	used   bool // the pair has used a token before
	keeps  bool // the device keeps a token that is left out
	failed bool // the pair has come without its token since
}

// due reports whether the token is in the answer. Firmware keeps what is left out, so
// it is told once; whoever else says the pair's name learns nothing.
func (h handout) due() bool {
	switch {
	case !h.near && !h.secure:
		return false
	case !h.used:
		return true
	case !h.near:
		return false
	default:
		return !h.keeps || h.failed && h.mode == Open
	}
}
