package router

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"xiaozhi/mcp"
)

// TestRecord: each call leaves one line and one record, without secrets.
func TestRecord(t *testing.T) {
	tests := map[string]struct {
		arguments string
		err       error
		awaited   bool
		want      Record
	}{
		"a query": {
			`{"city":"Wien"}`, nil, true,
			Record{CallID: "c1", Tool: "get", Source: "device", Kind: mcp.Query, Arguments: `{"city":"Wien"}`, Result: "x", Took: time.Second, Outcome: "req_llm", Awaited: true},
		},
		"a control": {
			`{}`, nil, false,
			Record{CallID: "c1", Tool: "get", Source: "device", Kind: mcp.Query, Arguments: `{}`, Result: "x", Took: time.Second, Outcome: "req_llm"},
		},
		"a late failure": {
			`{}`, errors.New("broken"), false,
			Record{CallID: "c1", Tool: "get", Source: "device", Kind: mcp.Query, Arguments: `{}`, Result: "tool call failed: get: broken", Took: time.Second, Outcome: "error", Late: true},
		},
		"a failure that was awaited": {
			`{}`, errors.New("broken"), true,
			Record{CallID: "c1", Tool: "get", Source: "device", Kind: mcp.Query, Arguments: `{}`, Result: "tool call failed: get: broken", Took: time.Second, Outcome: "error", Awaited: true},
		},
		"secrets": {
			`{"WiFi_Password":"hunter2","list":[{"api_key":"k"}],"pin":1234,"ssid":"home"}`, nil, true,
			Record{
				CallID: "c1", Tool: "get", Source: "device", Kind: mcp.Query, Result: "x", Took: time.Second, Outcome: "req_llm", Awaited: true,
				Arguments: `{"WiFi_Password":"***","list":[{"api_key":"***"}],"pin":"***","ssid":"home"}`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := source("device", "get")
				s.call = func(context.Context, string, map[string]any) (any, error) {
					time.Sleep(time.Second)
					return "x", test.err
				}
				var log bytes.Buffer
				var records []Record
				b := newRouter(t, Options{
					Words:  true,
					Log:    slog.New(slog.NewTextHandler(&log, nil)),
					Record: func(r Record) { records = append(records, r) },
				}, s)
				p, bad := b.Prepare(mcp.Call{ID: "c1", Name: "get", Arguments: test.arguments})
				if bad != nil {
					t.Fatal(bad)
				}
				began := time.Now()
				if test.awaited {
					b.Run(t.Context(), p)
				} else {
					over := make(chan struct{})
					if err := b.Go(p, func(mcp.ActionResponse) { close(over) }); err != nil {
						t.Fatal(err)
					}
					<-over
				}
				if len(records) != 1 || !records[0].Started.Equal(began) {
					t.Fatalf("records %+v", records)
				}
				records[0].Started, records[0].ArgumentsDigest, records[0].ResultDigest = time.Time{}, "", ""
				if records[0] != test.want {
					t.Errorf("got  %+v\nwant %+v", records[0], test.want)
				}
				if n := strings.Count(log.String(), "msg=\"tool call\""); n != 1 || strings.Contains(log.String(), "hunter2") {
					t.Errorf("log: %s", log.String())
				}
			})
		})
	}
}

// TestDetach: a job outlives the router that began it, has a longer time than
// other calls, and ends with its own context.
func TestDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newBusy(20*time.Minute, "external:x", "dig")
		b := New(Options{}, slow)
		p := prepare(t, b, "dig", "")
		result := make(chan mcp.ActionResponse, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { result <- b.Detach(ctx, p) }()
		synctest.Wait()
		if got := b.Run(t.Context(), p); got.Action != mcp.ActionTypeError || got.Response != errRunning.Error() {
			t.Errorf("the same call beside it: %+v", got)
		}
		b.Close() // does not wait
		if slow.running() != 1 {
			t.Error("Close ended the job")
		}
		if got := <-result; got.Result != "dig" {
			t.Errorf("got %+v", got)
		}
		if got := b.Detach(ctx, p); got.Action != mcp.ActionTypeError {
			t.Errorf("a closed router took a job: %+v", got)
		}
		b = newRouter(t, Options{}, slow)
		p = prepare(t, b, "dig", "")
		go func() { result <- b.Detach(ctx, p) }()
		synctest.Wait()
		cancel()
		if got := <-result; got.Action != mcp.ActionTypeError {
			t.Errorf("cancelled: %+v", got)
		}
		b = newRouter(t, Options{}, newBusy(2*jobTimeout, "external:x", "dig"))
		began := time.Now()
		got := b.Detach(t.Context(), prepare(t, b, "dig", ""))
		if got.Response != errNoReply.Error() || time.Since(began) != jobTimeout {
			t.Errorf("after %v: %+v", time.Since(began), got)
		}
	})
}

