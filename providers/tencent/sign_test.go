package tencent

import (
	"net/url"
	"strings"
	"testing"
)

func TestSignature(t *testing.T) {
	hearing := url.Values{
		"secretid": {"testid"}, "timestamp": {"1700000000"}, "nonce": {"1700000000"}, "expired": {"1700086400"},
		"engine_model_type": {"16k_zh"}, "voice_id": {"0123456789abcdef"}, "voice_format": {"1"}, "needvad": {"0"},
	}
	if got, want := signature("testsecret", "asr.cloud.tencent.com/asr/v2/1250000000", hearing), "2OMPp6pTRo/09DD+lmurTvQgXTk="; got != want {
		t.Errorf("recognition: %s, want %s", got, want)
	}
	speaking := url.Values{
		"Action": {"TextToStreamAudioWSv2"}, "AppId": {"1250000000"}, "SecretId": {"testid"}, "Timestamp": {"1700000000"},
		"Expired": {"1700086400"}, "SessionId": {"0123456789abcdef"}, "Codec": {"pcm"}, "SampleRate": {"16000"}, "VoiceType": {"101001"},
	}
	const want = "2Z2T7LUPnsr6GXQqcLdPgYUYzNw="
	if got := signature("testsecret", "GETtts.cloud.tencent.com/stream_wsv2", speaking); got != want {
		t.Errorf("voices: %s, want %s", got, want)
	}
	query := signed("testsecret", "GET", "tts.cloud.tencent.com/stream_wsv2", "Signature", speaking)
	if !strings.HasSuffix(query, "&Signature="+url.QueryEscape(want)) {
		t.Errorf("the query is %s", query)
	}
}
