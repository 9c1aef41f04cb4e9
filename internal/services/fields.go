package services

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"xiaozhi/internal/config"
	"xiaozhi/providers/service"
)

// Input names a way of typing.
type Input string

// The inputs.
const (
	Line   Input = "line"   // of text
	Number Input = "number" // with a point, if it has one
	Whole  Input = "whole"  // number
	Switch Input = "switch" // yes, no, or as usual
	Choice Input = "choice" // one of Values
	List   Input = "list"   // an entry a line
	Object Input = "object" // JSON
	Time   Input = "time"   // such as 1.5s
	Secret Input = "secret" // never shown
)

// Field is a key of a section that people can set.
type Field struct {
	Key    string // below the section, such as "base_url" or "voice.zh"
	Input  Input
	Values []string // of a choice; else some that are known
	First  bool     // it is shown at once
	Needed bool     // the service does not work without it
	Value  string   // that is set; "": none is, or it is a secret
	Usual  string   // what counts where nothing is set; "": not known
	Kept   *Kept    // a secret that is set; nil: none is
	Pinned string   // where it is set so that the console cannot change it: FILE:LINE or a variable; "": it can
}

// Kept tells of a secret that is set.
type Kept struct {
	Name  string    // by which it is sealed; "": it stands in a file or a variable
	Tail  string    // its last signs; "": too short to be told
	By    string    // who has typed it
	At    time.Time // when
	Bound string    // host that it is for
	Place string    // where it stands otherwise
}

// languages are those for which a voice can be named beside that for all.
var languages = []string{"zh", "en"}

// fieldsOf lists the fields of a kind, those that are shown at once first.
func fieldsOf(k Kind, p config.Provider) []Field {
	if k.Group == Offline {
		return offlineFields(k, p)
	}
	hears, speaks, thinks := slices.Contains(k.Does, service.ASR), slices.Contains(k.Does, service.TTS), slices.Contains(k.Does, service.LLM)
	duplex := slices.Contains(k.Does, service.Realtime)
	var all []Field
	add := func(when bool, f Field) {
		if when && !slices.Contains(k.Lacks, f.Key) {
			all = append(all, f)
		}
	}
	for _, field := range []service.Field{service.ID, service.Key, service.Secret} {
		takes := slices.ContainsFunc(k.Env, func(e service.Env) bool { return e.Field == field })
		needed := slices.Contains(k.Needs, field)
		input := Secret
		if field == service.ID {
			input = Line
		}
		add(takes || field == service.Key, Field{Key: string(field), Input: input, First: needed || takes && len(k.Needs) == 0, Needed: needed && p.BaseURL == ""})
	}
	add(true, Field{Key: "base_url", Input: Line, First: k.Group == Home || p.BaseURL != "", Needed: k.Address == "" && len(k.Regions) == 0, Usual: k.Address})
	add(len(k.Regions) > 0, Field{Key: "region", Input: Choice, First: true, Values: slices.Sorted(maps.Keys(k.Regions)), Usual: regionOf(k)})
	all = append(all, modelFields(k)...)
	var voices []string
	for _, v := range k.Voices {
		voices = append(voices, v.Name)
	}
	add(speaks || duplex, Field{Key: "voice", Input: Line, First: true, Values: voices, Usual: first(voices)})
	for _, tag := range tagsOf(p) {
		add(speaks || duplex, Field{Key: "voice." + tag, Input: Line, Values: voices})
	}
	add(speaks || duplex, Field{Key: "speed", Input: Number, Usual: "1"})
	add(speaks && len(k.Formats) > 1, Field{Key: "format", Input: Choice, Values: k.Formats, Usual: first(k.Formats)})
	add(speaks, Field{Key: "sample_rate", Input: Whole})
	add(thinks || duplex, Field{Key: "temperature", Input: Number})
	add(thinks || duplex, Field{Key: "max_tokens", Input: Whole})
	add(thinks, Field{Key: "vision", Input: Switch})
	for _, s := range k.More {
		add(config.Changeable(pathOf(k.Type, s.Name)), settingField(s))
	}
	add(k.Extra, Field{Key: "extra", Input: Object})
	add(hears || duplex, Field{Key: "transcript", Input: Time, Usual: "1.5s"})
	add(thinks || duplex, Field{Key: "first_token", Input: Time, Usual: "1.5s"})
	add(speaks || duplex, Field{Key: "first_sound", Input: Time, Usual: "1.5s"})
	add(true, Field{Key: "timeout", Input: Time})
	add(true, Field{Key: "retries", Input: Whole})
	add(true, Field{Key: "proxy", Input: Line})
	for _, price := range []string{"input", "cached", "output"} {
		add(thinks || duplex, Field{Key: "price." + price, Input: Number})
	}
	add(slices.Contains(k.Does, service.Embed), Field{Key: "price.embed", Input: Number})
	add(hears || duplex, Field{Key: "price.minute", Input: Number})
	add(speaks, Field{Key: "price.characters", Input: Number})
	return sorted(all)
}

