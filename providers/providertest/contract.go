package providertest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/servicetest"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// Case is a client of a service and the fake that it is held against. Kind and Fake must
// be set.
type Case struct {
	Kind service.Kind
	Fake func(t testing.TB) *servicetest.Server
	// Section changes the settings, which else hold the fake's address and what it takes
	// as key, id and secret.
	Section func(*service.Section)
	// Text is what is spoken or heard, where it is not what all fakes hear.
	Text string
	// Kinds are the kinds of failure that a fault may show as, where they are not the usual one.
	Kinds map[servicetest.Fault][]providers.Kind
	// Causes are further causes that people may be told of a fault, where the service does not say it any better.
	Causes map[servicetest.Fault][]transport.Cause
	// Skip says of faults that the fake knows why they do not concern the role.
	Skip map[servicetest.Fault]string
	// Uploads says that a recogniser gives no partial transcripts, or that a voice gives
	// its sound in one piece.
	Uploads bool
	// Reuses says that a connection serves one request after another.
	Reuses bool
	// Truncates is what a service is sent that is told how much of an answer was heard; ""
	// where none can be told.
	Truncates string
	// Keeps says that connections, and who reads from them, outlive requests.
	Keeps bool
}

// usual is the kind of failure of each fault that is one.
func usual(f servicetest.Fault) (providers.Kind, bool) {
	switch f {
	case servicetest.WrongKey:
		return providers.Unauthorized, true
	case servicetest.NoMoney:
		return providers.NoCredit, true
	case servicetest.RateLimited:
		return providers.RateLimited, true
	case servicetest.WrongModel, servicetest.WrongVoice:
		return providers.BadRequest, true
	case servicetest.Silent, servicetest.Cut, servicetest.Closed, servicetest.Broken, servicetest.Huge:
		return providers.Unavailable, true
	default:
		return 0, false
	}
}

// causes are what people are to be told of the faults that they can mend.
var causes = map[servicetest.Fault][]transport.Cause{
	servicetest.WrongKey: {transport.CauseKey, transport.CauseBlocked, transport.CauseKeyless}, servicetest.NoMoney: {transport.CauseCredit}, servicetest.RateLimited: {transport.CauseRate},
	servicetest.WrongModel: {transport.CauseModel, transport.CauseApp, transport.CauseLicence}, servicetest.WrongVoice: {transport.CauseVoice, transport.CauseLicence},
}

// Time limits of the contract: short ones where they are to run out, and long ones where
// a busy machine must not make them.
const (
	soon    = 300 * time.Millisecond
	long    = 20 * time.Second
	prompt  = 2 * time.Second // for what the contract wants within 100 ms
	cleanUp = 10 * time.Second
)

// rowsOf is the attribute of a test that says of which role its parts are rows of the
// contract; scripts/contract.sh makes a table of them.
const rowsOf = "contract"

// section makes the settings of a test.
func (c Case) section(s *servicetest.Server, limit time.Duration, log *slog.Logger) service.Section {
	section := service.Section{
		Name: "under-test", Key: servicetest.Key, ID: servicetest.ID, Secret: servicetest.Secret, BaseURL: s.URL(), Proxy: "none",
		Timeouts: service.Timeouts{Connect: limit, First: limit, Next: limit}, Log: log,
	}
	if c.Section != nil {
		c.Section(&section)
	}
	return section
}

// words returns the text that the fake hears, or that is spoken.
func (c Case) words() string { return cmp.Or(c.Text, servicetest.Words) }

// trial is one test against a fake of its own.
type trial struct {
	*testing.T
	c    Case
	fake *servicetest.Server
	f    servicetest.Fault
	logs *safeBuffer
	errs []error
}

// each runs a test for every fault that the fake knows, and for none. They run side by
// side: most of their time they wait.
func (c Case) each(t *testing.T, run func(*trial)) {
	t.Helper()
	probe := c.Fake(t)
	for f := range servicetest.Last {
		if !probe.Knows(f) {
			continue
		}
		t.Run(f.String(), func(t *testing.T) {
			t.Parallel()
			if why := c.Skip[f]; why != "" {
				t.Skip(why)
			}
			c.try(t, f, run)
		})
	}
}

