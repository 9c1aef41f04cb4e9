// Package catalog lists every kind of service that can be set up. A new one is a folder
// under providers and a line here.
package catalog

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"xiaozhi/providers"
	"xiaozhi/providers/aliyun"
	"xiaozhi/providers/azure"
	"xiaozhi/providers/baidu"
	"xiaozhi/providers/cartesia"
	"xiaozhi/providers/cosyvoice"
	"xiaozhi/providers/dashscope"
	"xiaozhi/providers/deepgram"
	"xiaozhi/providers/doubaodialogue"
	"xiaozhi/providers/edge"
	"xiaozhi/providers/elevenlabs"
	"xiaozhi/providers/fishspeech"
	"xiaozhi/providers/funasr"
	"xiaozhi/providers/geminilive"
	"xiaozhi/providers/gptsovits"
	"xiaozhi/providers/iflytek"
	"xiaozhi/providers/indextts"
	"xiaozhi/providers/minimax"
	"xiaozhi/providers/openai"
	"xiaozhi/providers/openairealtime"
	"xiaozhi/providers/piper"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa"
	"xiaozhi/providers/sherpaserver"
	"xiaozhi/providers/tencent"
	"xiaozhi/providers/voiceprintapi"
	"xiaozhi/providers/volcengine"
	"xiaozhi/providers/vosk"
	"xiaozhi/providers/whispercpp"
	"xiaozhi/providers/wyoming"
)

// Kinds lists all kinds, each type once, in the order in which "auto" takes those that it
// finds keys for. What several packages do under one type is one kind. Nobody changes what a kind holds.
func Kinds() []service.Kind { return slices.Clone(kinds()) }

// kinds makes them once, for they are asked for often.
var kinds = sync.OnceValue(func() []service.Kind {
	all := append(openai.Kinds(), openai.SpeechKinds()...)
	all = append(all, dashscope.Kind(), volcengine.Kind(), iflytek.Kind(), aliyun.Kind(), tencent.Kind(), minimax.Kind(), baidu.Kind())
	all = append(all, models()...)
	all = append(all, platforms()...)
	all = append(all, deepgram.Kind(), elevenlabs.Kind(), azure.Kind(), cartesia.Kind())
	all = append(all, funasr.Kind(), sherpa.Kind(), wyoming.Kind(), piper.Kind(), vosk.Kind(), whispercpp.Kind(), edge.Kind())
	all = append(all, sherpaserver.Kind(), gptsovits.Kind(), indextts.Kind(), cosyvoice.Kind())
	all = append(all, fishspeech.Kinds()...)
	all = append(all, openairealtime.Kinds()...)
	all = append(all, geminilive.Kind(), doubaodialogue.Kind(), voiceprintapi.Kind())
	var out []service.Kind
	for _, k := range all {
		if i := slices.IndexFunc(out, func(o service.Kind) bool { return o.Type == k.Type }); i >= 0 {
			out[i] = join(out[i], k)
		} else {
			out = append(out, k)
		}
	}
	return out
})

// Find returns the kind of a type.
func Find(kinds []service.Kind, name string) (service.Kind, bool) {
	i := slices.IndexFunc(kinds, func(k service.Kind) bool { return k.Type == name })
	if i < 0 {
		return service.Kind{}, false
	}
	return kinds[i], true
}

// join makes one kind of two that have a type in common: the first keeps what both do.
func join(a, b service.Kind) service.Kind {
	if len(a.Regions)+len(b.Regions) > 0 {
		a.Regions = maps.Clone(a.Regions)
		for name, at := range b.Regions {
			if a.Regions == nil {
				a.Regions = map[string]string{}
			}
			if _, both := a.Regions[name]; !both {
				a.Regions[name] = at
			}
		}
	}
	models := maps.Clone(b.Models)
	maps.Copy(models, a.Models)
	a.Models = models
	a.Env = union(a.Env, b.Env)
	a.Voices = append(slices.Clone(a.Voices), b.Voices...)
	a.Formats = union(a.Formats, b.Formats)
	a.More = append(slices.Clone(a.More), b.More...)
	a.Extra = a.Extra || b.Extra
	if a.ASR == nil && b.ASR != nil {
		a.ASR = func(s service.Section) (providers.ASR, error) { return within(b, s, b.ASR) }
	}
	if a.TTS == nil && b.TTS != nil {
		a.TTS = func(s service.Section) (providers.TTS, error) { return within(b, s, b.TTS) }
	}
	if a.LLM == nil && b.LLM != nil {
		a.LLM = func(s service.Section) (providers.LLM, error) { return within(b, s, b.LLM) }
	}
	if a.Realtime == nil && b.Realtime != nil {
		a.Realtime = func(s service.Section) (providers.Duplex, error) { return within(b, s, b.Realtime) }
	}
	if a.Embed == nil && b.Embed != nil {
		a.Embed = func(s service.Section) (providers.Embedder, error) { return within(b, s, b.Embed) }
	}
	if a.Voiceprint == nil && b.Voiceprint != nil {
		a.Voiceprint = func(s service.Section) (providers.Voiceprint, error) { return within(b, s, b.Voiceprint) }
	}
	if a.ListVoices == nil {
		a.ListVoices = b.ListVoices
	}
	return a
}

// within makes what a kind does, in a region that it has: another one of the same type may
// have more.
func within[T any](k service.Kind, s service.Section, make func(service.Section) (T, error)) (made T, err error) {
	if _, known := k.Regions[s.Region]; s.Region != "" && s.BaseURL == "" && !known {
		return made, fmt.Errorf("%s: region: %s is none for this role, only %s", s.Name, s.Region, strings.Join(slices.Sorted(maps.Keys(k.Regions)), ", "))
	}
	return make(elsewhere(s))
}

// elsewhere makes the settings of a kind whose path differs from that which base_url was
// written for: scheme and host are kept.
func elsewhere(s service.Section) service.Section {
	if u, err := url.Parse(s.BaseURL); err == nil && u.Host != "" {
		s.BaseURL = (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	}
	return s
}

// union is a and what of b is not in it.
func union[T comparable](a, b []T) []T {
	out := slices.Clone(a)
	for _, v := range b {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
