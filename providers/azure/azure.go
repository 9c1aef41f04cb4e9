// Package azure hears and speaks through the speech service of Azure.
package azure

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"xiaozhi/internal/text"
	"xiaozhi/providers"
	"xiaozhi/providers/httpvoice"
	"xiaozhi/providers/service"
	"xiaozhi/providers/transport"
)

// Kind describes Azure Speech. Its region is any that Azure has; those that begin with
// "china" are in the Chinese cloud, whose keys are its own.
func Kind() service.Kind {
	return service.Kind{
		Type: "azure", Title: "Azure Speech", Address: "https://eastasia.tts.speech.microsoft.com", Extra: true,
		Env:     []service.Env{{Field: service.Key, Name: "AZURE_SPEECH_KEY"}},
		Needs:   []service.Field{service.Key},
		Regions: regions(), Voices: voices(),
		Formats: []string{"pcm", "mp3", "opus"},
		More: []service.Setting{
			{Name: "mode", Values: []string{"conversation", "dictation", "interactive"}},
			{Name: "language"}, {Name: "style"}, {Name: "stt_url"}, {Name: "phrases", Type: service.Flag},
		},
		ASR: NewASR, TTS: NewTTS, ListVoices: listVoices,
		At: func(s service.Section, r service.Role) string {
			if r == service.ASR {
				return address(s, "stt")
			}
			return address(s, "tts")
		},
	}
}

// regionNames are those with all speech services; there are more.
const regionNames = "eastasia southeastasia japaneast koreacentral australiaeast centralindia eastus eastus2 westus westus2 westus3 " +
	"centralus northcentralus southcentralus westcentralus canadacentral brazilsouth northeurope westeurope francecentral germanywestcentral " +
	"italynorth norwayeast swedencentral switzerlandnorth switzerlandwest uksouth southafricanorth uaenorth qatarcentral japanwest " +
	"chinaeast2 chinanorth2 chinanorth3"

// regions maps each region to the address of its voices.
func regions() map[string]string {
	all := map[string]string{}
	for name := range strings.FieldsSeq(regionNames) {
		all[name] = host(name, "tts")
	}
	return all
}

// host is the address of a part of the service in a region.
func host(region, part string) string {
	domain := "speech.microsoft.com"
	if strings.HasPrefix(region, "china") {
		domain = "speech.azure.cn"
	}
	return fmt.Sprintf("https://%s.%s.%s", region, part, domain)
}

// address returns that of a part of the service for a section: tts or stt.
func address(s service.Section, part string) string {
	region := s.Region
	if region == "" {
		region = "eastasia"
	}
	at := host(region, part)
	if s.BaseURL != "" {
		at = s.BaseURL
		// Both parts have hosts of their own, which differ in one word.
		at = strings.Replace(at, ".tts.speech.", "."+part+".speech.", 1)
		at = strings.Replace(at, ".stt.speech.", "."+part+".speech.", 1)
	}
	if own := s.Text("stt_url", ""); own != "" && part == "stt" {
		at = own
	}
	return strings.TrimRight(at, "/")
}

// voices are neural voices, one or two of each language.
func voices() []service.Voice {
	var out []service.Voice
	for _, v := range [][2]string{
		{"zh-CN-XiaoxiaoNeural", "zh"}, {"zh-CN-YunxiNeural", "zh"}, {"en-US-AvaMultilingualNeural", "en"}, {"en-US-AndrewMultilingualNeural", "en"},
		{"en-GB-SoniaNeural", "en-GB"}, {"ja-JP-NanamiNeural", "ja"}, {"ko-KR-SunHiNeural", "ko"}, {"vi-VN-HoaiMyNeural", "vi"},
		{"de-DE-KatjaNeural", "de"}, {"fr-FR-DeniseNeural", "fr"}, {"es-ES-ElviraNeural", "es"}, {"ru-RU-SvetlanaNeural", "ru"},
		{"pt-BR-FranciscaNeural", "pt"}, {"it-IT-ElsaNeural", "it"}, {"zh-TW-HsiaoChenNeural", "zh-TW"}, {"zh-HK-HiuMaanNeural", "zh-HK"},
	} {
		out = append(out, service.Voice{Name: v[0], Language: []string{v[1]}})
	}
	return out
}

// listVoices asks for the voices of the region.
func listVoices(ctx context.Context, s service.Section) ([]service.Voice, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, service.Join(address(s, "tts"), "/cognitiveservices/voices/list"), nil)
	if err != nil {
		return nil, fmt.Errorf("base_url: %w", err)
	}
	r.Header = auth(s)
	var all []struct{ ShortName, LocalName, Locale string }
	if err := httpvoice.Get(s, r, judge, &all); err != nil {
		return nil, err
	}
	var out []service.Voice
	for _, v := range all {
		out = append(out, service.Voice{Name: v.ShortName, Title: v.LocalName, Language: []string{string(text.TagOf(v.Locale))}})
	}
	return out, nil
}

// auth are the headers by which the service knows who asks.
func auth(s service.Section) http.Header {
	return http.Header{"Ocp-Apim-Subscription-Key": {s.Key.Reveal()}, "User-Agent": {"xiaozhi"}}
}

// judge puts right a refusal by its words: 403 is also an exhausted quota.
func judge(r *transport.Refusal) {
	if r.Kind != providers.Unauthorized {
		return
	}
	if r.Status == http.StatusUnauthorized {
		// Its "wrong API endpoint" is what a region is here.
		r.Text = strings.Replace(r.Text, " or wrong API endpoint", "", 1) + " (a key belongs to one region: is that of the section the right one?)"
		return
	}
	words := strings.ToLower(r.Text)
	for _, word := range []string{"quota", "out of call volume"} {
		if strings.Contains(words, word) {
			r.Kind = providers.NoCredit
		}
	}
}
