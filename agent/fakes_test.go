package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"xiaozhi/agent/feature"
	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/basics"
	"xiaozhi/agent/feature/job"
	"xiaozhi/agent/feature/music"
	"xiaozhi/mcp"
	"xiaozhi/providers"
	pt "xiaozhi/providers/providertest"
)

// energyVAD says that loud sound is speech.
type energyVAD struct{ closed *sync.WaitGroup }

func (v energyVAD) FrameSamples() int { return 512 }

func (v energyVAD) NewDetector() (providers.Detector, error) {
	v.closed.Add(1)
	return &energyDetector{closed: v.closed}, nil
}

type energyDetector struct{ closed *sync.WaitGroup }

func (d *energyDetector) Probability(frame []int16) (float32, error) {
	var sum float64
	for _, s := range frame {
		sum += math.Abs(float64(s))
	}
	if sum/float64(len(frame)) > 1000 {
		return 0.9, nil
	}
	return 0.05, nil
}
func (d *energyDetector) Reset()       {}
func (d *energyDetector) Close() error { d.closed.Done(); return nil }

// scriptASR gives one line of its script per utterance.
type scriptASR struct {
	mu    sync.Mutex
	lines []string
	heard []time.Duration // length of each utterance
	told  []string        // the language of each request, when it changes

	streams bool // a line had a partial text
}

func (a *scriptASR) Name() string { return "script-asr" }

func (a *scriptASR) Open(ctx context.Context, req providers.ASRRequest) (providers.ASRStream, error) {
	a.mu.Lock()
	if n := len(a.told); n == 0 || a.told[n-1] != req.Language {
		a.told = append(a.told, req.Language)
	}
	a.mu.Unlock()
	return &scriptStream{ctx: ctx, asr: a, rate: req.Rate, over: make(chan struct{})}, nil
}

// streamed reports whether a line has a partial text in front: ~PARTIAL|LINE.
func streamed(line string) bool { return strings.HasPrefix(line, "~") }

// Streams reports whether the recogniser says by itself what it understands.
func (a *scriptASR) Streams() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streams
}

// partial is what the recogniser understands of the next utterance before its end.
func (a *scriptASR) partial() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.lines) == 0 || !streamed(a.lines[0]) {
		return ""
	}
	a.streams = true
	text, _, _ := strings.Cut(a.lines[0][1:], "|")
	return text
}

type scriptStream struct {
	ctx     context.Context //nolint:containedctx // a stream lives as long as the context of its Open
	asr     *scriptASR
	rate    int
	samples int
	over    chan struct{}
}

func (s *scriptStream) Write(pcm []int16) error { s.samples += len(pcm); return nil }
func (s *scriptStream) CloseWrite() error       { close(s.over); return nil }

func (s *scriptStream) Transcripts() iter.Seq2[providers.Transcript, error] {
	return func(yield func(providers.Transcript, error) bool) {
		if partial := s.asr.partial(); partial != "" && !yield(providers.Transcript{Text: partial, Provider: "script-asr"}, nil) {
			return
		}
		select {
		case <-s.over:
		case <-s.ctx.Done():
			yield(providers.Transcript{}, s.ctx.Err())
			return
		}
		a := s.asr
		a.mu.Lock()
		a.heard = append(a.heard, time.Duration(s.samples)*time.Second/time.Duration(s.rate))
		line := "!error no line in the script"
		if len(a.lines) > 0 {
			line, a.lines = a.lines[0], a.lines[1:]
		}
		a.mu.Unlock()
		if streamed(line) {
			parts := strings.Split(line[1:], "|") // one alone is the end too
			line = parts[len(parts)-1]
			for _, later := range parts[min(1, len(parts)-1) : len(parts)-1] {
				if !yield(providers.Transcript{Text: later, Provider: "script-asr"}, nil) {
					return
				}
			}
		}
		if rest, ok := strings.CutPrefix(line, "@"); ok {
			var d string
			d, line, _ = strings.Cut(rest, " ")
			if !pause(s.ctx, d) {
				yield(providers.Transcript{}, s.ctx.Err())
				return
			}
		}
		t := providers.Transcript{Final: true, Provider: "script-asr"}
		switch {
		case strings.HasPrefix(line, "!error"):
			yield(t, &providers.Error{Provider: "script-asr", Op: "recognize", Err: errors.New(line[6:])})
			return
		case line == "!rejected":
			t.Text, t.Rejected = "knee how", true
		case line == "!panic":
			panic("recogniser broke")
		case strings.HasPrefix(line, "!lang "):
			t.Language, t.Text, _ = strings.Cut(line[6:], " ")
		case line != "!empty":
			t.Text = line
		}
		yield(t, nil)
	}
}

