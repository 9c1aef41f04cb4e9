package trials

import (
	"net/http"
	"net/url"
	"strings"

	"xiaozhi/console/agents"
	"xiaozhi/console/ui"
	"xiaozhi/internal/lab"
)

// replay is the page of a kept turn that is tried again.
type replay struct {
	Kept   lab.Kept
	Talk   string // "": it is gone
	User   bool   // the sound of the user is there, to be heard and recognised again
	Reply  bool
	Agents []string
	Chains []agents.Role
	Voices []agents.Voice
	Run    *run
	Here   string
}

func (p *Page) showReplay(w http.ResponseWriter, r *http.Request) {
	run, f := p.asked(r, "replay")
	if run != nil && len(run.Rows) > 0 && run.Rows[0].Replay != nil && run.Rows[0].Replay.Turn != r.PathValue("turn") {
		run, f = nil, nil
	}
	p.replay(w, r, run, f)
}

func (p *Page) replay(w http.ResponseWriter, r *http.Request, run *run, f *ui.Form) {
	ctx, id := r.Context(), r.PathValue("turn")
	k, err := p.o.Lab.Kept(ctx, id)
	if err != nil {
		p.missing(w, r, err)
		return
	}
	d := replay{Kept: k, Agents: p.o.Stock.Names(r, false), Voices: p.o.Stock.Voices(), Run: run, Here: turnsPath + "/" + url.PathEscape(id)}
	for _, key := range []string{"asr", "llm", "tts"} {
		d.Chains = append(d.Chains, p.role(key))
	}
	if d.User, d.Reply, err = p.o.Stock.Sides(ctx, id); err != nil {
		p.site.Refused(w, r, err)
		return
	}
	d.Talk, _ = p.o.Stock.Talk(ctx, id) // without it there is no way back
	p.site.Show(w, r, "trial-replay", ui.Content{Title: p.site.Say(r, "trials/replay"), Data: d, Form: f})
}

func (p *Page) tryReplay(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	id := r.PathValue("turn")
	order := lab.ReplayOrder{Setup: lab.Setup{
		Agent: p.mayUse(r, f, "agent"), ASR: f.Get("asr"), LLM: f.Get("llm"), TTS: f.Get("tts"), Voice: f.Get("voice"),
		Prompt: strings.ReplaceAll(f.Get("long-prompt"), "\r\n", "\n"),
	}, Sound: f.Has("sound", "1"), Mute: f.Has("mute", "1")}
	k, err := p.o.Lab.Kept(r.Context(), id)
	if err != nil {
		p.missing(w, r, err)
		return
	}
	if len(order.Prompt) > maxPrompt {
		f.Wrong("long-prompt", p.site.Say(r, "frame/field-long", maxPrompt))
	}
	if f.Valid() {
		run, err := p.o.Lab.Replay(lab.Person(r), k, order)
		p.o.Stock.Did(r, "turn.replay", id, err)
		if err == nil {
			p.begun(w, r, f, run, turnsPath+"/"+url.PathEscape(id), url.Values{})
			return
		}
		if !p.site.Explain(w, r, f, "", err) {
			return
		}
	}
	p.replay(w, r, nil, f)
}

// maxPrompt is how long a prompt may be that is tried, in bytes.
const maxPrompt = 32 << 10
