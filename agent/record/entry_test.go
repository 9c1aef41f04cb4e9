package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"xiaozhi/agent"
	"xiaozhi/audio"
	"xiaozhi/mcp"
	"xiaozhi/mcp/router"
	"xiaozhi/providers"
)

// Every option that decides how a conversation goes is recorded: a new one is
// either a plain value, or known here.
func TestEveryOptionIsKnown(t *testing.T) {
	wrapped := []string{"VAD", "ASR", "LLM", "TTS", "Realtime", "FastPath", "Features", "Persona", "Describe", "Voices", "AgentOf"}
	flagged := []string{"Tokens", "Sounds", "Levels", "Zone"}
	of := []string{"Phrases", "Prompts", "Devices", "Log", "Recall", "Record", "Keeper", "Report", "Phase", "Meter", "Latest", "Limits", "Renewed", "Quiet", "Ended"} // not of the recording: they decide nothing
	for _, options := range []any{agent.Options{}, router.Options{}} {
		typ := reflect.TypeOf(options)
		for f := range typ.Fields() {
			if !isPlain(f.Type) && !slices.Contains(slices.Concat(wrapped, flagged, of), f.Name) {
				t.Errorf("%s.%s (%s) is not recorded: teach Tape.Wrap and package replay", typ, f.Name, f.Type)
			}
		}
	}
}

// Settings come back as they were.
func TestSettings(t *testing.T) {
	o := agent.Options{
		Name: "小智", MaxSteps: 7, IdleClose: time.Minute, WakeWords: []string{"hi", "嗨"}, NoChinese: true, Drafts: -1,
		Endpoint: audio.EndpointOptions{Start: 0.6, Commit: 900 * time.Millisecond}, Reply: audio.Format{Rate: 16000, Frame: 20 * time.Millisecond},
	}
	data, err := json.Marshal(settingsOf(o))
	if err != nil {
		t.Fatal(err)
	}
	var s Settings
	var got agent.Options
	if err := errors.Join(json.Unmarshal(data, &s), s.Apply(&got)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, o) {
		t.Errorf("%s gives\n%+v", data, got)
	}
	l := router.Options{Kinds: map[string]mcp.Kind{"a*": mcp.Query}, Rules: router.Rules{Deny: []string{"x"}}}
	var back router.Options
	if err := settingsOf(l).Apply(&back); err != nil || !reflect.DeepEqual(back, l) {
		t.Errorf("%+v %v", back, err)
	}
	for _, bad := range []Settings{{"Nothing": []byte("1")}, {"TTS": []byte("1")}, {"MaxSteps": []byte(`"x"`)}} {
		if err := bad.Apply(&got); err == nil || !strings.Contains(err.Error(), "setting") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// What tools return comes back so that everybody takes it for the same.
func TestValues(t *testing.T) {
	image := mcp.Image{MIMEType: "image/png", Data: []byte{0, 0, 0}}
	due := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct{ give, want any }{
		{nil, nil},
		{"", ""},
		{"text", "text"},
		{true, true},
		{3, 3.0},
		{json.RawMessage(`{"a":[1,"b"]}`), map[string]any{"a": []any{1.0, "b"}}},
		{[]any{"a", 1.5}, []any{"a", 1.5}},
		{image, image},
		{[]any{"seen", image}, []any{"seen", image}},
		{(*mcp.ActionResponse)(nil), nil},
		{mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: "hi"}, mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: "hi"}},
		{&mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "no"}, mcp.ActionResponse{Action: mcp.ActionTypeError, Result: "no"}},
		{
			mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: mcp.ActionResponseCall{FuncName: "f", Args: map[string]any{"due": due}}},
			mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: mcp.ActionResponseCall{FuncName: "f", Args: map[string]any{"due": "2026-11-21T09:00:00Z"}}},
		},
		{func() {}, "[func()]"},
	} {
		data, err := json.Marshal(valueOf(c.give))
		var v *Value
		if err := errors.Join(err, json.Unmarshal(data, &v)); err != nil {
			t.Errorf("%v: %v", c.give, err)
		}
		if got := v.Any(); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%#v comes back as %#v by %s", c.give, got, data)
		}
	}
}

