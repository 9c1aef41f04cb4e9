package capi

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// realFile is the variable that names the library of sherpa-onnx, for the tests that need the real one.
const realFile = "SHERPA_ONNX_LIBRARY"

// real opens the real library, or leaves the test out.
func real(t *testing.T) *Library {
	t.Helper()
	file := os.Getenv(realFile)
	if file == "" {
		t.Skipf("%s names no library of sherpa-onnx", realFile)
	}
	lib, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// TestRealLayout compares what is set with what the real library says that it was given.
func TestRealLayout(t *testing.T) {
	lib := real(t)
	if what := os.Getenv("CAPI_TELL"); what != "" {
		tell(lib, what)
		return
	}
	for what, want := range map[string][]string{
		"transducer": {
			"sampling_rate=16000", "feature_dim=80", `encoder="the-encoder"`, `decoder="the-decoder"`, `joiner="the-joiner"`,
			`tokens="the-tokens"`, "num_threads=3", "debug=True", `provider_config`, `provider="cpu"`, `decoding_method="greedy_search"`, "enable_endpoint=False",
			`rule_fsts=""`, `model_type=""`,
		},
		"paraformer": {`paraformer=OnlineParaformerModelConfig(encoder="the-encoder", decoder="the-decoder")`, `tokens="the-tokens"`},
		"sense":      {`model="the-sense", language="zh", use_itn=True`, `tokens="the-tokens"`, "num_threads=3", `provider="cpu"`, `decoding_method="greedy_search"`},
		"whisper":    {`encoder="the-encoder", decoder="the-decoder", language="zh", task="transcribe", tail_paddings=-1`, `tokens="the-tokens"`, "num_threads=3"},
		"offline":    {`paraformer=OfflineParaformerModelConfig(model="the-paraformer")`, `tokens="the-tokens"`},
		"vits":       {`model="the-model", lexicon="the-lexicon", tokens="the-tokens", data_dir="the-data"`, "num_threads=3", `provider="cpu"`, `rule_fsts="the-rules"`, `rule_fars="the-archive"`, "max_num_sentences=1"},
		"matcha":     {`acoustic_model="the-model", vocoder="the-vocoder", lexicon="the-lexicon", tokens="the-tokens", data_dir="the-data"`, `rule_fsts="the-rules"`},
		"kokoro":     {`model="the-model", voices="the-voices", tokens="the-tokens", lexicon="the-lexicon", data_dir="the-data"`, `rule_fsts="the-rules"`},
		"speaker":    {`SpeakerEmbeddingExtractorConfig(model="the-model", num_threads=3, debug=True, provider="cpu")`},
	} {
		t.Run(what, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestRealLayout$")
			cmd.Env = append(os.Environ(), "CAPI_TELL="+what)
			said, _ := cmd.CombinedOutput() // the library may end the process
			for _, w := range want {
				if !strings.Contains(string(said), w) {
					t.Errorf("the library did not say %s but %s", w, said)
				}
			}
		})
	}
}

// tell makes the library say what it is given. The files are not there, so it makes nothing.
func tell(lib *Library, what string) {
	voice := VoiceModel{
		Model: "the-model", Vocoder: "the-vocoder", Voices: "the-voices", Lexicon: "the-lexicon", Tokens: "the-tokens",
		Data: "the-data", Rules: "the-rules", Archive: "the-archive", Threads: 3, Debug: true,
	}
	offline := OfflineModel{Tokens: "the-tokens", Language: "zh", Threads: 3, Debug: true}
	switch what {
	case "transducer":
		lib.NewOnline(OnlineModel{Encoder: "the-encoder", Decoder: "the-decoder", Joiner: "the-joiner", Tokens: "the-tokens", Threads: 3, Debug: true})
	case "paraformer":
		lib.NewOnline(OnlineModel{Encoder: "the-encoder", Decoder: "the-decoder", Tokens: "the-tokens", Threads: 3, Debug: true})
	case "sense":
		offline.SenseVoice = "the-sense"
		lib.NewOffline(offline)
	case "whisper":
		offline.Encoder, offline.Decoder = "the-encoder", "the-decoder"
		lib.NewOffline(offline)
	case "offline":
		offline.Paraformer = "the-paraformer"
		lib.NewOffline(offline)
	case "vits":
		lib.NewVoice(voice)
	case "matcha":
		voice.Kind = Matcha
		lib.NewVoice(voice)
	case "kokoro":
		voice.Kind = Kokoro
		lib.NewVoice(voice)
	case "speaker":
		lib.NewExtractor(SpeakerModel{Model: "the-model", Threads: 3, Debug: true})
	}
}
