package app

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/devicetest"
	"xiaozhi/internal/openaitest"
	"xiaozhi/internal/settings"
	"xiaozhi/internal/testall"
	"xiaozhi/store"
)

// running is a whole program that serves devices in memory.
type running struct {
	*harness
	cloud *openaitest.Server
}

// runs starts a program with settings, in which CLOUD stands for the address of a fake service.
func runs(t *testing.T, text string) *running {
	t.Helper()
	r := &running{&harness{t: t, log: &lockedBuffer{}, ln: pipes{make(chan net.Conn), make(chan struct{})}}, fakeCloud(t)}
	data := filepath.Join(t.TempDir(), "data")
	log := slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if r.app, err = Build(t.Context(), r.settings(text), Options{PasswordCost: cheap, Data: data, Log: log}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.app.Close)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	served := make(chan error, 1)
	go func() { served <- r.app.serve(ctx, []net.Listener{r.ln}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
		if t.Failed() {
			t.Logf("log:\n%s", r.log)
		}
	})
	return r
}

func (r *running) settings(text string) *config.Config {
	r.t.Helper()
	return mustLoadText(r.t, strings.ReplaceAll(text, "CLOUD", r.cloud.URL()))
}

// change puts other settings in force.
func (r *running) change(text string) {
	r.t.Helper()
	s, err := machine{r.app}.Build(r.t.Context(), r.settings(text))
	if err == nil {
		err = s.Apply(r.t.Context())
	}
	if err != nil {
		r.t.Error(err)
	}
}

