package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// killPause is the longest pause between two accounts: a hash of a password takes the processor for some 30 ms.
const killPause = 300 * time.Millisecond

// pause waits for a while that nobody knows before, and reports whether the life goes on.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(rand.N(killPause)):
		return true
	case <-ctx.Done():
		return false
	}
}

// people makes accounts by HTTP, in the session of the owner, who stays logged in over all lives.
func (k *victim) people(ctx context.Context) {
	for i := 0; i == 0 || pause(ctx); i++ {
		if k.cookie == "" && !k.login(ctx) {
			return
		}
		name := fmt.Sprintf("h%d-%d", k.round, i)
		order := map[string]string{"name": name, "role": "viewer", "password": goodPassword}
		switch status, _, said := k.order(ctx, "/api/v1/users", order, "Cookie", k.cookie); status {
		case http.StatusOK:
			k.add("account by HTTP", name)
		case http.StatusUnauthorized: // the password was shown long ago; whether the session is there is looked for after the life
			k.cookie = ""
		case 0:
			return
		default:
			k.add("refused", string(said))
			return
		}
	}
}

// login begins a session of the owner, who is made by the first one.
func (k *victim) login(ctx context.Context) bool {
	path, order := "/api/v1/login", map[string]string{"name": "olga", "password": goodPassword}
	if k.round == 0 { // which lasts until there is a session
		code := setupLine.FindStringSubmatch(k.server.banner.String())
		for ; code == nil; code = setupLine.FindStringSubmatch(k.server.banner.String()) {
			if !pause(ctx) {
				return false
			}
		}
		path, order["code"] = "/api/v1/setup", code[1]
	}
	status, header, said := k.order(ctx, path, order, "", "")
	if status == 0 {
		return false
	}
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	_, secret, ok := strings.Cut(cookie, "=")
	if status != http.StatusOK || !ok {
		k.add("refused", string(said))
		return false
	}
	sum := sha256.Sum256([]byte(secret))
	k.cookie = cookie
	k.add("session", hex.EncodeToString(sum[:]))
	return true
}

// command makes accounts beside the server.
func (k *victim) command(ctx context.Context, dir string) {
	for i := 0; i == 0 || pause(ctx); i++ {
		name := fmt.Sprintf("p%d-%d", k.round, i)
		cmd := exec.CommandContext(ctx, binary, "user", "--data", filepath.Join(dir, "data"), "add", name, "viewer")
		cmd.Stdin = strings.NewReader("a long pass phrase " + name + "\n")
		if out, err := cmd.CombinedOutput(); err == nil {
			k.add("account by the command", name)
		} else if ctx.Err() == nil {
			k.add("refused", string(out))
			return
		}
	}
}
