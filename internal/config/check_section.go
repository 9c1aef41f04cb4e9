package config

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"xiaozhi/internal/text"
	"xiaozhi/internal/text/message"
	"xiaozhi/prompts"
	"xiaozhi/providers/service"
)

// with lists the types of which something holds, none of them twice under another name.
func (t types) with(holds func(service.Kind) bool) []string {
	var all []string
	for _, k := range t.kinds {
		if holds(k) {
			all = append(all, k.Type)
		}
	}
	return all
}

// sectionChecker holds a section of a service to what its type takes.
type sectionChecker struct {
	checker
	name string
	p    Provider
	k    service.Kind // the zero kind of a type that is unknown, or of an engine without one
}

// at returns the path of a key of the section.
func (ch sectionChecker) at(key string) []string { return []string{"providers", ch.name, key} }

// check checks what the type of the section decides.
func (ch sectionChecker) check() {
	name, p, k, at := ch.name, ch.p, ch.k, ch.at
	switch service := k.Type != "" && k.Here == nil; {
	case p.BaseURL != "":
		ch.baseURL()
	case service && k.Address == "" && len(k.Regions) == 0 && len(p.MissingEnv) == 0:
		ch.warn(at("base_url"), "config/needs-address")
	}
	formats := []string{"pcm", "wav", "mp3", "opus"}
	if len(k.Formats) > 0 {
		formats = k.Formats
	}
	if p.Format != "" {
		ch.oneOf(p.Format, formats, at("format")...)
	}
	if regions := slices.Sorted(maps.Keys(k.Regions)); p.Region != "" && !slices.Contains(regions, p.Region) {
		other := ch.types.with(func(k service.Kind) bool { return k.Regions[p.Region] != "" })
		switch {
		case len(regions) == 0:
			ch.bad(at("region"), "config/no-regions", p.Type)
		case len(other) > 0:
			ch.bad(at("region"), "config/other-region", p.Region, prompts.Nearest(p.Region, regions), strings.Join(regions, ", "), strings.Join(other, ", "))
		default:
			ch.bad(at("region"), "config/no-region", p.Region, prompts.Nearest(p.Region, regions), strings.Join(regions, ", "))
		}
	}
	ch.checkNames()
	ch.checkKeys()
	ch.checkUse()
	for _, key := range slices.Sorted(maps.Keys(p.Settings)) {
		i := slices.IndexFunc(k.More, func(s service.Setting) bool { return s.Name == key })
		if i < 0 {
			ch.unknownKey(ch.place(at(key)...), []string{"providers", name}, key, meantKeys(key, keysOf(k)))
			continue
		}
		ch.setting(p.Settings[key], k.More[i], at(key)...)
		if tag, ok := p.Settings[key].(string); ok && key == "language" && tag != "multi" && tag != "auto" { // two that some services have beside tags
			ch.language(strings.ReplaceAll(tag, "_", "-"), at(key)...)
		}
	}
}

// meantKeys returns the key for which other programs have this name, if it is one of a section, or else all keys.
func meantKeys(name string, keys []string) []string {
	for _, m := range []struct {
		key   string
		names []string
	}{
		{"base_url", []string{"url", "api_base", "api_url", "baseurl", "endpoint", "host", "server", "address", "ws_url"}},
		{"api_key", []string{"key", "token", "access_token", "secret_id", "apikey", "ak", "access_key", "subscription_key"}},
		{"api_secret", []string{"secret", "secret_key", "sk", "access_key_secret"}},
		{"app_id", []string{"appid", "appkey", "app_key", "bot_id", "group_id"}},
		{"speed", []string{"rate", "speed_ratio", "speech_rate"}},
		{"model", []string{"model_name", "llm_model", "deployment"}},
		{"voice", []string{"speaker", "voice_id", "voice_type", "vcn", "timbre"}},
		{"format", []string{"encoding", "audio_format", "response_format"}},
	} {
		if slices.Contains(m.names, strings.ToLower(name)) && slices.Contains(keys, m.key) {
			return []string{m.key}
		}
	}
	return keys
}

// checkNames warns of voices and models that are known by a name which is a slip away, and
// of keys that are missing: services have more voices and models than are known here.
func (ch sectionChecker) checkNames() {
	p, k, at := ch.p, ch.k, ch.at
	var voices []string
	for _, v := range k.Voices {
		voices = append(voices, v.Name)
	}
	for _, language := range slices.Sorted(maps.Keys(p.Voice)) {
		if meant, slip := meantVoice(p.Voice[language], voices); slip {
			ch.warn(at("voice"), "config/near-voice", p.Voice[language], meant)
		} else if k.TTS != nil || k.Realtime != nil {
			ch.otherVoice(p.Voice[language], voices)
		}
	}
	for key, model := range map[string]string{"model": p.Model, "asr_model": p.ASRModel, "tts_model": p.TTSModel, "embed_model": p.EmbedModel} {
		if meant, slip := prompts.Misspelt(model, slices.Concat(slices.Collect(maps.Values(k.Models))...)); slip && model != "" {
			ch.warn(at(key), "config/near-model", model, meant)
		}
	}
	for key, role := range map[string]service.Role{"asr_model": service.ASR, "tts_model": service.TTS, "embed_model": service.Embed} {
		ch.otherModel(key, map[string]string{"asr_model": p.ASRModel, "tts_model": p.TTSModel, "embed_model": p.EmbedModel}[key], role)
	}
	if p.BaseURL != "" || len(p.Headers) > 0 || len(p.MissingEnv) > 0 {
		return // a service of one's own may need no key
	}
	has := map[service.Field]bool{service.Key: p.APIKey != "", service.ID: p.AppID != "", service.Secret: p.APISecret != ""}
	for _, e := range k.Env {
		if slices.Contains(k.Needs, e.Field) && !has[e.Field] && ch.env[e.Name] == "" {
			ch.warn(at(string(e.Field)), "config/needs-key", e.Name)
		}
	}
}

