// Package access is the one place that decides who may ask what by HTTP. Each handler declares it with its route.
package access

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"xiaozhi/internal/account"
	"xiaozhi/internal/lockout"
	"xiaozhi/internal/lru"
	"xiaozhi/internal/text/message"
)

// Audience says who a route is for.
type Audience int

// The audiences.
const (
	Anyone  Audience = iota + 1 // strangers too: it tells nothing of people, or counts guesses by itself
	Devices                     // the handler finds out which device asks
	Bearers                     // the handler asks for tokens of its own
	People                      // who has logged in or has a token of an account, as Need says
)

// Route is a handler with its pattern, as of [http.ServeMux], and who may ask it.
type Route struct {
	Pattern string
	For     Audience
	Need    account.Need                                 // of People
	Owner   func(r *http.Request) (id string, err error) // whose the object is, "": nobody's; set where Need.Own is
	Handler http.Handler
	MaxBody int64                                                   // bytes that a request may send; 0: 1 MiB
	Use     Use                                                     // of People
	Refused func(w http.ResponseWriter, r *http.Request, err error) // answers who may not; nil: by JSON, for programs
}

// check says what is wrong with a route. What declares nothing is for nobody.
func (r Route) check() error {
	switch {
	case r.Pattern == "" || r.Handler == nil:
		return errors.New("it has no pattern or no handler")
	case r.For < Anyone || r.For > People:
		return errors.New("it does not say who it is for")
	case r.For == People && (r.Need.Role == "" || r.Need.Scope == "" && !r.Need.Fresh):
		return errors.New("it does not say what it needs")
	case r.For != People && (r.Need != account.Need{} || r.Use != Brief):
		return errors.New("it needs what nobody looks at")
	case r.Need.Own != (r.Owner != nil):
		return errors.New("whose the objects are is not asked, or cannot be")
	}
	return nil
}

// Options configure a [Guard].
type Options struct {
	Accounts *account.Service                 // nil: there are no accounts, so routes of people are for nobody
	Remote   func(r *http.Request) netip.Addr // nil: the other end of the connection
	Secure   func(r *http.Request) bool       // the browser came by https; nil: as the connection says
	Device   func(typed string) string        // the one spelling of a device's id; nil: as it is typed
	OwnHost  func(r *http.Request) bool       // Host is a name of this server, and leads here by nobody else's will; nil: addresses and localhost
	Now      func() time.Time                 // nil: time.Now
	Log      *slog.Logger

	At []string // addresses, host:port, at which what people ask is answered, and nowhere else; empty: everywhere

	PublicName string // that browsers may ask for by https alone, as everybody can check its certificate; "": none
}

// Guard lets requests through to their handlers. Its methods may be called at the same time.
type Guard struct {
	o       Options
	foreign *http.CrossOriginProtection
	guesses *lockout.Guesses // at tokens
	admin   string           // token of who owns the machine; "": nobody has one

	mu    sync.Mutex
	rates *lru.Cache[string, *rate.Limiter] // of people, by id

	lasting lasting
}

// SetAdmin makes token one by which everything may be asked that tokens can, whether or not there are accounts. It must
// be called before anything is served.
func (g *Guard) SetAdmin(token string) { g.admin = token }

// How often a person may ask, by all browsers and programs together.
const (
	perSecond = 30
	maxRates  = 4096 // people of whom that is remembered
)