// allFeatures are those that the program has.
func allFeatures(songs music.Library) []feature.Feature {
	return []feature.Feature{alarm.New(context.Background(), alarm.Options{}), music.Feature{Library: songs}, job.Feature{}, basics.Feature{}}
}

// debugLog writes all there is to w.
func debugLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// pause waits for a duration like 300ms, or until ctx ends.
func pause(ctx context.Context, text string) bool {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// scriptLLM plays its script: one step goes up to a line "end".
type scriptLLM struct {
	mu       sync.Mutex
	lines    []string
	requests []providers.LLMRequest
	closed   int // steps whose loop was left before its end
	can      providers.Capabilities
}

func (l *scriptLLM) Capabilities() providers.Capabilities { return l.can }

func (l *scriptLLM) Name() string { return "script-llm" }

func (l *scriptLLM) next() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, line := range l.lines {
		if line == "end" {
			step := l.lines[:i]
			l.lines = l.lines[i+1:]
			return step
		}
	}
	step := l.lines
	l.lines = nil
	return step
}

func (l *scriptLLM) Generate(ctx context.Context, req providers.LLMRequest) iter.Seq2[providers.Delta, error] {
	return func(yield func(providers.Delta, error) bool) {
		l.mu.Lock()
		l.requests = append(l.requests, req)
		n := len(l.requests)
		l.mu.Unlock()
		for i, line := range l.next() {
			verb, rest, _ := strings.Cut(line, " ")
			d := providers.Delta{Provider: "script-llm"}
			switch verb {
			case "text":
				d.Text = rest + " "
			case "thought":
				d.Thought = rest
			case "call":
				name, args, _ := strings.Cut(rest, " ")
				d.ToolCalls = []providers.ToolCall{{ID: fmt.Sprintf("c%d-%d", n, i), Name: name, Arguments: args}}
			case "tokens":
				_, _ = fmt.Sscan(rest, &d.Usage.Prompt, &d.Usage.Completion)
			case "echo": // of the call before it in the line, or of the message
				if what, call, ok := strings.Cut(rest, " call "); ok {
					name, args, _ := strings.Cut(call, " ")
					d.ToolCalls = []providers.ToolCall{{ID: fmt.Sprintf("c%d-%d", n, i), Name: name, Arguments: args, Echo: providers.NewEcho("script", what)}}
				} else {
					d.Echo = providers.NewEcho("script", rest)
				}
			case "delay":
				if !pause(ctx, rest) {
					yield(d, ctx.Err())
					return
				}
				continue
			case "panic":
				panic("model broke")
			case "error":
				yield(d, &providers.Error{Provider: "script-llm", Op: "generate", Err: errors.New(rest)})
				return
			default:
				panic("unknown line of the llm script: " + line)
			}
			if !yield(d, nil) {
				l.mu.Lock()
				l.closed++
				l.mu.Unlock()
				return
			}
		}
	}
}

// scriptDuplex is a realtime service that gives an answer up to each line "end".
func scriptDuplex(lines []string) *pt.Duplex {
	d := &pt.Duplex{Label: "script-duplex"}
	var parts []pt.DuplexPart
	var later time.Duration
	for i, line := range lines {
		verb, rest, _ := strings.Cut(line, " ")
		var add []pt.DuplexPart
		switch verb {
		case "heard":
			add = []pt.DuplexPart{{Delta: providers.DuplexDelta{Heard: rest}}}
		case "say": // 100 ms a character, like toneTTS
			add = pt.Reply("", time.Duration(len([]rune(rest)))*100*time.Millisecond, rest+" ")[1:]
		case "text":
			add = []pt.DuplexPart{{Delta: providers.DuplexDelta{Text: rest + " "}}}
		case "call":
			name, args, _ := strings.Cut(rest, " ")
			add = []pt.DuplexPart{{Delta: providers.DuplexDelta{ToolCalls: []providers.ToolCall{{ID: fmt.Sprint("d", i), Name: name, Arguments: args}}}}}
		case "delay":
			wait, err := time.ParseDuration(rest)
			if err != nil {
				panic(err)
			}
			later += wait
			continue
		case "error":
			add = []pt.DuplexPart{{Err: &providers.Error{Provider: "script-duplex", Op: "respond", Err: errors.New(rest)}}}
		case "hang":
			add = []pt.DuplexPart{{Hang: true}}
		case "end":
			if later > 0 {
				parts = append(parts, pt.DuplexPart{Delay: later})
			}
			d.Script, parts, later = append(d.Script, parts), nil, 0
			continue
		default:
			panic("unknown line of the realtime script: " + line)
		}
		add[0].Delay, later = later, 0
		parts = append(parts, add...)
	}
	return d
}