// try runs a test against a fake with a fault, and looks at what is left behind.
func (c Case) try(t *testing.T, f servicetest.Fault, run func(*trial)) {
	t.Helper()
	tr := &trial{T: t, c: c, fake: c.Fake(t), f: f, logs: &safeBuffer{}}
	tr.fake.Fail(f)
	pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("trial", t.Name())))
	run(tr)
	for _, shown := range append([]string{tr.logs.String()}, texts(tr.errs)...) {
		for _, secret := range []string{servicetest.Key, servicetest.Secret} {
			if strings.Contains(shown, secret) {
				t.Errorf("a secret is shown: %s", shown)
			}
		}
	}
	if !c.Keeps {
		tr.eventually("all connections are closed", func() bool { return tr.fake.Open() == 0 || tr.idleHTTP() })
		tr.eventually("no goroutine is left", func() bool { return len(tr.left()) == 0 })
	}
}

// idleHTTP says whether what is open are kept HTTP connections, which are no leak.
func (tr *trial) idleHTTP() bool { return tr.c.Reuses && tr.fake.Open() <= 8 }

func texts(errs []error) []string {
	var out []string
	for _, err := range errs {
		if err != nil {
			out = append(out, err.Error())
		}
	}
	return out
}

// limit is the time limit of the section: a short one for faults that are found out by it.
func (tr *trial) limit() time.Duration {
	switch tr.f {
	case servicetest.Silent, servicetest.Late:
		return soon
	default:
		return long
	}
}

func (tr *trial) section() service.Section {
	return tr.c.section(tr.fake, tr.limit(), slog.New(slog.NewTextHandler(tr.logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// wantKind checks that an error is one of the fault's kind, and keeps it.
func (tr *trial) wantKind(err error) {
	tr.Helper()
	tr.errs = append(tr.errs, err)
	failed, ok := errors.AsType[*providers.Error](err)
	if !ok {
		tr.Errorf("got error %v, want a *providers.Error", err)
		return
	}
	usually, _ := usual(tr.f)
	kinds := tr.c.Kinds[tr.f]
	if len(kinds) == 0 {
		kinds = []providers.Kind{usually}
	}
	if !slices.Contains(kinds, failed.Kind) || failed.Provider != "under-test" || failed.Op == "" {
		tr.Errorf("got a failure of kind %s by %q: %v, want kind %v", failed.Kind, failed.Provider, err, kinds)
	}
	want, told := causes[tr.f]
	if got := transport.CauseOf(err, tr.c.Kind.Free); told && !slices.Contains(append(slices.Clone(want), tr.c.Causes[tr.f]...), got) {
		tr.Errorf("people are told %s, want %s: %v", got, want, err)
	}
}

func (tr *trial) eventually(what string, is func() bool) {
	tr.Helper()
	for end := time.Now().Add(cleanUp); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			tr.Errorf("not in time: %s; %d connections are open; goroutines:\n%s\nof fakes:\n%s", what, tr.fake.Open(),
				strings.Join(tr.left(), "\n\n"), strings.Join(goroutines("xiaozhi/internal/servicetest"), "\n\n"))
			return
		}
	}
}

// left lists the goroutines of providers that the test has begun, or whose beginner is not
// known, but for those of net/http and of tests.
func (tr *trial) left() (out []string) {
	own := `"trial":` + strconv.Quote(tr.Name())
	for _, g := range goroutines("xiaozhi/providers/") {
		switch {
		case strings.Contains(g, "testing.tRunner"), strings.Contains(g, "net/http.(*persistConn)"):
		case strings.Contains(g, own), !strings.Contains(g, `"trial":`):
			out = append(out, g)
		}
	}
	return out
}

// goroutines lists those in whose stack or labels a word occurs.
func goroutines(word string) (out []string) {
	var all strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return []string{err.Error()}
	}
	for g := range strings.SplitSeq(all.String(), "\n\n") {
		if strings.Contains(g, word) {
			out = append(out, g)
		}
	}
	return out
}

// after calls do in a goroutine of the test, so that what that begins is known to be its own.
func after(d time.Duration, do func()) {
	go func() {
		time.Sleep(d)
		do()
	}()
}

// cancelled checks that a call ended by the context's own error, soon after its end.
func (tr *trial) cancelled(err error, took time.Duration) {
	tr.Helper()
	if err != context.Canceled { //nolint:errorlint // the contract says unchanged
		tr.Errorf("after the context has ended: got error %v, want %v", err, context.Canceled)
	}
	if took > prompt {
		tr.Errorf("it took %v after the end of the context", took)
	}
}

// safeBuffer is a buffer that many goroutines may write to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// speech is 16 kHz sound that is not silent.
func speech(d time.Duration) []int16 {
	pcm := make([]int16, int(16000*d.Seconds()))
	for i := range pcm {
		pcm[i] = int16(9000 * math.Sin(2*math.Pi*220*float64(i)/16000))
	}
	return pcm
}
