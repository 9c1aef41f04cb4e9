package trials

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"xiaozhi/console/agents"
	"xiaozhi/console/ui"
	"xiaozhi/internal/lab"
)

// maxVoices are as many as there are keys for them.
const maxVoices = 9

// voices is the page of voices side by side.
type voices struct {
	Agent    string // for which one is looked for; "": none
	Services []string
	Known    []agents.Voice
	Slots    []place
	Run      *run
}

func (p *Page) showVoices(w http.ResponseWriter, r *http.Request) {
	run, f := p.asked(r, "voices")
	if f == nil {
		f = p.someVoices(r)
	}
	p.voices(w, r, run, f)
}

func (p *Page) voices(w http.ResponseWriter, r *http.Request, run *run, f *ui.Form) {
	if run != nil {
		run.choose(f.Get("agent"))
	}
	d := voices{Agent: f.Get("agent"), Services: slices.Clone(p.role("tts").Names), Known: p.o.Stock.Voices(), Run: run}
	for i := range maxVoices {
		d.Slots = append(d.Slots, place{i, i + 1})
		if name := f.Get(slot(i, "service")); name != "" && !slices.Contains(d.Services, name) {
			d.Services = append(d.Services, name)
		}
	}
	p.site.Show(w, r, "trial-voices", ui.Content{Title: p.site.Say(r, "trials/voices"), Data: d, Form: f})
}

// place is one of the voices: its number from 0 on, and from 1 on.
type place struct{ I, N int }

// slot names a field of one of the voices.
func slot(i int, field string) string { return field + "-" + strconv.Itoa(i) }

// someVoices fills the page with voices to begin with: one of each service, then more of them.
func (p *Page) someVoices(r *http.Request) *ui.Form {
	agent := r.URL.Query().Get("agent")
	f := ui.Filled("sentence", p.site.Say(r, "trials/sentence"), "agent", agent)
	role, known, of, n := p.role("tts"), p.o.Stock.Voices(), map[string][]string{}, 0
	for _, v := range known {
		of[v.Service] = append(of[v.Service], v.Name)
	}
	services := slices.Clone(role.All)
	for _, name := range role.Names {
		if !slices.Contains(services, name) {
			services = append(services, name)
		}
	}
	for round := 0; round < maxVoices && n < 6; round++ {
		for _, service := range services {
			if n >= 6 || round > 0 && round >= len(of[service]) {
				continue
			}
			f.Set(slot(n, "service"), service)
			if round < len(of[service]) {
				f.Set(slot(n, "voice"), of[service][round])
			}
			n++
		}
	}
	return f
}

func (p *Page) tryVoices(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	var all []lab.Voice
	for i := range maxVoices {
		service := f.Get(slot(i, "service"))
		if service == "" {
			continue
		}
		if !slices.Contains(p.role("tts").Names, service) {
			f.Wrong(slot(i, "service"), p.site.Say(r, "trials/no-service", service))
		}
		v := lab.Voice{Service: service, Voice: f.Get(slot(i, "voice"))}
		if typed := f.Get(slot(i, "speed")); typed != "" && typed != "1" {
			var err error
			if v.Speed, err = strconv.ParseFloat(typed, 64); err != nil || !(v.Speed >= 0.25 && v.Speed <= 4) {
				f.Wrong(slot(i, "speed"), p.site.Say(r, "trials/no-speed"))
			}
		}
		all = append(all, v)
	}
	if f.Valid() {
		run, err := p.o.Lab.Voices(lab.Person(r), f.Get("sentence"), all)
		p.o.Stock.Did(r, "voices.compare", "", err)
		if err == nil {
			query := url.Values{}
			if agent := f.Get("agent"); agent != "" {
				query.Set("agent", agent)
			}
			p.begun(w, r, f, run, voicesPath, query)
			return
		}
		if !p.site.Explain(w, r, f, "sentence", err) {
			return
		}
	}
	p.voices(w, r, nil, f)
}

// pick gives an agent a voice that was heard.
func (p *Page) pick(w http.ResponseWriter, r *http.Request) {
	f, ok := p.site.Form(w, r)
	if !ok {
		return
	}
	agent := f.Get("agent")
	patch, err := json.Marshal(map[string]any{"tts": []string{f.Get("service")}, "voice": f.Get("voice")})
	if err == nil {
		err = p.o.Stock.Change(r, agent, patch)
	}
	if err == nil {
		p.site.Done(w, r, voicesPath+"?"+url.Values{"run": {f.Get("run")}, "agent": {agent}}.Encode(), "trials/picked", agent, f.Get("voice")+" ("+f.Get("service")+")")
		return
	}
	if p.site.Explain(w, r, f, "", err) {
		p.voices(w, r, nil, f)
	}
}