// restingDuplex is left out for 30 s after a failure, as by a chain.
type restingDuplex struct {
	*pt.Duplex
	mu    sync.Mutex
	until time.Time
}

func (d *restingDuplex) Rests() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.until)
}

func (d *restingDuplex) Open(ctx context.Context, req providers.DuplexRequest) (providers.DuplexSession, error) {
	s, err := d.Duplex.Open(ctx, req)
	return restingSession{s, d}, err
}

type restingSession struct {
	providers.DuplexSession
	d *restingDuplex
}

func (s restingSession) Respond(ctx context.Context, results []providers.ToolResult) iter.Seq2[providers.DuplexDelta, error] {
	return func(yield func(providers.DuplexDelta, error) bool) {
		for delta, err := range s.DuplexSession.Respond(ctx, results) {
			if err != nil && ctx.Err() == nil {
				s.d.mu.Lock()
				s.d.until = time.Now().Add(30 * time.Second)
				s.d.mu.Unlock()
			}
			if !yield(delta, err) {
				return
			}
		}
	}
}

// toneTTS makes 100 ms of a tone for each character.
type toneTTS struct {
	mu     sync.Mutex
	lines  []string // one for each sentence: "ok", "delay 300ms", "!error", "!silent", "!panic", "!late"
	said   []string
	rate   int
	closed int
	speaks []string // languages; nil: all
}

func (s *toneTTS) Name() string { return "tone-tts" }

func (s *toneTTS) Synthesize(ctx context.Context, req providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) {
		s.mu.Lock()
		s.said = append(s.said, req.Language+": "+req.Text)
		line := "ok"
		if len(s.lines) > 0 {
			line, s.lines = s.lines[0], s.lines[1:]
		}
		s.mu.Unlock()
		if s.speaks != nil && !slices.Contains(s.speaks, req.Language) {
			yield(providers.Sound{}, &providers.Error{Provider: "tone-tts", Op: "synthesize", Kind: providers.BadRequest, Err: providers.ErrLanguage})
			return
		}
		n := len([]rune(req.Text))
		fail := &providers.Error{Provider: "tone-tts", Op: "synthesize", Err: errors.New("broken voice")}
		switch verb, rest, _ := strings.Cut(line, " "); verb {
		case "delay":
			if !pause(ctx, rest) {
				yield(providers.Sound{}, ctx.Err())
				return
			}
		case "!error":
			yield(providers.Sound{}, fail)
			return
		case "!silent":
			return
		case "!panic":
			panic("voice broke")
		case "!stall": // half of it, a stall, the rest
			if !yield(tone(s.rate, n/2), nil) || !pause(ctx, rest) {
				return
			}
			n -= n / 2
		}
		if !yield(tone(s.rate, n), nil) {
			s.mu.Lock()
			s.closed++
			s.mu.Unlock()
		}
	}
}

// tone is a sound of 440 Hz, of which each tenth of a second is the same.
func tone(rate, tenths int) providers.Sound {
	pcm := make([]int16, rate/10*tenths)
	for i := range min(rate/10, len(pcm)) {
		pcm[i] = int16(8000 * math.Sin(2*math.Pi*440*float64(i)/float64(rate)))
	}
	for i := rate / 10; i < len(pcm); i += rate / 10 {
		copy(pcm[i:], pcm[:rate/10])
	}
	return providers.Sound{Rate: rate, PCM: pcm}
}

// handlerResult names a handler: "NAME ARGUMENTS", the arguments as JSON. A due
// time is given as a length of time from now.
func handlerResult(line string) mcp.ActionResponse {
	name, text, _ := strings.Cut(line, " ")
	var args map[string]any
	if text != "" {
		if err := json.Unmarshal([]byte(text), &args); err != nil {
			panic(err)
		}
	}
	if after, ok := args["due"].(string); ok {
		d, err := time.ParseDuration(after)
		if err != nil {
			panic(err)
		}
		args["due"] = time.Now().Add(d)
	}
	return mcp.ActionResponse{Action: mcp.ActionTypeCallHandler, Result: mcp.ActionResponseCall{FuncName: name, Args: args}}
}