// TestOfferMarks: who says that a tool is a job, or needs a yes.
func TestOfferMarks(t *testing.T) {
	yes, no := true, false
	s := source("external:x", "crawl", "dig.deep", "wipe", "wash", "open_door", "look")
	s.tools[1].Job = true
	s.tools[2].Annotations.Destructive = &yes
	s.tools[3].Annotations.Destructive = &no
	b := newRouter(t, Options{Jobs: []string{"cra*"}, Rules: Rules{Confirm: []string{"open_door"}}}, s)
	got := ""
	for _, o := range b.Offers() {
		if o.Job {
			got += " job:" + o.Tool.Name
		}
		if o.Consent {
			got += " ask:" + o.Tool.Name
		}
	}
	if want := " job:crawl job:dig.deep ask:wipe ask:open_door"; got != want {
		t.Errorf("got%s, want%s", got, want)
	}
}

// TestJournal: the last calls of a device are there, in a bounded number.
func TestJournal(t *testing.T) {
	j := NewJournal()
	for i := range journalDepth + 5 {
		j.Add("a", Record{CallID: strconv.Itoa(i)})
	}
	calls := j.Calls("a")
	if len(calls) != journalDepth || calls[0].CallID != "5" || calls[journalDepth-1].CallID != strconv.Itoa(journalDepth+4) {
		t.Errorf("%d calls, from %q to %q", len(calls), calls[0].CallID, calls[len(calls)-1].CallID)
	}
	calls[0].CallID = "mine"
	if j.Calls("a")[0].CallID != "5" {
		t.Error("the journal gave away its own records")
	}
	for i := range journalDevices - 1 {
		j.Add(fmt.Sprint("d", i), Record{})
	}
	j.Add("a", Record{})
	j.Add("new", Record{})
	if len(j.Calls("a")) != journalDepth || len(j.Calls("d0")) != 0 || len(j.Calls("d1")) != 1 {
		t.Error("the wrong device made room")
	}
}

// TestRefusedCallsLeaveRecords: a call that is not made is not lost either.
func TestRefusedCallsLeaveRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source("device", "get", "set_lamp")
		release := make(chan struct{})
		s.call = func(context.Context, string, map[string]any) (any, error) {
			<-release
			return "x", nil
		}
		var records []Record
		b := newRouter(t, Options{Words: true, Record: func(r Record) { records = append(records, r) }}, s)
		_, unknown := b.Prepare(mcp.Call{ID: "c1", Name: "fly", Arguments: "{}", Language: "zh"})
		_, broken := b.Prepare(mcp.Call{ID: "c2", Name: "get", Arguments: "{", Language: "zh"})
		p, bad := b.Prepare(mcp.Call{ID: "c3", Name: "set_lamp", Arguments: "{}"})
		if bad != nil {
			t.Fatal(bad)
		}
		if err := b.Go(p, func(mcp.ActionResponse) {}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := b.Go(p, func(mcp.ActionResponse) { t.Error("done of a call that was not taken") }); err == nil {
			t.Error("the same call was taken twice")
		}
		r := b.Run(t.Context(), p)
		for i, want := range []Record{
			{CallID: "c1", Tool: "fly", Arguments: `{}`, Outcome: "not_found", Awaited: true, Refusal: RefusedUnknown},
			{CallID: "c2", Tool: "get", Source: "device", Kind: mcp.Query, Arguments: `{}`, Outcome: "error", Awaited: true, Refusal: RefusedInvalid},
			{CallID: "c3", Tool: "set_lamp", Source: "device", Kind: mcp.Control, Arguments: `{}`, Outcome: "error", Awaited: true, Refusal: RefusedBusy},
			{CallID: "c3", Tool: "set_lamp", Source: "device", Kind: mcp.Control, Arguments: `{}`, Outcome: "error", Awaited: true, Refusal: RefusedBusy},
		} {
			if i < len(records) {
				if !strings.Contains(records[i].Result, records[i].Tool) {
					t.Errorf("record %d says nothing of the failure: %q", i, records[i].Result)
				}
				records[i].Result, records[i].ArgumentsDigest = "", ""
			}
			if i >= len(records) || records[i] != want {
				t.Errorf("record %d of %+v, want %+v", i, records, want)
			}
		}
		for text, got := range map[string]mcp.ActionResponse{
			"MCP工具调用失败: 没有找到工具: fly": *unknown, "MCP工具调用失败: get: 参数不对: ": *broken, "still running": r,
		} {
			if !strings.Contains(mcp.ResultText(got), text) {
				t.Errorf("refused with %q, want %q", mcp.ResultText(got), text)
			}
		}
		close(release)
	})
}