// says types words at a device, and returns the reply that was heard whole.
func (r *running) says(ctx context.Context, d *devicetest.Device, words string) *devicetest.Reply {
	r.t.Helper()
	if err := d.Detect(words); err != nil {
		r.t.Fatal(err)
	}
	reply, err := d.WaitReply(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return reply
}

const beforeChange = `
asr: [one]
llm: [one]
tts: [one]
agent: {name: Anton}
reminders: {per_device: 3}
providers:
  one: {type: openai, base_url: CLOUD, api_key: sk-one, model: brain-1, tts_model: mouth-1, asr_model: ears-1, voice: alto}
`

const afterChange = `
asr: [two]
llm: [two]
tts: [two]
agent: {name: Berta}
voice: {opus: {bitrate: 16000}}
tools: {deny: [get_current_time]}
reminders: {per_device: 4}
recording: {days: 3}
providers:
  two: {type: openai, base_url: CLOUD, api_key: sk-one, model: brain-2, tts_model: mouth-2, asr_model: ears-2, voice: bass}
`

// askedWith lists what of a request to a model depends on the settings.
func askedWith(r *openaitest.Request) string {
	body := string(r.Body)
	var all []string
	for _, word := range []string{"brain-1", "brain-2", "Anton", "Berta", "get_current_time"} {
		if strings.Contains(body, word) {
			all = append(all, word)
		}
	}
	return strings.Join(all, " ")
}

// What is changed while a turn runs counts from the next one on, on the same connection: models, voices, the name, tools. The
// turn that runs ends as it began. What nobody uses any more is let go of.
func TestSettingsCountFromTheNextTurn(t *testing.T) {
	t.Parallel()
	r := runs(t, beforeChange)
	asked, release := make(chan struct{}, 8), make(chan struct{})
	r.cloud.Handle(openaitest.Chat, func(*openaitest.Request) openaitest.Reply {
		asked <- struct{}{}
		<-release
		return openaitest.Text("All right.")
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := r.dial(ctx, devicetest.Options{OpenListen: true, Tools: devicetest.NewBoard().Tools()})
	if err := d.Detect("tell me a story"); err != nil {
		t.Fatal(err)
	}
	<-asked
	r.change(afterChange)
	close(release)
	reply, err := d.WaitReply(ctx)
	if err != nil || !strings.Contains(reply.Text(), "All right.") {
		t.Fatalf("%v, %v", reply, err)
	}
	first, last := r.cloud.Requests(openaitest.Chat)[0], r.voiceOf("All right.")
	if got := askedWith(first); got != "brain-1 Anton get_current_time" {
		t.Errorf("the turn that ran was asked with %s", got)
	}
	if last["model"] != "mouth-1" || last["voice"] != "alto" {
		t.Errorf("it ended with the voice %v", last)
	}

	r.cloud.Reply(openaitest.Chat, openaitest.Text("As you like."))
	if reply := r.says(ctx, d, "and another one"); !strings.Contains(reply.Text(), "As you like.") {
		t.Errorf("heard %q", reply.Text())
	}
	chats := r.cloud.Requests(openaitest.Chat)
	if got := askedWith(chats[len(chats)-1]); got != "brain-2 Berta" {
		t.Errorf("the next turn was asked with %s", got)
	}
	if next := r.voiceOf("As you like."); next["model"] != "mouth-2" || next["voice"] != "bass" {
		t.Errorf("it was spoken by %v", next)
	}
	if n := len(d.Violations()); n > 0 && !slices.ContainsFunc(d.Violations(), func(v devicetest.Violation) bool { return v.Rule.Timed() }) {
		t.Errorf("%v", d.Violations())
	}
	if _, err := (machine{r.app}).Build(t.Context(), r.settings(strings.ReplaceAll(afterChange, "tts: [two]", "tts: [gone]\n")+"  gone: {type: openai, model: m, api_key: '${NOT_SET}'}\n")); err == nil || !strings.Contains(err.Error(), "tts: gone") {
		t.Errorf("a voice that cannot be made: %v", err)
	}
}

// voiceOf is the newest request for the sound of some words.
func (r *running) voiceOf(words string) map[string]any {
	r.t.Helper()
	for _, request := range slices.Backward(r.cloud.Requests(openaitest.Speak)) {
		if body := request.JSON(); strings.Contains(body["input"].(string), words) {
			return body
		}
	}
	r.t.Fatalf("nobody was to say %q", words)
	return nil
}

// However often the settings change, nothing of those before stays.
func TestChangesLeaveNothingBehind(t *testing.T) {
	r := runs(t, beforeChange)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := r.dial(ctx, devicetest.Options{OpenListen: true, Tools: devicetest.NewBoard().Tools()})
	r.cloud.Reply(openaitest.Chat, openaitest.Text("Yes."))
	round := func() {
		for _, text := range []string{afterChange, beforeChange} {
			r.change(text)
			r.says(ctx, d, "hello there")
		}
	}
	round()
	count := func() int {
		time.Sleep(50 * time.Millisecond)
		runtime.GC()
		return runtime.NumGoroutine()
	}
	before := count()
	for range 3 {
		round()
	}
	dropped, err := machine{r.app}.Build(ctx, r.settings(afterChange))
	if err != nil {
		t.Fatal(err)
	}
	dropped.Drop()
	now := count()
	for until := time.Now().Add(5 * time.Second); now > before+2 && time.Now().Before(until); {
		now = count()
	}
	if now > before+2 {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, there were %d:\n%s", now, before, stacks[:runtime.Stack(stacks, true)])
	}
}

// Each service that would change is asked once, and all of them at the same time. One that fails says why.
func TestChangedServicesAreTried(t *testing.T) {
	t.Parallel()
	r := runs(t, beforeChange)
	r.cloud.Reply(openaitest.Speak, openaitest.Failure(401, "wrong key"))
	s, err := machine{r.app}.Build(t.Context(), r.settings(afterChange))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Drop()
	got := map[string]bool{}
	for _, one := range s.Tests(t.Context()) {
		got[one.Role+" "+one.Section] = one.OK
		if one.OK != (one.Why == "") || one.Total <= 0 {
			t.Errorf("%+v", one)
		}
	}
	if len(got) != 3 || !got["asr two"] || !got["llm two"] || got["tts two"] {
		t.Errorf("tried %v", got)
	}
	if same, err := (machine{r.app}).Build(t.Context(), r.settings(beforeChange)); err != nil || len(same.Tests(t.Context())) > 0 {
		t.Errorf("nothing has changed, %v", err)
	}
	if h := (machine{r.app}).Health(); h.Turns != 0 || h.Streak != 0 {
		t.Errorf("trials are no turns: %+v", h)
	}
}

// What becomes of turns is counted, for who watches over a change.
func TestHealthCountsTurns(t *testing.T) {
	t.Parallel()
	r := runs(t, beforeChange)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := r.dial(ctx, devicetest.Options{OpenListen: true, Tools: devicetest.NewBoard().Tools()})
	r.says(ctx, d, "hello there")
	r.cloud.Reply(openaitest.Chat, openaitest.Failure(401, "wrong key"))
	r.says(ctx, d, "what now")
	r.says(ctx, d, "and now")
	want := func(turns, streak int) (ok bool) {
		h := machine{r.app}.Health()
		return h.Ready && h.Turns == turns && h.Streak == streak && (streak == 0 || strings.Contains(h.Fault, "401"))
	}
	for until := time.Now().Add(5 * time.Second); !want(3, 2) && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	if !want(3, 2) {
		t.Errorf("%+v", machine{r.app}.Health())
	}
	r.change(strings.ReplaceAll(beforeChange, "llm: [one]", "llm: [one, rules]")) // who say that the model does not answer
	r.says(ctx, d, "what about now")
	for until := time.Now().Add(5 * time.Second); !want(4, 3) && time.Now().Before(until); {
		time.Sleep(10 * time.Millisecond)
	}
	if !want(4, 3) {
		t.Errorf("%+v", machine{r.app}.Health())
	}
}

// A change is planned, tried, applied and counts from the next turn on. One with which every turn fails is taken back by
// itself, and the next turn is answered again.
func TestChangeIsATransaction(t *testing.T) {
	t.Parallel()
	r := runs(t, beforeChange)
	r.cloud.Handle(openaitest.Chat, func(request *openaitest.Request) openaitest.Reply {
		if request.JSON()["model"] == "broken" {
			return openaitest.Failure(404, "there is no such model")
		}
		return openaitest.Text("Yes.")
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !r.app.life.ready.Load() {
		time.Sleep(10 * time.Millisecond)
	}
	s, by := r.app.settings, account.Person{Name: "anna", Role: store.Owner}
	apply := func(path string, value any) *settings.Plan {
		plan, err := s.Plan(ctx, by, s.Revision(), []settings.Edit{{Path: strings.Split(path, "."), Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Apply(ctx, by, plan.ID); err != nil {
			t.Fatal(err)
		}
		return plan
	}
	d := r.dial(ctx, devicetest.Options{OpenListen: true, Tools: devicetest.NewBoard().Tools()})
	r.says(ctx, d, "hello there")
	apply("agent.name", "Berta")
	r.says(ctx, d, "who are you")
	chats := r.cloud.Requests(openaitest.Chat)
	if got := askedWith(chats[len(chats)-1]); got != "brain-1 Berta get_current_time" {
		t.Errorf("after the change the model was asked with %s", got)
	}
	if plan := apply("providers.one.model", "broken"); !slices.ContainsFunc(plan.Tests, func(t settings.Test) bool { return t.Role == "llm" && !t.OK }) {
		t.Errorf("the trials say %+v", plan.Tests)
	}
	for range 2 {
		if reply := r.says(ctx, d, "and now"); strings.Contains(reply.Text(), "Yes.") {
			t.Errorf("a model that is not there said %q", reply.Text())
		}
	}
	for until := time.Now().Add(15 * time.Second); s.Current().Providers["one"].Model == "broken" && time.Now().Before(until); {
		time.Sleep(20 * time.Millisecond)
	}
	if now := s.Current(); now.Providers["one"].Model != "brain-1" || now.Agent.Name != "Berta" {
		t.Fatalf("in force are %q and %q", now.Providers["one"].Model, now.Agent.Name)
	}
	if reply := r.says(ctx, d, "and at last"); !strings.Contains(reply.Text(), "Yes.") {
		t.Errorf("heard %q", reply.Text())
	}
}

// Settings change while ten devices talk: each turn is answered by one set of them, and no device is disturbed.
func TestSettingsChangeUnderLoad(t *testing.T) {
	r := runs(t, beforeChange)
	r.cloud.Handle(openaitest.Chat, func(request *openaitest.Request) openaitest.Reply {
		return openaitest.TextEvery(50*time.Millisecond, "I am ", strings.Replace(request.JSON()["model"].(string), "brain-", "number ", 1), ".")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var talks, changes sync.WaitGroup
	over := make(chan struct{})
	changes.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-over:
				return
			case <-time.After(100 * time.Millisecond):
				r.change([]string{afterChange, beforeChange}[i%2])
			}
		}
	})
	devices, turns := testall.Pick(10, 5), testall.Pick(4, 3)
	for i := range devices {
		d := r.dial(ctx, devicetest.Options{OpenListen: true, DeviceID: fmt.Sprintf("24:6f:28:aa:20:%02x", i), Tools: devicetest.NewBoard().Tools()})
		talks.Go(func() {
			for range turns {
				if err := d.Detect("tell me who you are"); err != nil {
					t.Error(err)
					return
				}
				reply, err := d.WaitReply(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				// On a busy machine it may be told before that a service is slow.
				if words := reply.Text(); !strings.HasSuffix(words, "I am number 1.") && !strings.HasSuffix(words, "I am number 2.") {
					t.Errorf("it says %q", words)
					return
				}
			}
		})
	}
	talks.Wait()
	close(over)
	changes.Wait()
	with := map[any]any{"mouth-1": "alto", "mouth-2": "bass"}
	for _, request := range r.cloud.Requests(openaitest.Speak) {
		if body := request.JSON(); with[body["model"]] != body["voice"] {
			t.Errorf("spoken with %v and %v", body["model"], body["voice"])
		}
	}
	if h := (machine{r.app}).Health(); h.Turns > devices*turns || h.Streak != 0 { // those over which they changed do not count
		t.Errorf("%+v", h)
	}
}
