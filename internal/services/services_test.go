package services

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/audio/file"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/servicetest"
	"xiaozhi/internal/servicetest/deepgram"
	"xiaozhi/internal/servicetest/openairealtime"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/chain"
	"xiaozhi/providers/providertest"
	"xiaozhi/providers/service"
	"xiaozhi/store"
)

// transaction is the settings of a test: a plan is what the loader says, without a server that is built.
type transaction struct {
	cfg  *config.Config
	rev  int
	next *config.Config
	safe *safe
}

func (x *transaction) Current() *config.Config { return x.cfg }
func (x *transaction) Revision() int           { return x.rev }

func (x *transaction) Plan(_ context.Context, _ account.Person, base int, edits []settings.Edit) (*settings.Plan, error) {
	if base != x.rev {
		return nil, &settings.StaleError{Now: x.rev}
	}
	for i, e := range edits { // a secret is sealed
		if key := e.Path[len(e.Path)-1]; key == "api_key" {
			value := fmt.Sprint(e.Value)
			name := fmt.Sprint("console.", len(x.safe.all))
			x.safe.all[name] = store.Secret{Name: name, Sealed: value, ByID: "olga", Tail: value[max(0, len(value)-4):], At: time.Now()}
			edits[i].Value = sealedPrefix + name
		}
	}
	doc, err := config.JSON(withEdits(ofConsole(x.cfg), edits))
	if err != nil {
		return nil, err
	}
	next, _, err := x.cfg.Sources().Load(config.Layer{Doc: doc})
	if err != nil {
		return nil, err
	}
	x.next = next
	return &settings.Plan{ID: "p", Changes: next.Compare(x.cfg)}, nil
}

func (x *transaction) Apply(context.Context, account.Person, string) (settings.Revision, error) {
	x.cfg = x.next
	x.rev++
	return settings.Revision{N: x.rev}, nil
}

func (x *transaction) Undo(context.Context, account.Person, int) (settings.Revision, error) {
	return settings.Revision{}, settings.ErrNoneSuch
}

// safe is a vault of a test, which does not seal.
type safe struct{ all map[string]store.Secret }

func (s *safe) List(context.Context) (all []store.Secret, err error) {
	for _, one := range s.all {
		all = append(all, one)
	}
	return all, nil
}

const (
	rightKey = "sk-the-right-key-0123456789"
	wrongKey = "sk-a-wrong-key-9876543210"
)

var olga = account.Person{ID: "o", Name: "olga", Proved: time.Now()}

// bench is a server's services with settings of a file, and a cloud that takes one key.
type bench struct {
	*Services
	*transaction
	safe  *safe
	cloud *openaitest.Server
	log   bytes.Buffer
}

func newBench(t *testing.T, yaml string) *bench {
	t.Helper()
	t.Chdir(t.TempDir())
	cloud, err := openaitest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cloud.Close() })
	if err := os.WriteFile("config.yaml", []byte(strings.ReplaceAll(yaml, "CLOUD", cloud.URL())), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(config.Options{DataDir: filepath.Join(t.TempDir(), "data")})
	if err != nil {
		t.Fatal(err)
	}
	kept := &safe{map[string]store.Secret{}}
	b := &bench{transaction: &transaction{cfg: cfg, safe: kept}, safe: kept, cloud: cloud}
	b.Services = New(Options{
		Settings: b.transaction, Vault: b.safe, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		States: func() engines.States { return engines.States{} },
		Unseal: func(_ context.Context, cfg *config.Config) error {
			return cfg.Unseal(func(name string, _ config.SecretUse) (string, error) { return b.safe.all[name].Sealed, nil })
		},
	})
	for _, role := range []openaitest.Role{openaitest.Chat, openaitest.Transcribe, openaitest.Speak, openaitest.Embed} {
		b.locked(role)
	}
	return b
}

