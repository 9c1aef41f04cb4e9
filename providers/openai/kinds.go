package openai

import (
	"maps"
	"net/url"
	"slices"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/generation"
	"xiaozhi/providers/service"
)

// Kinds describes all vendors with this wire format, those with several names under each.
func Kinds() []service.Kind {
	var out []service.Kind
	for _, v := range Vendors() {
		out = append(out, v.kind())
	}
	for _, name := range slices.Sorted(maps.Keys(aliases())) {
		v, _ := VendorOf(name) // each alias stands for a vendor
		k := v.kind()
		k.Type = name
		out = append(out, k)
	}
	return out
}

// kind describes a vendor's models.
func (v Vendor) kind() service.Kind {
	k := service.Kind{
		Type: v.Type, Title: v.Title, Address: v.Address, Regions: v.Regions, Free: v.Free, Extra: true,
		Models: map[service.Role][]string{service.LLM: v.Models},
		LLM:    func(s service.Section) (providers.LLM, error) { return v.model(s) },
	}
	v.speech(&k)
	v.embeds(&k)
	if v.Env != "" {
		k.Env = []service.Env{{Field: service.Key, Name: v.Env}}
	}
	if !v.Free {
		k.Needs = []service.Field{service.Key}
	}
	return k
}

// model makes the model of a section.
func (v Vendor) model(s service.Section) (*LLM, error) {
	first := ""
	if len(v.Models) > 0 {
		first = v.Models[0]
	}
	address := strings.TrimSuffix(strings.TrimRight(s.Address(v.Regions, v.Address), "/"), "/chat/completions")
	base, at, err := generation.FromSection(s, service.LLM, address, first)
	if err != nil {
		return nil, err
	}
	o := Options{
		Name: s.Name, BaseURL: at.Base, APIKey: s.Key, Model: base.Model, MaxTokens: s.MaxTokens, Extra: s.Extra, Headers: s.Headers,
		Quirks: v.Quirks, Vision: s.Vision, HTTPClient: at.Client, Retries: base.Retries,
		Timeouts: Timeouts{Connect: s.Timeouts.Connect, FirstToken: s.Timeouts.First, NextToken: s.Timeouts.Next},
	}
	if u, err := url.Parse(at.Base); err == nil && u.Path == "" {
		if own, err := url.Parse(v.Address); err == nil && own.Path != "" {
			o.versioned = at.Base + own.Path
		}
	}
	if o.Retries == 0 {
		o.Retries = -1
	}
	if s.Temperature != nil {
		t := float32(*s.Temperature)
		o.Temperature = &t
	}
	return NewLLM(o)
}
