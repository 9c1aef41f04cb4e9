package engines

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"xiaozhi/internal/config"
	"xiaozhi/providers"
	"xiaozhi/providers/service"
)

// TestHostsOfRoles: what is said of a service names the host that a role really asks.
func TestHostsOfRoles(t *testing.T) {
	cfg := config.Default()
	all := config.Keys{APIKey: "k", AppID: "1", APISecret: "s"}
	cfg.Providers = map[string]config.Provider{
		"iflytek": {Type: "iflytek", Keys: all}, "old": {Type: "iflytek", Keys: all, ASRModel: "iat"}, "warm": {Type: "iflytek", Keys: all, TTSModel: "oral"},
		"azure": {Type: "azure", Keys: all, Region: "chinaeast2"}, "tencent": {Type: "tencent", Keys: all}, "home": {Type: "tencent", Keys: all, BaseURL: "http://10.0.0.2:1"},
	}
	s := OpenServices(cfg, slog.New(slog.DiscardHandler))
	defer s.Close()
	for _, test := range []struct {
		name string
		role service.Role
		want string
	}{
		{"iflytek", service.ASR, "at iat.xf-yun.com"},
		{"iflytek", service.TTS, "at tts-api.xfyun.cn"},
		{"old", service.ASR, "at iat-api.xfyun.cn"},
		{"warm", service.TTS, "at cbm01.cn-huabei-1.xf-yun.com"},
		{"azure", service.ASR, "at chinaeast2.stt.speech.azure.cn"},
		{"azure", service.TTS, "at chinaeast2.tts.speech.azure.cn"},
		{"tencent", service.ASR, "at asr.cloud.tencent.com"},
		{"tencent", service.TTS, "at tts.cloud.tencent.com"},
		{"home", service.TTS, "at http://10.0.0.2:1"},
	} {
		one := s.Try(t.Context(), test.name, test.role)
		if one.Err != nil || !strings.HasSuffix(one.What, test.want) {
			t.Errorf("%s, %s: %q, %v, want %q", test.name, test.role, one.What, one.Err, test.want)
		}
	}
}

// TestLanguageOfTry: who speaks no Chinese is not tried in it.
func TestLanguageOfTry(t *testing.T) {
	s := OpenServices(config.Default(), slog.New(slog.DiscardHandler))
	defer s.Close()
	var english []string
	for _, k := range s.f.kinds {
		if s.Language(k.Type) == "en" {
			english = append(english, k.Type)
		}
	}
	if got := strings.Join(english, " "); got != "groq deepgram" || s.Language("pocketsphinx") != "en" {
		t.Errorf("tried in English: %s", got)
	}
	lacks := &providers.Error{Kind: providers.BadRequest, Err: fmt.Errorf("%w: there is no voice for %q", providers.ErrLanguage, "zh")}
	if got := Why(lacks, false); !strings.HasSuffix(got, `: there is no voice for "zh"`) || strings.Count(got, "language") != 1 {
		t.Error(got)
	}
}
