package app

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"xiaozhi/connection/identity"
	"xiaozhi/console/agents"
	"xiaozhi/console/conversations"
	"xiaozhi/console/trials"
	"xiaozhi/console/ui"
	"xiaozhi/internal/access"
	"xiaozhi/internal/account"
	"xiaozhi/internal/config"
	"xiaozhi/internal/engines"
	"xiaozhi/internal/fleet"
	"xiaozhi/internal/roster"
	"xiaozhi/internal/text"
	"xiaozhi/providers/catalog"
	"xiaozhi/providers/service"
)

// agentStock tells what agents can be made of.
type agentStock struct{ stage }

// Prompts implements [agents.Stock].
func (s agentStock) Prompts() []string { return s.app.crew.texts.Names() }

// PromptText implements [agents.Stock].
func (s agentStock) PromptText(name, lang string) string { return s.app.crew.texts.Source(name, lang) }

// Languages implements [agents.Stock].
func (s agentStock) Languages() []string { return s.app.crew.texts.Languages() }

// Roles lists the chains of all, and the services that are set up or on this machine.
func (s agentStock) Roles() (all []agents.Role) {
	cfg, kinds, of := s.app.crew.settings(), catalog.Kinds(), map[service.Role]*agents.Role{}
	for _, role := range []service.Role{service.ASR, service.LLM, service.TTS, service.Vision, service.Realtime} {
		all = append(all, agents.Role{Key: strings.ToLower(string(role))})
	}
	for i, role := range []service.Role{service.ASR, service.LLM, service.TTS, service.Vision, service.Realtime} {
		of[role] = &all[i]
	}
	for _, c := range (condition{s.app}).chains().Chains {
		to := of[c.Role]
		if to == nil {
			continue
		}
		for _, m := range c.Members {
			if m.Condition != engines.LeftOut {
				to.Names = append(to.Names, m.Name)
			}
			if len(c.Agents) == 0 && m.Condition != engines.LeftOut {
				to.All = append(to.All, m.Name)
			}
		}
	}
	for name, section := range cfg.Providers {
		if k, ok := catalog.Find(kinds, section.Type); ok {
			for _, role := range k.Roles() {
				if to := of[role]; to != nil {
					to.Names = append(to.Names, name)
				}
			}
		}
	}
	for _, to := range of {
		slices.Sort(to.Names)
		to.Names = slices.Compact(to.Names)
	}
	of[service.Realtime].Names = append(of[service.Realtime].Names, config.NoChain)
	return all
}

// Voices lists the known ones of the services that are set up.
func (s agentStock) Voices() (all []agents.Voice) {
	cfg, kinds, known := s.app.crew.settings(), catalog.Kinds(), map[string]bool{}
	for _, role := range s.Roles() {
		for _, name := range role.Names {
			k, _ := catalog.Find(kinds, cmp.Or(cfg.Providers[name].Type, name))
			voices := k.Voices
			if name == "local" {
				for _, voice := range config.LocalVoices() {
					voices = append(voices, service.Voice{Name: voice})
				}
			}
			for _, v := range voices {
				if role.Key == "tts" && !known[v.Name] {
					known[v.Name] = true
					all = append(all, agents.Voice{Name: v.Name, Title: cmp.Or(v.Title, name), Service: name})
				}
			}
		}
	}
	return all
}

// shownDevices are how many devices of a person are asked for their tools.
const shownDevices = 16

// Tools lists those of the server, and those that devices of who asks have offered.
func (s agentStock) Tools(r *http.Request) (all []agents.Tool) {
	ids, known := []string{""}, map[string]bool{}
	for _, d := range s.Devices(r) {
		ids = append(ids, d.ID)
	}
	for _, id := range ids[:min(len(ids), shownDevices)] {
		tools := s.router(r.Context(), id)
		for _, o := range tools.Offers() {
			if t := o.Tool; !known[t.Name] {
				known[t.Name] = true
				about, _, _ := strings.Cut(text.Half(t.Description, ui.Lang(r)), "\n")
				all = append(all, agents.Tool{Name: t.Name, Source: t.Source, About: about})
			}
		}
		tools.Close()
	}
	return all
}