// meantVoice returns the known voice that was meant by a name which is a slip away, or that only names the person in it, as
// "xiaoxiao" does in zh-CN-XiaoxiaoNeural.
func meantVoice(name string, known []string) (meant string, ok bool) {
	if meant, ok = prompts.Misspelt(name, known); ok || len(name) < 4 || slices.Contains(known, name) {
		return meant, ok
	}
	for _, voice := range known {
		if rest, found := strings.CutSuffix(strings.ToLower(voice), strings.ToLower(name)+"neural"); found && strings.HasSuffix(rest, "-") {
			return voice, true
		}
	}
	return "", false
}

// nearestType returns the type that is meant by a word: what people call a vendor, or the nearest spelling.
func nearestType(word string, all []string) string {
	for _, lang := range []text.Lang{text.English, text.Chinese} {
		for _, name := range message.List(lang, "config/vendors") {
			called, kind, _ := strings.Cut(name, ": ")
			if strings.Contains(strings.ToLower(word), called) && slices.Contains(all, kind) {
				return kind
			}
		}
	}
	return prompts.Nearest(strings.ToLower(word), all)
}

// endings of addresses that name one request: clients add them by themselves.
var endings = []string{
	"/chat/completions", "/completions", "/audio/transcriptions", "/audio/speech", "/v1/messages", "/responses", "/models", "/chat-messages", "/inference", "/api/chat", "/api/generate",
}

// baseURL reports an address that the type of a section cannot do anything with.
func (ch sectionChecker) baseURL() {
	p, k, at := ch.p, ch.k, ch.at("base_url")
	ch.address(p.BaseURL, k.Begins(), at...)
	u, err := url.Parse(strings.TrimSpace(p.BaseURL))
	if err != nil || u.Host == "" {
		if strings.Contains(p.BaseURL, "://") {
			ch.bad(at, "config/no-url")
		}
		return
	}
	if port, err := strconv.Atoi(u.Port()); u.Port() != "" && (err != nil || port < 1 || port > 65535) {
		ch.bad(at, "config/port", u.Port())
	}
	if p.Region != "" {
		ch.warn(at, "config/region-unused", p.Region)
	}
	if k.Type == "n8n" { // its address is that of the request
		return
	}
	path := strings.TrimRight(u.Path, "/")
	for _, end := range endings {
		if before, ok := strings.CutSuffix(path, end); ok {
			ch.bad(at, "config/whole-url", end, u.Scheme+"://"+u.Host+before)
			return
		}
	}
}

