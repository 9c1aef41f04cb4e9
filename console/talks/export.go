package talks

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"xiaozhi/internal/access"
	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/internal/timeline"
)

// Document is a talk as it is taken out.
type Document struct {
	Format   string         `json:"format"` // always the same
	Version  int            `json:"version"`
	ID       string         `json:"id"`
	Device   string         `json:"device"`
	Name     string         `json:"device_name,omitempty"`
	Agent    string         `json:"agent,omitempty"`
	Began    time.Time      `json:"began"`
	Ended    time.Time      `json:"ended,omitzero"`
	Currency int            `json:"cost_micros,omitempty"` // millionths of the currency of the owner's prices
	Turns    []DocumentTurn `json:"turns"`
	After    int            `json:"after,omitempty"` // asks for the turns that follow; 0: there are none
}

// DocumentTurn is a turn as it is taken out. Times are milliseconds.
type DocumentTurn struct {
	ID         string           `json:"id"`
	At         time.Time        `json:"at"`
	Kind       string           `json:"kind"`
	Language   string           `json:"language,omitempty"`
	Heard      string           `json:"heard,omitempty"`
	Said       string           `json:"said,omitempty"`
	Cause      string           `json:"cause"`
	Fault      string           `json:"fault,omitempty"`
	Wait       map[string]int64 `json:"wait_ms,omitempty"` // e2e, and its parts
	Services   []string         `json:"services,omitempty"`
	TokensIn   int              `json:"tokens_in,omitempty"`
	TokensOut  int              `json:"tokens_out,omitempty"`
	CostMicros int              `json:"cost_micros,omitempty"`
	Rating     int              `json:"rating,omitempty"`
	Messages   []DocumentRow    `json:"messages,omitempty"`
	Calls      []DocumentCall   `json:"calls,omitempty"`
	Spans      timeline.Spans   `json:"spans,omitzero"`
	Sound      []string         `json:"sound,omitempty"` // sides
}

// DocumentRow is a message as the model was shown it.
type DocumentRow struct {
	Role string          `json:"role"`
	Body json.RawMessage `json:"body"`
}