// New returns a guard.
func New(o Options) *Guard {
	if o.Remote == nil {
		o.Remote = func(r *http.Request) netip.Addr {
			at, _ := netip.ParseAddrPort(r.RemoteAddr) // of another network: no address, which counts as one
			return at.Addr()
		}
	}
	if o.Secure == nil {
		o.Secure = func(r *http.Request) bool { return r.TLS != nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Device == nil {
		o.Device = func(typed string) string { return typed }
	}
	if o.OwnHost == nil {
		o.OwnHost = addressed
	}
	return &Guard{
		o: o, foreign: http.NewCrossOriginProtection(), guesses: lockout.New(), rates: lru.New[string, *rate.Limiter](maxRates, 0), lasting: lasting{streams: map[string]int{}},
	}
}

// addressed reports whether the server is asked for by an address, or as this machine.
func addressed(r *http.Request) bool {
	host := hostname(r.Host)
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(host, "localhost")
}

// hostname returns a host without its port and brackets.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.Trim(host, "[]")
}

// named lets requests through that ask for this server by a name of its own: another name can lead a browser here
// unnoticed (DNS rebinding).
func (g *Guard) named(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.o.OwnHost(r) {
			answer(w, http.StatusMisdirectedRequest, refusal{"access/host", message.Both("access/host")})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// arrivedAt lets requests through that came to one of the addresses; if there are none, all.
func arrivedAt(addresses []string, next http.Handler) http.Handler {
	if len(addresses) == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if !ok || !slices.ContainsFunc(addresses, func(address string) bool { return Covers(address, local) }) {
			answer(w, http.StatusNotFound, refusal{"access/elsewhere", message.Both("access/elsewhere")})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Covers reports whether a listener of address, host:port, gets connections to local.
func Covers(address string, local net.Addr) bool {
	host, port, err := net.SplitHostPort(address)
	tcp, ok := local.(*net.TCPAddr)
	if err != nil || !ok || port != strconv.Itoa(tcp.Port) {
		return false
	}
	at, err := netip.ParseAddr(host)
	switch {
	case host == "" || err == nil && at.IsUnspecified():
		return true
	case host == "localhost":
		return tcp.IP.IsLoopback()
	}
	return err == nil && at.Unmap() == tcp.AddrPort().Addr().Unmap()
}

// often counts a request of a person, and reports one that is too much. The admin token is nobody's.
func (g *Guard) often(p account.Person) error {
	if p.ID == "" {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	limiter, ok := g.rates.Get(p.ID)
	if !ok {
		limiter = rate.NewLimiter(perSecond, 2*perSecond)
		g.rates.Put(p.ID, limiter, 0)
	}
	if limiter.AllowN(g.o.Now(), 1) {
		return nil
	}
	return &account.TooOftenError{Wait: time.Second}
}

// maxRequest bounds the body of a request, in bytes, where the route declares no other limit.
const maxRequest = 1 << 20

// Mux returns a handler of all routes, or says which one declares itself wrongly. It sets the headers of [Guard.Headers].
func (g *Guard) Mux(routes []Route) (http.Handler, error) {
	mux := http.NewServeMux()
	for _, r := range append(slices.Clip(routes), Route{Pattern: programs, For: Anyone, Handler: elsewhere(mux)}) {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("route %q: %w", r.Pattern, err)
		}
		h := r.Handler
		switch {
		case r.For == People:
			h = g.people(r)
		case r.For == Anyone && ofPeople(r.Pattern):
			h = g.named(h)
		}
		if r.For == People || ofPeople(r.Pattern) {
			h = arrivedAt(g.o.At, h)
		}
		mux.Handle(r.Pattern, g.recovering(bounded(h, cmp.Or(r.MaxBody, maxRequest))))
	}
	return g.Headers(mux), nil
}

// ofPeople reports whether a pattern is of what browsers of people ask, which no other name may lead to.
func ofPeople(pattern string) bool {
	_, path, ok := strings.Cut(pattern, " ")
	if !ok {
		path = pattern
	}
	return path == "/{$}" || strings.HasPrefix(path, "/console") || strings.HasPrefix(path, programs)
}

// bounded lets nobody send more than so many bytes.
func bounded(h http.Handler, size int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = http.MaxBytesReader(w, r.Body, size)
		}
		h.ServeHTTP(w, r)
	})
}

// recovering answers for a handler that panics, by a number that is in the log too.
func (g *Guard) recovering(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			g.broken(w, r, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}()
		h.ServeHTTP(w, r)
	})
}

// broken answers for a failure whose reason is not for the one who asks.
func (g *Guard) broken(w http.ResponseWriter, r *http.Request, err error) {
	id := strconv.FormatInt(g.o.Now().UnixNano(), 36)
	g.o.Log.Error("a request failed", "id", id, "method", r.Method, "path", r.URL.Path, "err", err)
	answer(w, http.StatusInternalServerError, refusal{"access/failed", message.Both("access/failed", id)})
}

type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// answer writes JSON that nobody may keep.
func answer(w http.ResponseWriter, status int, body any) {
	h := w.Header()
	JSONHeaders(w)
	h.Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the other end may be gone
}