// faults are the ways in which keys are written wrongly, by the ids of their messages.
var faults = []struct {
	id  string
	has func(key string) bool
}{
	{"config/key-variable", regexp.MustCompile(`^\$[A-Za-z_][A-Za-z0-9_]*$|^%[A-Za-z_]+%$`).MatchString},
	{"config/key-quotes", regexp.MustCompile(`^["'` + "`" + `“”‘’].*["'` + "`" + `“”‘’]$`).MatchString},
	{"config/key-bearer", regexp.MustCompile(`(?i)^(bearer|token|api-?key)[ :=]`).MatchString},
	{"config/key-placeholder", regexp.MustCompile(`(?i)^(<.*>|your[-_ ].*|(sk-)?x{4,}|change-?me|\.\.\.|…)$`).MatchString},
	{"config/key-space", func(key string) bool {
		return strings.ContainsFunc(key, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	}},
	{"config/key-foreign", func(key string) bool {
		return strings.ContainsFunc(key, func(r rune) bool { return r > unicode.MaxASCII })
	}},
}

// faultOf returns the id of the message about a key that can be none; "": it can be one.
func faultOf(key string) string {
	for _, f := range faults {
		if key != "" && !strings.HasPrefix(key, sealedPrefix) && f.has(key) {
			return f.id
		}
	}
	return ""
}

// checkKeys reports keys that can be none, and those that the type of a section does not take. It shows none.
func (ch sectionChecker) checkKeys() {
	p, k, at := ch.p, ch.k, ch.at
	if k.Type == "n8n" { // app_id and api_secret are a person's name and password there
		return
	}
	set := map[service.Field]string{service.Key: string(p.APIKey), service.ID: p.AppID, service.Secret: string(p.APISecret)}
	file := map[service.Field]string{service.Key: p.APIKeyFile, service.Secret: p.APISecretFile}
	for _, f := range []service.Field{service.Key, service.ID, service.Secret} {
		where := at(string(f))
		if file[f] != "" {
			where = at(string(f) + fileSuffix)
		}
		takes := func(e service.Env) bool { return e.Field == f }
		switch id := faultOf(set[f]); {
		case set[f] == "":
		case id != "":
			ch.bad(where, id)
		case k.Type != "" && f != service.Key && !slices.ContainsFunc(k.Env, takes):
			other := ch.types.with(func(o service.Kind) bool { return slices.ContainsFunc(o.Env, takes) })
			ch.warn(where, "config/other-key", k.Type, strings.Join(other, ", "))
		}
	}
	for _, header := range slices.Sorted(maps.Keys(p.Headers)) {
		if strings.ContainsAny(string(p.Headers[header]), "\r\n\x00") {
			ch.bad(append(at("headers"), header), "config/key-space")
		}
	}
}

// checkVariables warns of keys of the environment that can be none.
func (ch checker) checkVariables() {
	told := map[string]bool{}
	for _, k := range ch.types.kinds {
		for _, e := range k.Env {
			if id := faultOf(ch.env[e.Name]); id != "" && !told[e.Name] {
				told[e.Name] = true
				ch.warn([]string{"$" + e.Name}, id)
			}
		}
	}
}

// checkUse warns of settings that the type of a section does nothing with.
func (ch sectionChecker) checkUse() {
	p, k := ch.p, ch.k
	if k.Type == "" {
		return
	}
	prices := p.Price.each()
	for _, key := range slices.Sorted(maps.Keys(prices)) {
		if prices[key] < 0 || prices[key] > maxPrice {
			ch.bad(append(ch.at("price"), key), "config/price", prices[key])
		}
	}
	speaks := k.TTS != nil || k.Realtime != nil
	thinks := k.LLM != nil || k.Realtime != nil
	idle := map[string]bool{
		"temperature": p.Temp != nil && !thinks, "max_tokens": p.MaxTokens != 0 && !thinks, "vision": p.Vision && k.LLM == nil,
		"first_token": p.FirstToken != 0 && !thinks, "first_sound": p.FirstSound != 0 && !speaks, "transcript": p.Transcript != 0 && k.ASR == nil && k.Realtime == nil,
		"asr_model": p.ASRModel != "" && k.ASR == nil, "tts_model": p.TTSModel != "" && k.TTS == nil, "embed_model": p.EmbedModel != "" && k.Embed == nil,
		"voice": len(p.Voice) > 0 && !speaks, "format": p.Format != "" && !speaks, "sample_rate": p.SampleRate != 0 && !speaks, "speed": p.Speed != 0 && !speaks,
		"extra": len(p.Extra) > 0 && !k.Extra, "decoders": p.Decoders != 0 && !slices.ContainsFunc(k.More, func(s service.Setting) bool { return s.Name == "decoders" }),
	}
	set := map[string]bool{"speed": p.Speed != 0, "proxy": p.Proxy != "" && p.Proxy != "none", "api_key": p.APIKey != "", "headers": len(p.Headers) > 0}
	for _, key := range k.Lacks {
		idle[key] = idle[key] || set[key]
	}
	for _, key := range slices.Sorted(maps.Keys(idle)) {
		if idle[key] {
			ch.warn(ch.at(key), "config/unused", k.Type)
		}
	}
}

// maxPrice is more than any service takes in any money. Sums of higher ones are too large for what keeps them.
const maxPrice = 1e9

// each lists the prices by their keys.
func (p Price) each() map[string]float64 {
	return map[string]float64{"input": p.Input, "cached": p.Cached, "output": p.Output, "embed": p.Embed, "minute": p.Minute, "characters": p.Characters}
}

// otherVoice warns of a voice that is known of another type and not of this one.
func (ch sectionChecker) otherVoice(voice string, known []string) {
	if voice == "" || len(known) == 0 || slices.Contains(known, voice) {
		return
	}
	other := ch.types.with(func(o service.Kind) bool {
		return o.Type != ch.k.Type && slices.ContainsFunc(o.Voices, func(v service.Voice) bool { return v.Name == voice })
	})
	if len(other) > 0 {
		ch.warn(ch.at("voice"), "config/other-voice", voice, strings.Join(other, ", "), ch.k.Type, strings.Join(known[:min(len(known), 5)], ", "))
	}
}

// otherModel warns of a model that is known for another role than the one that it is set for.
func (ch sectionChecker) otherModel(key, model string, role service.Role) {
	k := ch.k
	if model == "" || len(k.Models[role]) == 0 || slices.Contains(k.Models[role], model) {
		return
	}
	for _, other := range slices.Sorted(maps.Keys(k.Models)) {
		if slices.Contains(k.Models[other], model) {
			ch.warn(ch.at(key), "config/other-model", model, other, role, strings.Join(k.Models[role], ", "))
			return
		}
	}
}
