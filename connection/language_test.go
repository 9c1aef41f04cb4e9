package connection

import (
	"errors"
	"testing"

	"xiaozhi/internal/wire"
	"xiaozhi/mcp"
)

func TestLanguageOf(t *testing.T) {
	for tag, want := range map[string]string{
		"": "", "*": "", "zh-CN": "zh", "zh": "zh", "ZH_TW": "zh-TW", "yue-HK": "yue", "cmn-Hans": "zh",
		"en-US": "en", "en-US,en;q=0.9,zh;q=0.8": "en", "zh-CN;q=0.8": "zh", "ja-JP": "ja", "de-AT,de;q=0.9": "de-AT", "pt-BR": "pt", " zh-CN , en": "zh", "\xff": "en", "jp": "en",
	} {
		if got := LanguageOf(tag); got != want {
			t.Errorf("LanguageOf(%q) = %q, want %q", tag, got, want)
		}
	}
}

func TestRegistryLanguage(t *testing.T) {
	for _, tc := range []struct{ own, server, said, want string }{
		{"en", "zh", "zh", "en"},
		{"", "en", "zh", "en"},
		{"", "auto", "en", "en"},
		{"", "", "zh", "zh"},
		{"", "", "", "zh"},
		{"klingon", "auto", "en", "en"},
		{"", "auto", "ja", "ja"},
		{"", "ko-KR", "ja", "ko"},
		{"pt_PT", "ko", "ja", "pt-PT"},
		{"jp", "ko", "ja", "ko"},
	} {
		r := New(Options{
			NewConversation: noTalk, Language: tc.server, Settings: func(string) Settings { return Settings{Language: tc.own} },
		})
		r.SetLanguage("d", tc.said)
		r.SetLanguage("d", "")
		if got := r.Language("d"); got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

func noTalk(wire.Session, wire.Outbox, []mcp.Source) (Conversation, error) {
	return nil, errors.New("there is none")
}