// offlineFields are those of engines in the program: they are nowhere else, and cost nothing.
func offlineFields(k Kind, p config.Provider) (all []Field) {
	all = append(all, modelFields(k)...)
	if k.Type == plain {
		all = append(all, Field{Key: "voice.en", Input: Line, First: true})
	} else if slices.Contains(k.Does, service.TTS) {
		all = append(all, Field{Key: "voice", Input: Line, First: true})
		for _, tag := range tagsOf(p) {
			all = append(all, Field{Key: "voice." + tag, Input: Line})
		}
		all = append(all, Field{Key: "speed", Input: Number, Usual: "1"})
	}
	for _, s := range k.More {
		if config.Changeable(pathOf(k.Type, s.Name)) { // paths of this machine stand in files
			all = append(all, settingField(s))
		}
	}
	return sorted(all)
}

// modelFields are those that name models: "model" is that of the first role, or of the only one.
func modelFields(k Kind) (all []Field) {
	known := func(key string, r service.Role, at bool) {
		if models, ok := k.Models[r]; ok && slices.Contains(k.Does, r) {
			all = append(all, Field{Key: key, Input: Line, First: at, Values: models, Usual: first(models)})
		}
	}
	of := 0
	for _, r := range k.Does {
		if _, ok := k.Models[r]; ok {
			of++
		}
	}
	if of == 1 {
		for _, r := range k.Does {
			known("model", r, true)
		}
		return all
	}
	known("model", service.LLM, true)
	known("model", service.Realtime, true)
	known("asr_model", service.ASR, !slices.Contains(k.Does, service.LLM))
	known("tts_model", service.TTS, !slices.Contains(k.Does, service.LLM))
	known("embed_model", service.Embed, false)
	return all
}

func settingField(s service.Setting) Field {
	f := Field{Key: s.Name, Values: s.Values}
	switch s.Type {
	case service.Flag:
		f.Input = Switch
	case service.Number:
		f.Input = Number
	case service.List:
		f.Input = List
	default:
		f.Input = Line
		if len(s.Values) > 0 {
			f.Input = Choice
		}
	}
	return f
}

// tagsOf are the languages with a voice of their own, and the usual ones.
func tagsOf(p config.Provider) []string {
	all := slices.Clone(languages)
	for _, tag := range slices.Sorted(maps.Keys(p.Voice)) {
		if tag != "" && !slices.Contains(all, tag) {
			all = append(all, tag)
		}
	}
	return all
}

// regionOf is the region whose address is that of the kind.
func regionOf(k Kind) string {
	for _, name := range slices.Sorted(maps.Keys(k.Regions)) {
		if k.Regions[name] == k.Address {
			return name
		}
	}
	return ""
}

func first(all []string) string {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

func sorted(all []Field) []Field {
	slices.SortStableFunc(all, func(a, b Field) int {
		switch {
		case a.First == b.First:
			return 0
		case a.First:
			return -1
		}
		return 1
	})
	return all
}

// valueOf returns the value under a key of a section, as people type it; "": nothing, or a secret.
func valueOf(p config.Provider, key string) string {
	if tag, ok := strings.CutPrefix(key, "voice."); ok {
		return p.Voice[tag]
	}
	number := func(v float64) string {
		if v == 0 {
			return ""
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	whole := func(v int) string { return number(float64(v)) }
	long := func(d time.Duration) string {
		if d == 0 {
			return ""
		}
		return d.String()
	}
	switch key {
	case "api_key", "api_secret":
		return ""
	case "app_id":
		return p.AppID
	case "base_url":
		return p.BaseURL
	case "region":
		return p.Region
	case "model":
		return p.Model
	case "asr_model":
		return p.ASRModel
	case "tts_model":
		return p.TTSModel
	case "embed_model":
		return p.EmbedModel
	case "voice":
		return p.Voice[""]
	case "speed":
		return number(p.Speed)
	case "format":
		return p.Format
	case "sample_rate":
		return whole(p.SampleRate)
	case "temperature":
		if p.Temp == nil {
			return ""
		}
		return strconv.FormatFloat(*p.Temp, 'f', -1, 64)
	case "max_tokens":
		return whole(p.MaxTokens)
	case "vision":
		if !p.Vision {
			return ""
		}
		return "true"
	case "decoders":
		return whole(p.Decoders)
	case "extra":
		return object(p.Extra)
	case "transcript":
		return long(p.Transcript)
	case "first_token":
		return long(p.FirstToken)
	case "first_sound":
		return long(p.FirstSound)
	case "timeout":
		return long(p.Timeout)
	case "retries":
		if p.Retries == nil {
			return ""
		}
		return strconv.Itoa(*p.Retries)
	case "proxy":
		return p.Proxy
	case "price.input":
		return number(p.Price.Input)
	case "price.cached":
		return number(p.Price.Cached)
	case "price.output":
		return number(p.Price.Output)
	case "price.minute":
		return number(p.Price.Minute)
	case "price.characters":
		return number(p.Price.Characters)
	}
	return settingText(p.Settings[key])
}

// settingText is a setting of a kind as people type it.
func settingText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		var lines []string
		for _, one := range v {
			lines = append(lines, settingText(one))
		}
		return strings.Join(lines, "\n")
	}
	return ""
}

// object writes keys and values as JSON.
func object(v map[string]any) string {
	if len(v) == 0 {
		return ""
	}
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil { // it was read from YAML, which has more
		return ""
	}
	return string(raw)
}