// What was said, which arguments hold, is neither in the log nor in records unless
// conversations may be read.
func TestRecordWithoutWords(t *testing.T) {
	for _, words := range []bool{false, true} {
		var log bytes.Buffer
		var records []Record
		s := source("device", "note")
		s.tools[0].Schema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}}}`)
		b := New(Options{Words: words, Record: func(r Record) { records = append(records, r) }, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, s)
		b.Run(t.Context(), prepare(t, b, "note", `{"text":"dear diary"}`))
		if _, refused := b.Prepare(mcp.Call{Name: "note", Arguments: `{"text":["dear diary"]}`}); refused == nil {
			t.Error("wrong arguments were taken")
		}
		b.Close()
		if shown := strings.Contains(log.String(), "diary"); shown != words {
			t.Errorf("words %v: %s", words, log.String())
		}
		if len(records) != 2 || strings.Contains(records[0].Arguments, "diary") != words {
			t.Errorf("words %v: %+v", words, records)
		}
	}
}

// TestRefusals: why a call is not made is told apart, whoever refuses it.
func TestRefusals(t *testing.T) {
	var records []Record
	s := source("device", "get", "wipe", "shell")
	yes := true
	s.tools[1].Annotations.Destructive = &yes
	s.tools[0].Schema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	b := newRouter(t, Options{Rules: Rules{Deny: []string{"shell"}}, Record: func(r Record) { records = append(records, r) }}, s)
	for want, call := range map[Refusal]mcp.Call{
		RefusedUnknown: {Name: "shell"}, // what is denied is not there
		RefusedInvalid: {Name: "get", Arguments: `{"n":"x"}`},
		RefusedConsent: {Name: "wipe", By: mcp.ByProgram},
	} {
		if _, bad := b.Prepare(call); bad == nil || len(records) != 1 || records[0].Refusal != want || records[0].ResultDigest != "" {
			t.Errorf("%s: %+v, %+v", want, bad, records)
		}
		records = nil
	}
	p := prepare(t, b, "wipe", "")
	if r := b.Run(t.Context(), p); !r.Action.Failed() || records[0].Refusal != RefusedConsent {
		t.Errorf("without a yes: %+v", records)
	}
	records = nil
	b.Refuse(prepare(t, b, "get", ""), RefusedLimit, mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "no more"})
	if len(records) != 1 || records[0].Refusal != RefusedLimit || records[0].Outcome != "error" || records[0].Tool != "get" {
		t.Errorf("a limit: %+v", records)
	}
	records = nil
	p = prepare(t, b, "get", "")
	b.Close()
	if b.Run(t.Context(), p); records[0].Refusal != RefusedClosed {
		t.Errorf("closed: %+v", records)
	}
	if v := NewGate(Rules{Deny: []string{"x"}}).Decide(Case{Tool: mcp.Tool{Name: "x"}}); v.refusal() != RefusedDenied {
		t.Errorf("%+v", v)
	}
}

// TestDigests: the same arguments and results have the same digest, others another one, in whatever order and mode they
// were written; secrets do not count.
func TestDigests(t *testing.T) {
	var records []Record
	s := source("device", "get")
	s.call = func(_ context.Context, _ string, arguments map[string]any) (any, error) {
		return arguments["city"], nil
	}
	b := newRouter(t, Options{Record: func(r Record) { records = append(records, r) }}, s)
	digests := func(arguments string) (string, string) {
		t.Helper()
		b.Run(t.Context(), prepare(t, b, "get", arguments))
		r := records[len(records)-1]
		if r.Arguments != "" || r.Result != "" || len(r.ArgumentsDigest) != 32 || len(r.ResultDigest) != 32 {
			t.Errorf("%+v", r)
		}
		return r.ArgumentsDigest, r.ResultDigest
	}
	long := strings.Repeat("x", 80)
	a, result := digests(`{"city":"Wien","n":1,"pin":1234}`)
	if other, same := digests(`{"n":1,"pin":9999,"city":"Wien"}`); other != a || same != result {
		t.Error("the same is told apart")
	}
	if other, another := digests(`{"city":"Linz","n":1,"pin":1234}`); other == a || another == result {
		t.Error("other arguments look the same")
	}
	one, _ := digests(`{"city":"` + long + `a"}`)
	if two, _ := digests(`{"city":"` + long + `b"}`); one == two {
		t.Error("what is long is cut")
	}
}
