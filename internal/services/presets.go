package services

import (
	"context"
	"log/slog"

	"xiaozhi/internal/engines"
	"xiaozhi/internal/text"
	"xiaozhi/providers/service"
)

// Preset is a service that new servers are often set up with.
type Preset struct {
	Kind

	Own  bool   // at an address of one's own
	Here string // what was found of it on this machine; "": it is not there, or nobody looked
	Set  string // section by which it is set up already; "": it is not
}

// Presets lists them, those first that people who read a language know and can have a key of, and of these what hears, thinks
// and speaks. A program on this machine is among them if it runs.
func (s *Services) Presets(ctx context.Context, lang text.Lang) (all []Preset) {
	cfg := s.o.Settings.Current()
	names := []string{"openai", "deepseek", "", "ollama", "dashscope", "siliconflow", "doubao", "volcengine"}
	if lang.IsChinese() {
		names = []string{"dashscope", "siliconflow", "deepseek", "doubao", "volcengine", "openai", "", "ollama"}
	}
	for _, name := range names {
		p := Preset{Own: name == ""}
		if p.Own {
			name = "openai"
		}
		p.Kind, _ = KindOf(name)
		for section, set := range cfg.Providers {
			if set.Type == name && p.Own == (set.BaseURL != "") && (p.Set == "" || section < p.Set) {
				p.Set = section
			}
		}
		if name == "ollama" {
			if p.Here = s.ollama(ctx); p.Here == "" && p.Set == "" {
				continue
			}
		}
		all = append(all, p)
	}
	return all
}

// ollama says which model the one on this machine has; "": it does not run.
func (s *Services) ollama(ctx context.Context) string {
	made := engines.OpenServices(s.o.Settings.Current(), slog.New(slog.DiscardHandler))
	defer made.Close()
	one := made.Try(ctx, "ollama", service.LLM)
	if one.Err != nil {
		return ""
	}
	return one.What
}