// Devices lists those of who asks; an owner's are all.
func (s agentStock) Devices(r *http.Request) (all []agents.Device) {
	who := access.PersonOf(r)
	known, err := s.app.seen.fleet.List(r.Context())
	if err != nil {
		s.app.log.Warn("devices are not known", "err", err)
	}
	for _, d := range known {
		if d.State != fleet.Waiting && d.State != fleet.Refused && who.Knows(d.Owner) {
			all = append(all, agents.Device{ID: d.ID, Name: d.Name})
		}
	}
	return all
}

// Check implements [agents.Stock].
func (s agentStock) Check(name string, doc []byte) (all []agents.Flaw) {
	_, err := s.app.crew.settings().ReadAgent(cmp.Or(name, draft), doc, s.app.crew.texts.Names())
	for _, e := range config.Errors(err) {
		_, english, found := strings.Cut(e.English, ": ")
		if !found {
			english = e.English
		}
		key := ""
		if len(e.Path) > 2 {
			key = strings.Join(e.Path[2:], ".")
		}
		all = append(all, agents.Flaw{Key: key, In: map[text.Lang]string{text.English: english, text.Chinese: e.Chinese}})
	}
	return all
}

// trialStock tells what can be tried beside the talks.
type trialStock struct {
	agentStock

	book *roster.API
}

// Names lists the agents that who asks may know of; mine: those that they may change.
func (s trialStock) Names(r *http.Request, mine bool) (all []string) {
	who := access.PersonOf(r)
	for _, a := range s.book.All(r) {
		if !mine || a.From != "settings" && (who.Is(account.Owner) || a.Owner != "" && a.Owner == who.ID) {
			all = append(all, a.Name)
		}
	}
	return all
}

// Change implements [trials.Stock].
func (s trialStock) Change(r *http.Request, agent string, patch []byte) error {
	if !slices.Contains(s.Names(r, true), agent) {
		return account.ErrForbidden
	}
	return s.book.Change(r, agent, patch)
}

// Sides implements [trials.Stock].
func (s trialStock) Sides(ctx context.Context, turn string) (user, reply bool, err error) {
	all, err := s.app.stored.Recordings.Of(ctx, turn)
	for _, one := range all {
		if one.EndsAt.After(time.Now()) {
			user, reply = user || one.Side == "user", reply || one.Side == "reply"
		}
	}
	return user, reply, err
}

// DeviceOwner implements [trials.Stock].
func (s trialStock) DeviceOwner(ctx context.Context, device string) (string, error) {
	return deviceOwner(s.app.stored)(ctx, identity.ParseID(device))
}

// TurnOwner implements [trials.Stock].
func (s trialStock) TurnOwner(ctx context.Context, turn string) (string, error) {
	return s.app.web.lab.TurnOwner(ctx, turn)
}

// Talk implements [trials.Stock].
func (s trialStock) Talk(ctx context.Context, turn string) (string, error) {
	talk, err := s.app.stored.Talks.OfTurn(ctx, turn)
	return talk.ID, err
}

// Did implements [trials.Stock].
func (s trialStock) Did(r *http.Request, act, object string, err error) {
	s.app.web.guard.Did(r, act, object, err)
}

// Currency implements [trials.Stock].
func (s trialStock) Currency() string { return s.app.cfg.Console.Currency }

// Zone implements [trials.Stock].
func (s trialStock) Zone() *time.Location { return s.app.forces.zone.Location() }

// trialsOf connects the pages of trials with the program.
func trialsOf(a *App) trials.Options {
	return trials.Options{Lab: a.web.lab.Lab, Stock: trialStock{a.web.stock, a.crew.api(a.web.guard, a.stored)}}
}

// choicesOf lists what people can choose in a search for talks.
func choicesOf(a *App) func(r *http.Request) (devices, agents []conversations.Choice) {
	stock := trialsOf(a).Stock
	return func(r *http.Request) (devices, agents []conversations.Choice) {
		for _, d := range stock.Devices(r) {
			devices = append(devices, conversations.Choice{Value: d.ID, Text: d.Label()})
		}
		for _, name := range stock.Names(r, false) {
			agents = append(agents, conversations.Choice{Value: name, Text: name})
		}
		return devices, agents
	}
}
