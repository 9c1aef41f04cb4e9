package account

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6238, as the apps of people have it
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Codes of the second factor (RFC 6238): six digits of HMAC-SHA-1, which change each 30 seconds. That of the step
// before and after counts too, for clocks that differ.
const (
	codeStep      = 30 * time.Second
	codeDigits    = 6
	codeSkew      = 1
	factorBytes   = 20 // of the secret (RFC 4226 section 4)
	recoveryCodes = 10
	recoveryBytes = 15 // 120 bits each, of which a plain hash may be kept (ASVS 6.5.2)
)

// factor is somebody's second factor. It is kept sealed.
type factor struct {
	Secret   []byte   `json:"secret"`
	Step     int64    `json:"step"`     // the last one whose code was used: none counts twice
	Recovery []string `json:"recovery"` // hashes of the codes that are left for who has lost the phone
}

// newFactor returns a second factor with the recovery codes, of which only hashes are kept.
func newFactor() (f factor, recovery []string) {
	f.Secret = make([]byte, factorBytes)
	_, _ = rand.Read(f.Secret) // never fails
	for range recoveryCodes {
		var b [recoveryBytes]byte
		_, _ = rand.Read(b[:])
		code := strings.ToLower(plainBase32().EncodeToString(b[:]))
		recovery = append(recovery, strings.Join([]string{code[:4], code[4:8], code[8:12], code[12:16], code[16:20], code[20:]}, "-"))
		f.Recovery = append(f.Recovery, keep(code))
	}
	return f, recovery
}

func plainBase32() *base32.Encoding { return base32.StdEncoding.WithPadding(base32.NoPadding) }

// address returns the otpauth:// address that phones take over.
func (f factor) address(name string) string {
	label := url.PathEscape("xiaozhi:" + name)
	return "otpauth://totp/" + label + "?secret=" + plainBase32().EncodeToString(f.Secret) + "&issuer=xiaozhi"
}

// codeAt returns the code of a step.
func codeAt(secret []byte, step int64, digits int) string {
	mac := hmac.New(sha1.New, secret)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash takes everything
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0x0f
	number := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	modulus := uint32(1)
	for range digits {
		modulus *= 10
	}
	return fmt.Sprintf("%0*d", digits, number%modulus)
}

// CodeNow returns the code that a phone with a secret, as it is typed, shows at a time; "" if it is no secret.
func CodeNow(secret string, at time.Time) string {
	raw, err := plainBase32().DecodeString(secret)
	if err != nil {
		return ""
	}
	return codeAt(raw, stepOf(at), codeDigits)
}

// use reports whether a code counts now, and uses it up: a code of the phone with all before it, a recovery code for good.
func (f *factor) use(code string, now time.Time) bool {
	code = strings.ToLower(strings.NewReplacer(" ", "", "-", "").Replace(code))
	if len(code) != codeDigits {
		kept := keep(code)
		i := slices.IndexFunc(f.Recovery, func(hash string) bool { return same(hash, kept) })
		if i >= 0 {
			f.Recovery = slices.Delete(slices.Clone(f.Recovery), i, i+1)
		}
		return i >= 0
	}
	used := int64(0)
	for step := stepOf(now) - codeSkew; step <= stepOf(now)+codeSkew; step++ {
		if subtle.ConstantTimeCompare([]byte(codeAt(f.Secret, step, codeDigits)), []byte(code)) == 1 && step > f.Step {
			used = step
		}
	}
	if used > 0 {
		f.Step = used
	}
	return used > 0
}

func stepOf(now time.Time) int64 { return now.Unix() / int64(codeStep/time.Second) }

func (f factor) String() string { return "a second factor" } // never its secret, in no log

func (f factor) encode() string {
	text, _ := json.Marshal(f) // it holds nothing that fails
	return string(text)
}

func decodeFactor(text string) (f factor, err error) {
	err = json.Unmarshal([]byte(text), &f)
	return f, err
}