// scriptMusic is a library of songs that are a tone of three seconds.
type scriptMusic struct{ opened, closed []string }

func (m *scriptMusic) Open(id string) (music.Song, error) {
	if id == "lost" {
		return nil, errors.New("no such file")
	}
	m.opened = append(m.opened, id)
	return &scriptSong{library: m, id: id, left: 3 * 16000}, nil
}

func (m *scriptMusic) Next(id string) (next, title string, err error) {
	return id + "+", "after " + id, nil
}

type scriptSong struct {
	library *scriptMusic
	id      string
	left    int
	at      int
	closed  bool // unguarded, so that the race detector sees two users
}

func (s *scriptSong) Rate() int { return 16000 }

func (s *scriptSong) Read(pcm []int16) (int, error) {
	if s.closed {
		panic("a song is read after its end")
	}
	if s.id == "broken" && s.left < 2*16000 {
		return 0, errors.New("bad block")
	}
	n := min(len(pcm), s.left)
	for i := range n {
		pcm[i] = int16(s.at % 3000)
		s.at++
	}
	s.left -= n
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (s *scriptSong) Close() error {
	if s.closed {
		panic("a song is closed twice")
	}
	s.closed = true
	s.library.closed = append(s.library.closed, s.id)
	return nil
}

// scriptSource is a source of tools: "NAME KIND DELAY RESULT" a line, where the
// name may be NAME@SOURCE.
type scriptSource struct {
	source string
	tools  []mcp.Tool
	delay  map[string]string
	result map[string]string
	mu     sync.Mutex
	calls  []string
}

func newScriptSource(source string, lines []string) *scriptSource {
	s := &scriptSource{source: source, delay: map[string]string{}, result: map[string]string{}}
	for _, line := range lines {
		f := strings.SplitN(line, " ", 4)
		of := s.source
		if name, other, ok := strings.Cut(f[0], "@"); ok {
			f[0], of = name, other
		}
		s.tools = append(s.tools, mcp.Tool{Trusted: true,
			Name: f[0], Description: f[0], Kind: mcp.Kind(f[1]), Source: of, Origin: mcp.Remote,
			Schema: []byte(`{"type":"object","properties":{"volume":{"type":"integer"}}}`),
		})
		s.delay[f[0]], s.result[f[0]] = f[2], f[3]
	}
	return s
}

func (s *scriptSource) Start(context.Context) error { return nil }
func (s *scriptSource) Stop() error                 { return nil }
func (s *scriptSource) HasTool(name string) bool    { return s.delay[name] != "" }
func (s *scriptSource) IsReady() bool               { return true }
func (s *scriptSource) ResetConnection() error      { return nil }
func (s *scriptSource) GetAvailableTools() []mcp.Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]mcp.Tool(nil), s.tools...)
}

func (s *scriptSource) CallTool(ctx context.Context, name string, args map[string]any) (any, error) {
	s.mu.Lock()
	s.calls = append(s.calls, fmt.Sprint(name, " ", args))
	s.mu.Unlock()
	steps, result, stepwise := 0, "", false
	if _, err := fmt.Sscanf(s.result[name], "!steps %d %s", &steps, &result); err == nil { // of the delay each, all but the last reported
		stepwise = true
	}
	for done := 1; done < steps; done++ {
		if !pause(ctx, s.delay[name]) {
			return nil, ctx.Err()
		}
		if heard := mcp.ProgressFrom(ctx); heard != nil {
			heard(mcp.Progress{Done: float64(done), Total: float64(steps)})
		}
	}
	if !pause(ctx, s.delay[name]) {
		return nil, ctx.Err()
	}
	switch r := s.result[name]; {
	case stepwise:
		return result, nil
	case strings.HasPrefix(r, "!error "):
		return nil, errors.New(r[7:])
	case strings.HasPrefix(r, "!say "):
		return mcp.ActionResponse{Action: mcp.ActionTypeResponse, Response: r[5:]}, nil
	case r == "!none":
		return mcp.ActionResponse{Action: mcp.ActionTypeNone}, nil
	case strings.HasPrefix(r, "!handler "):
		return handlerResult(r[9:]), nil
	default:
		return r, nil
	}
}
