package modelfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"xiaozhi/providers/sherpa/modelfile"
	"xiaozhi/providers/sherpa/sherpatest"
)

var kinds = []modelfile.Kind{
	modelfile.Transducer, modelfile.StreamingParaformer, modelfile.SenseVoice, modelfile.Paraformer, modelfile.Whisper,
	modelfile.VITS, modelfile.Matcha, modelfile.Kokoro, modelfile.Speaker,
}

func TestFind(t *testing.T) {
	for _, kind := range kinds {
		m, err := modelfile.Find(sherpatest.Model(t, kind))
		if err != nil || m.Kind != kind {
			t.Errorf("%s: found %q, %v", kind, m.Kind, err)
		}
		if kind.Speaks() != (kind == modelfile.VITS || kind == modelfile.Matcha || kind == modelfile.Kokoro) {
			t.Errorf("%s speaks: %v", kind, kind.Speaks())
		}
		if kind.Hears() == (kind.Speaks() || kind == modelfile.Speaker) {
			t.Errorf("%s hears: %v", kind, kind.Hears())
		}
	}
	m, err := modelfile.Find(sherpatest.Model(t, modelfile.Kokoro))
	if err != nil || strings.Join(m.Speakers(), " ") != "af_maple zf_001 zm_010" {
		t.Errorf("speakers %q, %v", m.Speakers(), err)
	}
	if got := bases(m.Lexicon); got != "lexicon-us-en.txt lexicon-zh.txt" {
		t.Errorf("lexicons %s", got)
	}
	m, err = modelfile.Find(sherpatest.Model(t, modelfile.VITS))
	if got := bases(m.Rules); err != nil || got != "phone.fst date.fst number.fst" {
		t.Errorf("rules %s, %v: their order counts", got, err)
	}
}

func bases(files string) string {
	var out []string
	for file := range strings.SplitSeq(files, ",") {
		out = append(out, filepath.Base(file))
	}
	return strings.Join(out, " ")
}

// TestProblems spoils models and wants the sentence of each fault.
func TestProblems(t *testing.T) {
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	becomes := func(text string) func([]byte) []byte { return func([]byte) []byte { return []byte(text) } }
	for name, c := range map[string]struct {
		kind  modelfile.Kind
		file  string
		spoil func([]byte) []byte // nil: the file is gone
		fault modelfile.Fault
		says  string
	}{
		"encoder cut":            {modelfile.Transducer, "encoder-epoch-99.int8.onnx", cut, modelfile.Truncated, "ends too early"},
		"joiner cut":             {modelfile.Transducer, "joiner-epoch-99.int8.onnx", cut, modelfile.Truncated, "ends too early"},
		"joiner of a paraformer": {modelfile.Transducer, "joiner-epoch-99.int8.onnx", nil, modelfile.Metadata, "lfr_window_size"},
		"decoder empty":          {modelfile.Transducer, "decoder-epoch-99.onnx", becomes(""), modelfile.Foreign, "empty"},
		"a web page":             {modelfile.SenseVoice, "model.int8.onnx", becomes("<!DOCTYPE html><html><body>404</body></html>"), modelfile.Foreign, "a web page"},
		"a pointer":              {modelfile.SenseVoice, "model.int8.onnx", becomes("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), modelfile.Foreign, "Git LFS"},
		"an archive":             {modelfile.Paraformer, "model.int8.onnx", becomes("BZh91AY&SY and so on"), modelfile.Foreign, "an archive"},
		"foreign network":        {modelfile.Paraformer, "model.int8.onnx", func([]byte) []byte { return sherpatest.Network(map[string]string{"who": "knows"}) }, modelfile.NoModel, "nothing in"},
		"network says nothing":   {modelfile.Paraformer, "model.int8.onnx", func([]byte) []byte { return sherpatest.Network(nil) }, modelfile.Metadata, "another program"},
		"tokens gone":            {modelfile.Whisper, "tiny-tokens.txt", nil, modelfile.NoFile, "tokens.txt is missing"},
		"tokens of another":      {modelfile.SenseVoice, "tokens.txt", becomes("a 0\nb 1\n"), modelfile.Mixed, "another model"},
		"tokens are a text":      {modelfile.SenseVoice, "tokens.txt", becomes("not found\n"), modelfile.NoTokens, "list of tokens"},
		"tokens empty":           {modelfile.VITS, "tokens.txt", becomes(""), modelfile.NoTokens, "list of tokens"},
		"no lexicon":             {modelfile.VITS, "lexicon.txt", nil, modelfile.NoFile, "lexicon.txt is missing"},
		"rule is a text":         {modelfile.VITS, "number.fst", becomes("<html>"), modelfile.Foreign, "number.fst"},
		"no vocoder":             {modelfile.Matcha, "vocos-22khz-univ.onnx", nil, modelfile.NoFile, "vocos-22khz-univ.onnx is missing"},
		"vocoder cut":            {modelfile.Matcha, "vocos-22khz-univ.onnx", cut, modelfile.Truncated, "ends too early"},
		"speakers cut":           {modelfile.Kokoro, "voices.bin", cut, modelfile.Truncated, "ends too early"},
		"speakers of another":    {modelfile.Kokoro, "voices.bin", func(b []byte) []byte { return append(b, 1) }, modelfile.Mixed, "another model"},
		"no speakers":            {modelfile.Kokoro, "voices.bin", nil, modelfile.NoFile, "voices.bin is missing"},
		"another framework": {modelfile.Speaker, "campplus.onnx", func([]byte) []byte {
			return sherpatest.Network(map[string]string{"framework": "mine", "output_dim": "4"})
		}, modelfile.NoModel, "nothing in"},
		"speakers say too little": {modelfile.Speaker, "campplus.onnx", func([]byte) []byte {
			return sherpatest.Network(map[string]string{"framework": "nemo", "output_dim": "4", "sample_rate": "16000"})
		}, modelfile.Metadata, "window_size_ms"},
		"no words": {modelfile.Kokoro, "lexicon-zh.txt", nil, "", ""}, // another lexicon is there
	} {
		t.Run(name, func(t *testing.T) {
			dir, files := sherpatest.Model(t, c.kind), sherpatest.Files(c.kind)
			at := filepath.Join(dir, c.file)
			if files[c.file] == nil {
				t.Fatalf("no file %s", c.file)
			}
			if err := os.Remove(at); err != nil {
				t.Fatal(err)
			}
			if c.spoil != nil {
				sherpatest.Write(t, at, c.spoil(files[c.file]))
			}
			_, err := modelfile.Find(dir)
			if c.fault == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			p, ok := errors.AsType[*modelfile.Problem](err)
			if !ok || p.Fault != c.fault || !strings.Contains(p.Error(), c.says) {
				t.Fatalf("fault %+v (%v), want %s: %s", p, err, c.fault, c.says)
			}
			if both := p.Both(); !strings.Contains(both, p.Error()) || !strings.ContainsRune(both, '：') && !strings.ContainsRune(both, '，') {
				t.Errorf("no Chinese in %q", both)
			}
		})
	}
	for _, dir := range []string{filepath.Join(t.TempDir(), "gone"), t.TempDir()} {
		if _, err := modelfile.Find(dir); err == nil {
			t.Errorf("a model in %s", dir)
		}
	}
}