// refuse answers with what an error says.
func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if often, ok := errors.AsType[*account.TooOftenError](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(often.Wait.Seconds()))))
		answer(w, http.StatusTooManyRequests, refusal{"account/too-often", err.Error()})
		return
	}
	if choice, ok := errors.AsType[*ChoiceError](err); ok {
		answer(w, http.StatusBadRequest, refusal{"access/choice", choice.Error()})
		return
	}
	reason, ok := errors.AsType[account.ReasonError](err)
	if !ok {
		g.broken(w, r, err)
		return
	}
	status := http.StatusBadRequest
	switch reason {
	case account.ErrNoSession, account.ErrNoToken, account.ErrBadLogin, account.ErrProveAgain, account.ErrCodeNeeded:
		status = http.StatusUnauthorized
	case account.ErrForbidden, account.ErrOrigin, account.ErrHasOwner, account.ErrNoInvite:
		status = http.StatusForbidden
	case account.ErrNameTaken, account.ErrLastOwner, account.ErrHasFactor, account.ErrTokensMany, account.ErrOwnAccount:
		status = http.StatusConflict
	case account.ErrNoUser, account.ErrNoDevice, account.ErrNoTalk:
		status = http.StatusNotFound
	case account.ErrBusy:
		w.Header().Set("Retry-After", "1")
		status = http.StatusServiceUnavailable
	case account.ErrNoSealer:
		status = http.StatusServiceUnavailable
	default: // what was asked for cannot be
	}
	answer(w, status, refusal{string(reason), reason.Error()})
}

// Answer writes JSON that nobody may keep.
func Answer(w http.ResponseWriter, status int, body any) { answer(w, status, body) }

// Refuse answers why something was not done: by a code for programs, and a text in both languages.
func Refuse(w http.ResponseWriter, status int, code, text string) {
	answer(w, status, refusal{code, text})
}

// Fail answers for an error that is not for the one who asks; the log has it.
func (g *Guard) Fail(w http.ResponseWriter, r *http.Request, err error) { g.refuse(w, r, err) }

// Did keeps in the audit and in the log what the one who asks has done to an object, and whether it was done.
func (g *Guard) Did(r *http.Request, act, object string, outcome error) {
	by := PersonOf(r).Actor(g.o.Remote(r).String())
	if g.o.Accounts != nil {
		g.o.Accounts.Did(r.Context(), by, act, object, outcome)
		return
	}
	g.o.Log.Info("audit", "act", act, "who", by.Name, "via", by.Via, "remote", by.Remote, "object", object, "ok", outcome == nil)
}

// Body reads a request that is JSON, of 64 KiB at most. Not ok: it has been answered.
func (g *Guard) Body(w http.ResponseWriter, r *http.Request) (body []byte, ok bool) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && kind != "application/merge-patch+json" {
		answer(w, http.StatusUnsupportedMediaType, refusal{"access/no-json", message.Both("access/no-json")})
		return nil, false
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxDocument))
	if _, long := errors.AsType[*http.MaxBytesError](err); long {
		answer(w, http.StatusRequestEntityTooLarge, refusal{"access/too-long", message.Both("access/too-long", maxDocument>>10)})
		return nil, false
	}
	if err != nil || !json.Valid(body) {
		answer(w, http.StatusBadRequest, refusal{"access/no-json", message.Both("access/no-json")})
		return nil, false
	}
	return body, true
}

// personKey finds the person in the context of a request.
type personKey struct{}

// PersonOf returns who asks. Only routes for [People] have somebody.
func PersonOf(r *http.Request) account.Person {
	p, _ := r.Context().Value(personKey{}).(account.Person)
	return p
}

// people lets those through whom the route is for.
func (g *Guard) people(route Route) http.Handler {
	return g.named(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := g.who(r)
		if err == nil {
			err = g.often(p)
		}
		if err == nil {
			err = g.may(route, p, r)
		}
		if err == nil {
			err = g.lasting.serve(w, r, route, p, func(r *http.Request) error {
				p, err := g.who(r)
				return cmp.Or(err, p.May(account.Need{Role: route.Need.Role, Scope: route.Need.Scope}, "", g.o.Now()))
			})
		}
		if err != nil {
			refused := g.refuse
			if route.Refused != nil {
				refused = route.Refused
			}
			refused(w, r, err)
		}
	}))
}

// may decides by what the route declares, and keeps a refusal in the audit.
func (g *Guard) may(route Route, p account.Person, r *http.Request) error {
	owner := ""
	if route.Owner != nil {
		var err error
		if owner, err = route.Owner(r); err != nil {
			return err
		}
	}
	err := p.May(route.Need, owner, g.o.Now())
	if errors.Is(err, account.ErrForbidden) && g.o.Accounts != nil {
		g.o.Accounts.Refused(r.Context(), p.Actor(g.o.Remote(r).String()), route.Pattern)
	}
	return err
}
