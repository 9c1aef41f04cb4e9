package sherpatest

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"xiaozhi/providers/sherpa/modelfile"
)

// Network makes an ONNX file that has metadata and a graph of some bytes, none of which is a node.
func Network(metadata map[string]string) []byte {
	b := []byte{0x08, 8, 0x12, 4, 't', 'e', 's', 't', 0x3a}
	b = append(binary.AppendUvarint(b, 600), make([]byte, 600)...)
	b = append(b, 0x42, 2, 0x10, 13)
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		var entry []byte
		for i, part := range []string{key, metadata[key]} {
			entry = append(entry, byte(i+1)<<3|2)
			entry = append(binary.AppendUvarint(entry, uint64(len(part))), part...)
		}
		b = append(binary.AppendUvarint(append(b, 14<<3|2), uint64(len(entry))), entry...)
	}
	return b
}

// words are the tokens of every model, one a line.
//
//go:embed testdata/words.txt
var words string

// Tokens is the list of tokens of every model.
func Tokens() string {
	var list strings.Builder
	for i, w := range strings.Fields(words) {
		fmt.Fprintf(&list, "%s %d\n", w, i)
	}
	return list.String()
}

// Model makes the files of a model of a kind in a folder of its own, and returns it.
func Model(tb testing.TB, kind modelfile.Kind) string {
	tb.Helper()
	dir := tb.TempDir()
	for name, content := range Files(kind) {
		Write(tb, filepath.Join(dir, name), content)
	}
	return dir
}

// Write writes a file, and its folder.
func Write(tb testing.TB, file string, content []byte) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		tb.Fatal(err)
	}
}

// Files are the files of a model of a kind, by name.
func Files(kind modelfile.Kind) map[string][]byte {
	rule := []byte{0xd6, 0xfd, 0xb2, 0x7e, 0, 0}
	paraformer := metadata("vocab_size lfr_window_size lfr_window_shift neg_mean inv_stddev", "8")
	files := map[string][]byte{"tokens.txt": []byte(Tokens())}
	switch kind {
	case modelfile.Transducer:
		files["encoder-epoch-99.int8.onnx"] = Network(map[string]string{"model_type": "zipformer2", "T": "45", "decode_chunk_len": "32"})
		files["decoder-epoch-99.onnx"] = Network(map[string]string{"vocab_size": "8", "context_size": "2"})
		files["joiner-epoch-99.int8.onnx"] = Network(nil)
	case modelfile.StreamingParaformer:
		maps.Copy(paraformer, metadata("encoder_output_size decoder_num_blocks decoder_kernel_size", "8"))
		files["encoder.int8.onnx"], files["decoder.int8.onnx"] = Network(paraformer), Network(nil)
	case modelfile.SenseVoice:
		maps.Copy(paraformer, metadata("with_itn without_itn normalize_samples lang_auto lang_zh lang_en lang_ja lang_ko lang_yue", "1"))
		files["model.int8.onnx"] = Network(paraformer)
	case modelfile.Paraformer:
		files["model.int8.onnx"] = Network(paraformer)
	case modelfile.Whisper:
		m := metadata("n_mels n_text_layer n_text_ctx n_text_state n_vocab sot eot blank_id translate transcribe is_multilingual no_timestamps no_speech sot_sequence", "1")
		m["all_language_codes"] = "en,zh"
		files["tiny-encoder.int8.onnx"], files["tiny-decoder.int8.onnx"] = Network(m), Network(nil)
		files["tiny-tokens.txt"] = files["tokens.txt"]
		delete(files, "tokens.txt")
	case modelfile.Speaker:
		files["campplus.onnx"] = Network(map[string]string{"framework": "3d-speaker", "output_dim": "64", "sample_rate": "16000", "normalize_samples": "1", "language": "Chinese"})
		delete(files, "tokens.txt")
	case modelfile.VITS:
		files["model.onnx"] = Network(map[string]string{"sample_rate": "22050", "n_speakers": "4", "language": "Chinese", "comment": "melo", "model_type": "vits"})
		files["lexicon.txt"] = []byte("a b 1\n")
		files["number.fst"], files["date.fst"], files["phone.fst"] = rule, rule, rule
	case modelfile.Matcha:
		files["model-steps-3.onnx"] = Network(map[string]string{"sample_rate": "22050", "n_speakers": "1", "model_type": "matcha-tts"})
		files["vocos-22khz-univ.onnx"] = Network(nil)
		files["lexicon.txt"] = []byte("a b 1\n")
	case modelfile.Kokoro:
		files["model.int8.onnx"] = Network(map[string]string{
			"sample_rate": "24000", "n_speakers": "3", "style_dim": "2,1,4", "has_espeak": "1", "version": "2", "speaker_names": "af_maple,zf_001,zm_010",
		})
		files["voices.bin"] = make([]byte, 3*2*4*4)
		files["lexicon-zh.txt"], files["lexicon-us-en.txt"], files["lexicon-gb-en.txt"] = []byte("x"), []byte("x"), []byte("x")
		files[filepath.Join("espeak-ng-data", "phontab")] = []byte("x")
	}
	return files
}

// metadata gives every key the same value.
func metadata(keys, value string) map[string]string {
	m := make(map[string]string)
	for key := range strings.FieldsSeq(keys) {
		m[key] = value
	}
	return m
}