// locked has a role refuse all keys but one, and call the tool of a test once.
func (b *bench) locked(role openaitest.Role) {
	b.cloud.Handle(role, func(r *openaitest.Request) openaitest.Reply {
		switch {
		case r.Header.Get("Authorization") != "Bearer "+rightKey:
			return openaitest.Failure(http.StatusUnauthorized, "Incorrect API key provided: "+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		case role == openaitest.Transcribe:
			return openaitest.JSON(200, `{"text":"The weather is nice today, let us go for a walk."}`)
		case role == openaitest.Speak:
			return openaitest.Sound("audio/pcm", openaitest.Tone(24000, 440, time.Second), 4096)
		case role == openaitest.Embed:
			return openaitest.Vectors(r)
		case bytes.Contains(r.Body, []byte(`"role":"tool"`)):
			return openaitest.Text("It is 23 degrees.")
		}
		return openaitest.Calls(openaitest.Call{ID: "c", Name: "get_temperature", Arguments: `{"city":"Beijing"}`})
	})
}

func (b *bench) draft(typed ...string) Draft {
	d := Draft{Name: "mine", Type: "openai", New: true, Typed: map[string]string{"base_url": b.cloud.URL()}}
	for i := 0; i+1 < len(typed); i += 2 {
		d.Typed[typed[i]] = typed[i+1]
	}
	return d
}

// TestDraftIsTried: a wrong key is told in plain words and not shown, the right one lets it speak, hear and
// answer with the tool; nothing of it is set.
func TestDraftIsTried(t *testing.T) {
	b := newBench(t, "")
	r, err := b.Test(t.Context(), olga, b.draft("api_key", wrongKey), text.English, 1)
	if err != nil || len(r.Outcomes) != 4 || r.OK() {
		t.Fatal(r, err)
	}
	for _, o := range r.Outcomes {
		if o.Role == service.ASR { // no voice has said anything to it
			continue
		}
		if o.Fault == nil || o.Fault.In(text.English) != "The key is wrong, or not for this" || !strings.Contains(o.Fault.In(text.Chinese), "密钥") {
			t.Errorf("%s with a wrong key: %+v", o.Role, o.Fault)
		} else if strings.Contains(o.Fault.Raw(), wrongKey) || o.Fault.Raw() == "" {
			t.Errorf("%s: the service said %q", o.Role, o.Fault.Raw())
		}
	}
	r, err = b.Test(t.Context(), olga, b.draft("api_key", rightKey), text.English, 1)
	if err != nil || !r.OK() {
		t.Fatalf("%+v %v", r, err)
	}
	by := map[service.Role]Outcome{}
	for _, o := range r.Outcomes {
		by[o.Role] = o
	}
	data, _, ok := b.Clip(olga.ID, by[service.TTS].Clip)
	pcm, rate, err := file.ReadWAV(bytes.NewReader(data))
	if !ok || err != nil || rate != testRate || len(pcm) < rate*9/10 {
		t.Errorf("the sound: %d samples at %d Hz, %v", len(pcm), rate, err)
	}
	if _, _, ok := b.Clip("somebody else", by[service.TTS].Clip); ok {
		t.Error("somebody else hears it")
	}
	if o := by[service.ASR]; o.Heard != "The weather is nice today, let us go for a walk." || o.Wrong != 0 {
		t.Errorf("heard: %+v", o)
	}
	if o := by[service.LLM]; !o.Called || o.Text != "It is 23 degrees." || o.First == 0 || o.Total < o.First {
		t.Errorf("thought: %+v", o)
	}
	if o := by[service.Embed]; o.Dimensions != 64 || o.First == 0 || o.Text != "The garage key hangs behind the front door." {
		t.Errorf("embedded: %+v", o)
	}
	if r, err = b.Test(t.Context(), olga, b.draft("api_key", rightKey), text.English, 3); err != nil || r.Outcomes[2].Runs != 3 || r.Outcomes[2].Slowest < r.Outcomes[2].Total {
		t.Errorf("three times: %+v %v", r, err)
	}
	one := b.draft("api_key", rightKey)
	one.Try = []service.Role{service.LLM}
	if r, err = b.Test(t.Context(), olga, one, text.English, 1); err != nil || len(r.Outcomes) != 1 || r.Outcomes[0].Role != service.LLM {
		t.Errorf("of one role: %+v %v", r, err)
	}
	if len(b.cfg.Providers) > 0 || b.rev != 0 || len(b.safe.all) > 0 {
		t.Error("a test has set something")
	}
}

// TestServiceThatHangsIsEnded: it is said that it gave nothing, in the time that a test may take.
func TestServiceThatHangsIsEnded(t *testing.T) {
	b := newBench(t, "")
	b.o.Limit = 300 * time.Millisecond
	for _, role := range []openaitest.Role{openaitest.Chat, openaitest.Speak, openaitest.Embed} {
		b.cloud.Reply(role, openaitest.Reply{Hang: true})
	}
	begun := time.Now()
	r, err := b.Test(t.Context(), olga, b.draft("api_key", rightKey), text.English, 1)
	if err != nil || time.Since(begun) > 5*time.Second {
		t.Fatalf("%v, after %v", err, time.Since(begun))
	}
	for _, o := range r.Outcomes {
		if o.Role != service.ASR && (o.Fault == nil || o.Fault.ID() != "services/hung") {
			t.Errorf("%s: %+v", o.Role, o.Fault)
		}
	}
}

// TestFewTestsAtATime: a person tries one service after the other, and few people do at the same time; who is refused reads
// why, and a test that has ended makes room.
func TestFewTestsAtATime(t *testing.T) {
	b := newBench(t, "")
	b.cloud.Reply(openaitest.Chat, openaitest.Reply{Hang: true}, openaitest.Reply{Hang: true}, openaitest.Reply{Hang: true})
	one := b.draft("api_key", rightKey)
	one.Try = []service.Role{service.LLM}
	people := []account.Person{{ID: "o", Proved: time.Now()}, {ID: "p", Proved: time.Now()}, {ID: "q", Proved: time.Now()}}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i, who := range people[:maxTests] {
		running.Go(func() { _, _ = b.Test(ctx, who, one, text.English, 1) })
		if _, err := b.cloud.Await(t.Context(), openaitest.Chat, i+1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Test(t.Context(), people[0], one, text.English, 1); !errors.Is(err, ErrTwo) {
		t.Errorf("a second one of the same person: %v", err)
	}
	if _, _, err := b.Voices(t.Context(), people[0], "mine"); !errors.Is(err, ErrTwo) {
		t.Errorf("voices beside it: %v", err)
	}
	if _, err := b.Test(t.Context(), people[2], one, text.English, 1); !errors.Is(err, ErrBusy) {
		t.Errorf("one of too many people: %v", err)
	}
	if out := b.Sample(t.Context(), people[2], "mine", "", text.Chinese); out.Fault == nil || out.Fault.In(text.Chinese) != "其他人正在测试服务，请过几秒再试。" {
		t.Errorf("a sample beside them: %+v", out.Fault)
	}
	stop()
	running.Wait()
	if _, err := b.Test(t.Context(), people[2], one, text.English, 1); errors.Is(err, ErrBusy) {
		t.Error("tests that have ended make no room")
	}
}

// TestAddressesThatAreNotAsked: the doors of clouds to their machines stay shut, and no request goes there.
func TestAddressesThatAreNotAsked(t *testing.T) {
	b := newBench(t, "")
	for _, at := range []string{"http://169.254.169.254/v1", "http://[fe80::1]/v1", "http://[::ffff:169.254.1.1]:80/v1"} {
		_, err := b.Test(t.Context(), olga, b.draft("api_key", rightKey, "base_url", at), text.English, 1)
		if wrong, ok := errors.AsType[*MistakesError](err); !ok || wrong.All[0].Field != "base_url" {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// TestSaveAndEdit: what was typed becomes a section with a sealed key, first in its chains; an empty key stays as it is,
// and another host wants it again.
func TestSaveAndEdit(t *testing.T) {
	b := newBench(t, "")
	d := b.draft("api_key", rightKey, "voice", "nova", "voice.zh", "alloy", "temperature", "0,7", "extra", `{"seed": 1}`, "price.input", "2.5", "timeout", "5s")
	d.Join = []service.Role{service.LLM, service.TTS}
	plan, err := b.Services.Plan(t.Context(), olga, d)
	if err != nil {
		t.Fatal(err)
	}
	if shown := fmt.Sprint(plan); strings.Contains(shown, rightKey) || !strings.Contains(shown, "providers.mine") {
		t.Errorf("the plan: %s", shown)
	}
	if _, err := b.Services.Apply(t.Context(), olga, plan.ID); err != nil {
		t.Fatal(err)
	}
	p := b.cfg.Providers["mine"]
	if p.Type != "openai" || p.Voice.For("zh") != "alloy" || p.Voice.For("en") != "nova" || *p.Temp != 0.7 || fmt.Sprint(p.Extra["seed"]) != "1" || p.Price.Input != 2.5 || p.Timeout != 5*time.Second {
		t.Errorf("set: %+v", p)
	}
	if b.cfg.LLM[0] != "mine" || b.cfg.TTS[0] != "mine" || b.cfg.ASR[0] == "mine" || !slices.Contains(b.cfg.LLM, "rules") {
		t.Errorf("chains: %v %v %v", b.cfg.ASR, b.cfg.LLM, b.cfg.TTS)
	}
	if len(b.safe.all) != 1 || !strings.HasPrefix(string(p.APIKey), "sealed:console.") {
		t.Errorf("the key: %v", p.APIKey)
	}
	f, ok := b.Form(t.Context(), "mine", "")
	if !ok || f.New || f.Place != "" {
		t.Fatalf("%+v", f)
	}
	typed := map[string]string{}
	for _, field := range f.Fields {
		if typed[field.Key] = field.Value; strings.Contains(field.Value, rightKey) {
			t.Errorf("%s shows the key", field.Key)
		}
		if field.Key == "api_key" && (field.Kept == nil || field.Kept.Tail != "6789" || field.Kept.By != "olga") {
			t.Errorf("of the key: %+v", field.Kept)
		}
	}
	same := Draft{Name: "mine", Type: "openai", Base: b.rev, Typed: typed}
	if edits, err := b.edits(same); err != nil || len(edits) > 0 {
		t.Errorf("nothing was typed, and it changes %v, %v", edits, err)
	}
	typed["model"] = "gpt-other"
	if edits, err := b.edits(same); err != nil || len(edits) != 1 || edits[0].Value != "gpt-other" {
		t.Errorf("a model was typed: %v, %v", edits, err)
	}
	typed["base_url"] = "https://evil.example/v1"
	for name, f := range map[string]func() error{
		"saved":  func() error { _, err := b.Services.Plan(t.Context(), olga, same); return err },
		"tested": func() error { _, err := b.Test(t.Context(), olga, same, text.English, 1); return err },
	} {
		if wrong, ok := errors.AsType[*MistakesError](f()); !ok || wrong.All[0].Field != "api_key" || wrong.All[0].ID != "services/key-again" {
			t.Errorf("another host, %s: %+v", name, wrong)
		}
	}
}

// TestMistakesStandAtTheirFields: what cannot be is told where it was typed, and nothing is kept of it.
func TestMistakesStandAtTheirFields(t *testing.T) {
	b := newBench(t, "providers: {there: {type: openai, api_key: "+rightKey+"}}\n")
	long := strings.Repeat("长", 10000)
	for field, values := range map[string][]string{
		"temperature": {"warm", "<b>", "NaN", "-Inf"}, "price.input": {"NaN", "-1", "1e300"}, "max_tokens": {"1.5", long}, "timeout": {"soon"}, "extra": {"{{.}}", "[1]"},
		"base_url": {"ftp://x", "<img onerror=alert(1)>"}, "api_key": {"Bearer x", "密钥", long}, "speed": {"fast"},
	} {
		for _, v := range values {
			_, err := b.Services.Plan(t.Context(), olga, b.draft("api_key", rightKey, field, v))
			wrong, ok := errors.AsType[*MistakesError](err)
			if !ok || !slices.ContainsFunc(wrong.All, func(m Mistake) bool {
				return m.Field == field && m.In(text.English) != "" && m.In(text.Chinese) != ""
			}) {
				t.Errorf("%s = %.20q: %v %+v", field, v, err, wrong.All)
			}
		}
	}
	for _, name := range []string{"", "auto", "a b", "a.b", "there", long} {
		d := b.draft()
		d.Name = name
		if wrong, ok := errors.AsType[*MistakesError](second(b.Services.Plan(t.Context(), olga, d))); !ok || wrong.All[0].Field != "name" {
			t.Errorf("a service called %.20q: %+v", name, wrong)
		}
	}
	if len(b.safe.all) > 0 || b.rev != 0 {
		t.Errorf("something was kept: %v", b.safe.all)
	}
	d := b.draft("api_key", rightKey)
	d.Base = 7
	if _, err := b.Services.Plan(t.Context(), olga, d); !isStale(err) {
		t.Errorf("over another revision: %v, %v", err, b.safe.all)
	}
}

// TestPlanTranslated: a person reads a plan in one language.
func TestPlanTranslated(t *testing.T) {
	for lang, want := range map[text.Lang]string{
		text.English: "providers.a.model: none here; the key is wrong: status 401",
		text.Chinese: "这里没有; 密钥不对: status 401",
	} {
		p := Plan{
			Warnings: []string{"console#3: providers.a.model: none here / 这里没有"},
			Checks:   []Check{{Why: "the key is wrong / 密钥不对: status 401"}},
		}
		p.Translate(lang)
		if got := p.Warnings[0] + "; " + p.Checks[0].Why; got != want {
			t.Errorf("%s: %s, want %s", lang, got, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func isStale(err error) bool { _, ok := errors.AsType[*settings.StaleError](err); return ok }

// TestHeldSecrets: a key that was typed is there for the same person, service and host, and for no other.
func TestHeldSecrets(t *testing.T) {
	b := newBench(t, "")
	id := b.Hold("o", b.draft("api_key", rightKey))
	again := b.draft()
	if keys := b.Held("o", id, &again); len(keys) != 1 || again.Typed["api_key"] != rightKey {
		t.Errorf("again: %v", keys)
	}
	for name, d := range map[string]Draft{"another host": b.draft("base_url", "https://evil.example"), "a proxy that reads it": b.draft("proxy", "http://evil.example"), "typed anew": b.draft("api_key", "x")} {
		if keys := b.Held("o", id, &d); len(keys) > 0 {
			t.Errorf("%s: %v", name, d.Typed)
		}
	}
	other := b.draft()
	if keys := b.Held("somebody", id, &other); len(keys) > 0 {
		t.Error("somebody else gets it")
	}
	if b.Hold("o", b.draft()) != "" {
		t.Error("nothing was typed, and it is held")
	}
}

// TestArrange: members move, join and leave, what "auto" stands for is written out, and the last of a chain stays.
func TestArrange(t *testing.T) {
	b := newBench(t, "providers: {a: {type: openai, api_key: "+rightKey+"}, b: {type: deepseek, api_key: "+rightKey+"}}\nllm: [auto, rules]\ntts: [local]\n")
	members := func(names ...string) (all []engines.MemberState) {
		for _, n := range names {
			all = append(all, engines.MemberState{Name: n, Condition: chain.Closed})
		}
		return all
	}
	b.o.States = func() engines.States {
		llm := []string{"a", "b", "rules"}
		if !slices.Contains(b.cfg.LLM, "auto") {
			llm = b.cfg.LLM
		}
		return engines.States{Chains: []engines.ChainState{{Role: service.LLM, Members: members(llm...)}, {Role: service.TTS, Members: members(b.cfg.TTS...)}}}
	}
	of := func(r service.Role) Chain {
		i := slices.IndexFunc(b.Chains(), func(c Chain) bool { return c.Role == r })
		return b.Chains()[i]
	}
	if c := of(service.LLM); !c.Auto || c.Set || fmt.Sprint(c.names()) != "[a b rules]" || !c.Members[0].Auto || c.Members[2].Auto {
		t.Errorf("at first: %+v", c)
	}
	do := func(role service.Role, name string, what Do) error {
		_, err := b.Arrange(t.Context(), olga, b.rev, Order{Role: role, Name: name, Do: what})
		return err
	}
	for _, step := range []struct {
		role service.Role
		name string
		do   Do
		want string
	}{
		{service.LLM, "b", Up, "[b a rules]"},
		{service.LLM, "b", Down, "[a b rules]"},
		{service.LLM, "b", Leave, "[a rules]"},
		{service.LLM, "b", Add, "[b a rules]"},
		{service.LLM, "", Auto, "[auto rules]"},
		{service.TTS, "a", Add, "[a local]"},
		{service.TTS, "local", Leave, "[a]"},
	} {
		if err := do(step.role, step.name, step.do); err != nil || fmt.Sprint(chainOf(b.cfg, step.role)) != step.want {
			t.Errorf("%s %s: %v, %v, want %s", step.do, step.name, chainOf(b.cfg, step.role), err, step.want)
		}
	}
	if err := do(service.TTS, "a", Leave); !errors.Is(err, ErrLast) {
		t.Errorf("the last one: %v", err)
	}
	if err := do(service.TTS, "nobody", Up); err == nil {
		t.Error("nobody was moved")
	}
	if c := of(service.TTS); !c.Set || !slices.Equal(c.More, []string{"local"}) {
		t.Errorf("at the end: %+v", c)
	}
	if _, err := b.Remove(t.Context(), olga, b.rev, "a"); err == nil {
		t.Error("a service of a file was removed")
	}
}

// TestFieldsOfAllKinds: each field of each kind has a key that the loader of the settings knows.
func TestFieldsOfAllKinds(t *testing.T) {
	for _, k := range Kinds() {
		seen := map[string]bool{}
		for _, f := range fieldsOf(k, config.Provider{Type: k.Type}) {
			if seen[f.Key] {
				t.Errorf("%s: %s stands twice", k.Type, f.Key)
			}
			if !config.Changeable(pathOf("x", f.Key)) {
				t.Errorf("%s: %s can be typed, and not be saved", k.Type, f.Key)
			}
			seen[f.Key] = true
		}
		for _, need := range k.Needs {
			if !seen[string(need)] {
				t.Errorf("%s: %s is needed and no field", k.Type, need)
			}
		}
	}
}

// TestUsage sums up requests by role, with those that took over from one that was too slow.
func TestUsage(t *testing.T) {
	b := newBench(t, "")
	b.o.Spans = func(_ context.Context, _ int, each func(string)) error {
		for range 150 {
			each(`{"attempts":[{"op":"think","part":1,"provider":"a","at":0,"took":900,"outcome":"lost"},{"op":"think","part":1,"provider":"b","at":500,"first":200,"took":300,"outcome":"answered","cost":0.01}]}`)
		}
		// It is asked when the user begins, and hears a part before the end: 300 ms after the endpoint it knows all.
		each(`{"zero":1,"marks":{"endpoint":500},"attempts":[{"op":"recognize","provider":"ears","at":-2500,"first":900,"took":3300,"outcome":"answered"}]}`)
		each(`{"zero":1,"marks":{"endpoint":500},"attempts":[{"op":"recognize","provider":"whole","at":520,"first":400,"took":400,"outcome":"answered"}]}`)
		each(`{"attempts":[{"op":"recognize","provider":"old","at":0,"first":3000,"took":3000,"outcome":"answered"}]}`)
		each(`{"attempts":[{"op":"speak","provider":"a","at":0,"took":9,"outcome":"failed"}]}`)
		each("what is this")
		return nil
	}
	all := b.Usage(t.Context())
	if u := all[service.LLM]["b"]; u.Requests != 100 || u.Won != 100 || u.P50 != 200*time.Millisecond || u.Cost < 0.99 || u.Failed != 0 {
		t.Errorf("b: %+v", u)
	}
	if u := all[service.LLM]["a"]; u.Won != 0 || u.Unpriced != 100 || u.P95 != 0 {
		t.Errorf("a: %+v", u)
	}
	for name, want := range map[string]time.Duration{"ears": 300 * time.Millisecond, "whole": 400 * time.Millisecond, "old": 0} {
		if u := all[service.ASR][name]; u.P50 != want || u.Requests != 1 {
			t.Errorf("%s: %+v", name, u)
		}
	}
	if u := all[service.TTS]["a"]; u.Failed != 1 || u.Requests != 1 {
		t.Errorf("the voice a: %+v", u)
	}
}

// TestTrialsOfOtherRoles: a recogniser without a voice hears that of the server, a voice without ears is heard by the server's,
// and a service that hears and speaks by itself is asked aloud.
func TestTrialsOfOtherRoles(t *testing.T) {
	b := newBench(t, "")
	b.o.Voice = func() providers.TTS {
		return &providertest.TTS{Label: "house voice", Script: []providertest.Speech{{Length: 1200 * time.Millisecond}}}
	}
	b.o.Ears = func() providers.ASR {
		return &providertest.ASR{Label: "house ears", Script: []providertest.Hearing{{Text: "the weather is nice today"}}}
	}
	ears, duplex := deepgram.New(t), openairealtime.New(t)
	for name, test := range map[string]struct {
		kind, at, key string
		try           service.Role
		want          func(o Outcome) bool
	}{
		"ears":     {"deepgram", ears.WS(), servicetest.Key, service.ASR, func(o Outcome) bool { return o.By == "house voice" && o.Heard == servicetest.Words && o.Clip != "" }},
		"voice":    {"kokoro", b.cloud.URL(), rightKey, service.TTS, func(o Outcome) bool { return o.By == "house ears" && o.Heard != "" && o.Wrong > 0 && o.First > 0 }},
		"duplex":   {"openai-realtime", duplex.WS() + "/v1/realtime", servicetest.Key, service.Realtime, func(o Outcome) bool { return o.By == "house voice" && o.Heard != "" && o.First > 0 }},
		"commands": {"rules", "", "", service.LLM, func(o Outcome) bool { return o.Text != "" && !o.Tool }},
	} {
		d := Draft{Name: "mine", Type: test.kind, New: true, Typed: map[string]string{"base_url": test.at, "api_key": test.key}, Try: []service.Role{test.try}}
		r, err := b.Test(t.Context(), olga, d, text.English, 1)
		if err != nil || len(r.Outcomes) != 1 || r.Outcomes[0].Fault != nil || !test.want(r.Outcomes[0]) {
			t.Errorf("%s: %v %+v", name, err, r)
			if r != nil && r.Outcomes[0].Fault != nil {
				t.Error(r.Outcomes[0].Fault.In(text.English), r.Outcomes[0].Fault.Raw())
			}
		}
	}
}

// TestOrderOfKinds: who reads Chinese is offered what is known in China first, others what is known elsewhere, and both all.
func TestOrderOfKinds(t *testing.T) {
	b := newBench(t, "")
	types := func(lang text.Lang) (presets, kinds []string) {
		for _, p := range b.Presets(t.Context(), lang) {
			if presets = append(presets, p.Type); p.Type == "ollama" { // runs where it runs
				presets = presets[:len(presets)-1]
			}
		}
		for _, k := range Addable(lang) {
			kinds = append(kinds, k.Type)
		}
		return presets, kinds
	}
	zh, allZH := types(text.Chinese)
	en, allEN := types(text.English)
	if zh[0] != "dashscope" || en[0] != "openai" || slices.Index(allEN, "openai") > slices.Index(allEN, "dashscope") {
		t.Errorf("%v\n%v\n%v", zh, en, allEN)
	}
	for _, both := range [][2][]string{{zh, en}, {allZH, allEN}} {
		slices.Sort(both[0])
		if slices.Sort(both[1]); !slices.Equal(both[0], both[1]) {
			t.Errorf("%v\n%v", both[0], both[1])
		}
	}
}