// Errors answer as those did that were recorded.
func TestFaults(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		err error
		is  error
	}{
		{io.EOF, io.EOF},
		{fmt.Errorf("look: %w", mcp.ErrNoTool), mcp.ErrNoTool},
		{context.DeadlineExceeded, context.DeadlineExceeded},
		{&providers.Error{Provider: "p", Op: "speak", Kind: providers.RateLimited, Err: errors.New("slowly")}, nil},
	} {
		data, err := json.Marshal(faultOf(t.Context(), c.err))
		var f Fault
		if err := errors.Join(err, json.Unmarshal(data, &f)); err != nil {
			t.Fatal(err)
		}
		got := f.Err()
		if got.Error() != c.err.Error() || (c.is != nil && !errors.Is(got, c.is)) || f.Gone {
			t.Errorf("%v comes back as %v by %s", c.err, got, data)
		}
	}
	if f := faultOf(over, over.Err()); !f.Gone || !errors.Is(f.Err(), context.Canceled) {
		t.Errorf("%+v", f)
	}
	if faultOf(over, nil) != nil || (*Fault)(nil).Err() != nil {
		t.Error("a fault out of nothing")
	}
}

// Sound is the same to the sample, and its own text form.
func TestSoundAsText(t *testing.T) {
	s := soundOf(providers.Sound{Rate: 16000, PCM: []int16{0, 1, -1, 32767, -32768}, Packets: [][]byte{{1, 2}}, Provider: "p"})
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if want := `"PCM":"AAABAP///38AgA=="`; !strings.Contains(string(data), want) {
		t.Errorf("%s does not hold %s", data, want)
	}
	var got Sound
	if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(&got, s) {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{`"A"`, `"AAA="`, `"????"`} {
		var p PCM
		if json.Unmarshal([]byte(bad), &p) == nil && len(bad) != 6 {
			t.Errorf("%s was taken for sound", bad)
		}
	}
}

const firstLine = `{"t":0,"begin":{"version":1,"began":"2026-11-21T11:00:00Z","session":{},"settings":{},"limits":{},"has":{}}}` + "\n"

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, text, bad string
		entries         int
		torn            bool
	}{
		{"whole", firstLine + `{"t":5,"abort":{"Reason":"x"}}` + "\n\n" + `{"t":6,"end":{"cause":"gone"}}` + "\n", "", 3, false},
		{"torn", firstLine + `{"t":5,"abort":{"Reason":"x"}}` + "\n" + `{"t":6,"en`, "", 2, true},
		{"damaged", firstLine + "{\n" + `{"t":6,"end":{}}`, "line 2", 0, false},
		{"empty", "", "no recording", 0, false},
		{"something else", "hello\n", "no recording", 0, false},
		{"no beginning", `{"t":5,"abort":{}}`, "no recording", 0, false},
		{"newer", strings.Replace(firstLine, `"version":1`, `"version":2`, 1), "version is 2", 0, false},
		{"false gzip", "\x1f\x8bxx", "gzip", 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Read(strings.NewReader(c.text))
			if c.bad != "" {
				if err == nil || !strings.Contains(err.Error(), c.bad) {
					t.Errorf("err %v", err)
				}
				return
			}
			if err != nil || len(r.Entries) != c.entries || r.Torn != c.torn {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
}

// Whatever is read can be written and read again.
func FuzzRead(f *testing.F) {
	f.Add([]byte(firstLine + `{"t":5,"frame":{"Packet":"AQI="}}` + "\n"))
	f.Add([]byte(firstLine + `{"t":5,"tts":{"n":1,"step":"gave","sound":{"Rate":1,"PCM":"AAE="}}}` + "\n" + `{"t":1`))
	f.Add([]byte(firstLine + `{"t":5,"call":{"n":1,"step":"done","result":{"list":[null,{"image":{"bytes":-1}}],"json":{}}}}`))
	f.Add([]byte("\x1f\x8b\x08\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, e := range r.Entries {
			if e.Call != nil {
				e.Call.Result.Any()
				_ = e.Call.Fault.Err()
			}
		}
		var out bytes.Buffer
		if err := r.Write(&out); err != nil {
			return // raw JSON that was not valid inside
		}
		again, err := Read(&out)
		if err != nil || len(again.Entries) != len(r.Entries) {
			t.Errorf("%d entries, then %v", len(r.Entries), err)
		}
	})
}

// The mark of the codec is the same each time.
func TestCodec(t *testing.T) {
	if a, b := Codec(), Codec(); a != b || len(a) != 16 {
		t.Errorf("%q and %q", a, b)
	}
}