// DocumentCall is a call of a tool.
type DocumentCall struct {
	Name      string          `json:"name"`
	Source    string          `json:"source"`
	Kind      string          `json:"kind,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Result    string          `json:"result,omitempty"`
	Fault     string          `json:"fault,omitempty"`
	TookMS    int64           `json:"took_ms,omitempty"`
	Refusal   string          `json:"refusal,omitempty"` // why it was not made
	Late      bool            `json:"late,omitempty"`    // it failed after its success was assumed

	ArgumentsDigest string `json:"arguments_digest,omitempty"`
	ResultDigest    string `json:"result_digest,omitempty"`
}

const (
	documentFormat  = "xiaozhi talk"
	documentVersion = 1
)

// whole reads a talk with all its turns.
func (t *Talks) whole(ctx context.Context, id string) (*Talk, error) {
	talk, err := t.Talk(ctx, id, -1)
	for err == nil && talk.More {
		var more Talk
		if more, err = t.Talk(ctx, id, talk.Turns[len(talk.Turns)-1].Seq); err == nil {
			talk.Turns, talk.More = append(talk.Turns, more.Turns...), more.More && len(more.Turns) > 0
		}
	}
	return &talk, err
}

// raw is a text that should be JSON, as JSON.
func raw(doc string) json.RawMessage {
	switch {
	case doc == "":
		return nil
	case json.Valid([]byte(doc)):
		return json.RawMessage(doc)
	}
	quoted, err := json.Marshal(doc)
	if err != nil {
		return nil // a string always has a form
	}
	return quoted
}

// document makes what is taken out of a talk.
func (t *Talks) document(talk *Talk) *Document {
	d := &Document{
		Format: documentFormat, Version: documentVersion, ID: talk.ID, Device: talk.DeviceID, Name: talk.DeviceName, Agent: talk.Agent,
		Began: talk.BeganAt, Ended: talk.EndedAt, Currency: talk.CostMicros,
	}
	for i := range talk.Turns {
		turn := &talk.Turns[i]
		one := DocumentTurn{
			ID: turn.ID, At: turn.At, Kind: turn.Kind, Language: turn.Language, Heard: turn.Heard, Said: turn.Said, Cause: turn.Cause, Fault: turn.Fault,
			TokensIn: turn.TokensIn, TokensOut: turn.TokensOut, CostMicros: turn.Cost(), Rating: turn.Rating, Services: services(turn),
		}
		if turn.E2E > 0 {
			one.Wait = map[string]int64{
				"e2e": turn.E2E.Milliseconds(), "eou": turn.EOU.Milliseconds(), "asr": turn.ASR.Milliseconds(), "ttfs": turn.TTFS.Milliseconds(),
				"ttfb": turn.TTFB.Milliseconds(), "added": turn.Added.Milliseconds(),
			}
		}
		for _, m := range turn.Messages {
			one.Messages = append(one.Messages, DocumentRow{m.Role, raw(m.Body)})
		}
		for _, c := range turn.Calls {
			one.Calls = append(one.Calls, DocumentCall{
				Name: c.Name, Source: c.Source, Kind: c.Kind, Arguments: raw(c.Arguments), Result: c.Result, Fault: c.Fault, TookMS: c.Took.Milliseconds(),
				Refusal: c.Refusal, Late: c.Late, ArgumentsDigest: c.ArgumentsDigest, ResultDigest: c.ResultDigest,
			})
		}
		if spans, err := timeline.ReadSpans(turn.Spans); err == nil {
			one.Spans = spans
		}
		for _, r := range turn.Recordings {
			one.Sound = append(one.Sound, r.Side)
		}
		d.Turns = append(d.Turns, one)
	}
	return d
}

// services are the services that served a turn, each once.
func services(turn *Turn) (all []string) {
	for _, name := range []string{turn.ASRName, turn.LLMName, turn.TTSName} {
		if name != "" && (len(all) == 0 || all[len(all)-1] != name) {
			all = append(all, name)
		}
	}
	return all
}

// export gives a talk as JSON, as Markdown (?lang=zh in Chinese), or as a zip file with its sound.
func (t *Talks) export(w http.ResponseWriter, r *http.Request) {
	talk, err := t.whole(r.Context(), r.PathValue("talk"))
	if err != nil {
		t.o.Guard.Fail(w, r, Unknown(err))
		return
	}
	lang := text.English
	if r.URL.Query().Get("lang") == "zh" {
		lang = text.Chinese
	}
	form := r.PathValue("form")
	name := "talk-" + talk.BeganAt.In(t.o.Zone()).Format("20060102-150405")
	var write func(io.Writer) error
	var kind string
	switch form {
	case "json":
		kind, write = "application/json", func(w io.Writer) error { return t.writeJSON(w, talk) }
	case "md":
		kind, write = "text/markdown; charset=utf-8", func(w io.Writer) error { return t.markdown(w, talk, lang) }
	case "zip":
		kind, write = "application/zip", func(w io.Writer) error { return t.archive(w, talk, lang) }
	default:
		access.Refuse(w, http.StatusNotFound, "talks/form", message.Both("talks/form"))
		return
	}
	t.o.Guard.Did(r, "talk.export", talk.ID, nil)
	attach(w, kind, name+"."+form)
	_ = write(w) // the other end may be gone; a file that breaks off is not whole
}

// attach has a browser save the answer.
func attach(w http.ResponseWriter, kind, name string) {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}

func (t *Talks) writeJSON(w io.Writer, talk *Talk) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(t.document(talk))
}

// archive writes a talk with its sound as a zip file: both documents, and the sound of each turn as it is kept.
func (t *Talks) archive(w io.Writer, talk *Talk, lang text.Lang) error {
	z := zip.NewWriter(w)
	for name, write := range map[string]func(io.Writer) error{
		"talk.json": func(w io.Writer) error { return t.writeJSON(w, talk) },
		"talk.md":   func(w io.Writer) error { return t.markdown(w, talk, lang) },
	} {
		f, err := z.Create(name)
		if err == nil {
			err = write(f)
		}
		if err != nil {
			return err
		}
	}
	now := time.Now()
	for i := range talk.Turns {
		turn := &talk.Turns[i]
		for _, side := range []string{sideUser, sideReply} {
			rec, ok := turn.Side(side, now)
			if !ok {
				continue
			}
			if err := t.pack(z, rec.Path, fmt.Sprintf("%03d-%s.opus", turn.Seq, side), turn.At); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return z.Close()
}

// pack puts a file of sound into a zip file, as it is: it cannot be made smaller.
func (t *Talks) pack(z *zip.Writer, path, name string, at time.Time) error {
	f, err := t.o.Sound.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	to, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store, Modified: at})
	if err == nil {
		_, err = io.Copy(to, f)
	}
	return err
}

// markdown writes a talk as people read it.
func (t *Talks) markdown(w io.Writer, talk *Talk, lang text.Lang) error {
	var b bytes.Buffer
	say := func(id string, args ...any) string { return message.In(lang, id, args...) }
	name := talk.DeviceName
	if name == "" {
		name = talk.DeviceID
	}
	fmt.Fprintf(&b, "# %s\n\n", plain(say("talks/heading", name, talk.BeganAt.In(t.o.Zone()).Format("2006-01-02 15:04"))))
	for i := range talk.Turns {
		turn := &talk.Turns[i]
		if turn.Heard != "" {
			fmt.Fprintf(&b, "**%s** %s\n\n", say("talks/user", turn.At.In(t.o.Zone()).Format("15:04:05")), plain(turn.Heard))
		}
		for _, c := range turn.Calls {
			what := say("talks/called", code(c.Name), code(c.Arguments))
			if c.Fault != "" {
				what += say("talks/call-failed")
			}
			fmt.Fprintf(&b, "- %s\n", what)
		}
		if len(turn.Calls) > 0 {
			b.WriteString("\n")
		}
		if turn.Said != "" {
			fmt.Fprintf(&b, "**%s** %s\n\n", say("talks/agent"), plain(turn.Said))
		}
		if turn.Fault != "" {
			fmt.Fprintf(&b, "> %s\n\n", plain(say("talks/fault", turn.Fault)))
		}
		if turn.E2E > 0 {
			fmt.Fprintf(&b, "*%s*\n\n", plain(say("talks/wait", turn.E2E.Milliseconds(), strings.Join(services(turn), ", "))))
		}
	}
	_, err := b.WriteTo(w)
	return err
}

// plain keeps words from being Markdown or HTML.
func plain(s string) string {
	return escapes.Replace(strings.Join(strings.Fields(s), " "))
}

var escapes = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "&", "&amp;", "#", `\#`, "[", `\[`, "]", `\]`, "|", `\|`)

// code writes a text as code in a line.
func code(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if s == "" {
		return "` `"
	}
	return "`` " + strings.ReplaceAll(s, "`", "'") + " ``"
}
