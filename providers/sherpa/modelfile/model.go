// Package modelfile looks at the files of speech models before a library is given them. sherpa-onnx ends the
// process on a model that it does not like, so what is truncated, foreign, of two models or incomplete is
// found here, with a sentence of its own. What stands inside of a network is not looked at.
package modelfile

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kind is the architecture of a model.
type Kind string

// The kinds of models that are known.
const (
	Transducer          Kind = "transducer" // streaming: zipformer and its like
	StreamingParaformer Kind = "streaming paraformer"
	SenseVoice          Kind = "sensevoice"
	Paraformer          Kind = "paraformer"
	Whisper             Kind = "whisper"
	VITS                Kind = "vits"
	Matcha              Kind = "matcha"
	Kokoro              Kind = "kokoro"
	Speaker             Kind = "speaker" // tells people apart
)

// Speaks reports whether a model of the kind is a voice.
func (k Kind) Speaks() bool { return k == VITS || k == Matcha || k == Kokoro }

// Hears reports whether a model of the kind recognises speech.
func (k Kind) Hears() bool { return k != "" && k != Speaker && !k.Speaks() }

// Streams reports whether a model of the kind recognises while speech goes on.
func (k Kind) Streams() bool { return k == Transducer || k == StreamingParaformer }

// Model is a model whose files are all there and whole.
type Model struct {
	Kind Kind
	Dir  string

	Network string // the only one, or a voice's acoustic one
	Encoder string
	Decoder string
	Joiner  string // of a transducer
	Vocoder string // of Matcha
	Styles  string // of Kokoro: its speakers

	Tokens   string
	Lexicon  string // several with commas between them
	Data     string // folder of espeak-ng
	Rules    string // .fst files, with commas between them
	Archives string // .far files, with commas between them

	Metadata map[string]string // of the encoder or the only network
}

// Speakers are the names of a voice's speakers, where it tells them: the place of a name is its number.
func (m Model) Speakers() []string {
	names := m.Metadata["speaker_names"]
	if names == "" {
		return nil
	}
	return strings.Split(names, ",")
}

// Languages are those that a recogniser can be told to expect, or nil when it takes none.
func (m Model) Languages() []string {
	switch m.Kind {
	case SenseVoice:
		return []string{"auto", "zh", "en", "ja", "ko", "yue"}
	case Whisper:
		if codes := m.Metadata["all_language_codes"]; m.Metadata["is_multilingual"] != "0" && codes != "" {
			return strings.Split(codes, ",")
		}
		return nil
	default:
		return nil
	}
}

// Find looks for a model in a folder. Of a network in two precisions it takes that with "int8" in its
// name, which is two to four times as fast. Its errors are of type [*Problem].
func Find(dir string) (Model, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return Model{}, &Problem{Fault: NoFolder, File: dir, Detail: err.Error()}
	}
	f := &folder{dir: dir}
	for _, e := range entries {
		f.names = append(f.names, e.Name())
	}
	m := Model{Dir: dir}
	m.Encoder, m.Decoder, m.Joiner = f.network("encoder"), f.network("decoder"), f.network("joiner")
	m.Vocoder = f.network("vocos", "hifigan", "vocoder")
	m.Network = f.other()
	m.Tokens = f.file(func(name string) bool { return name == "tokens.txt" || strings.HasSuffix(name, "-tokens.txt") })
	if m.Encoder != "" && m.Decoder != "" {
		return m, f.pair(&m)
	}
	if m.Network == "" {
		return Model{}, &Problem{Fault: NoModel, File: dir}
	}
	return m, f.single(&m)
}

// pair completes a model of an encoder and a decoder.
func (f *folder) pair(m *Model) error {
	encoder, err := readNetwork(m.Encoder)
	if err != nil {
		return wrong(m.Encoder, err)
	}
	decoder, err := readNetwork(m.Decoder)
	if err != nil {
		return wrong(m.Decoder, err)
	}
	m.Metadata = encoder.metadata
	vocabulary, need := encoder.metadata["vocab_size"], []string(nil)
	switch {
	case m.Joiner != "":
		if _, err := readNetwork(m.Joiner); err != nil {
			return wrong(m.Joiner, err)
		}
		m.Kind, vocabulary = Transducer, decoder.metadata["vocab_size"]
		need = []string{"model_type", "T", "decode_chunk_len"}
		if err := lacks(m.Decoder, decoder.metadata, "vocab_size", "context_size"); err != nil {
			return err
		}
	case encoder.has("n_mels") || encoder.has("sot"):
		m.Kind, vocabulary, need = Whisper, "", whisperKeys
	default:
		m.Kind, need = StreamingParaformer, paraformerStreamKeys
	}
	if err := lacks(m.Encoder, m.Metadata, need...); err != nil {
		return err
	}
	return checkTokens(m, vocabulary)
}

// Keys without which the library ends the process, by kind.
var (
	paraformerKeys       = []string{"vocab_size", "lfr_window_size", "lfr_window_shift", "neg_mean", "inv_stddev"}
	paraformerStreamKeys = append([]string{"encoder_output_size", "decoder_num_blocks", "decoder_kernel_size"}, paraformerKeys...)
	senseVoiceKeys       = []string{"with_itn", "without_itn", "normalize_samples", "lang_auto", "lang_zh", "lang_en", "lang_ja", "lang_ko", "lang_yue"}
	whisperKeys          = []string{"n_mels", "n_text_layer", "n_text_ctx", "n_text_state", "n_vocab", "sot", "eot", "blank_id", "translate", "transcribe", "is_multilingual", "no_timestamps", "no_speech", "sot_sequence"}
)

// speakerKeys are those of models that tell people apart, by the framework that they say they are of.
var speakerKeys = map[string][]string{
	"wespeaker":  {"sample_rate", "normalize_samples", "language"},
	"3d-speaker": {"sample_rate", "normalize_samples", "language"},
	"nemo":       {"sample_rate", "feat_dim", "window_size_ms", "window_stride_ms", "language"},
}

// single completes a model of one network, and a voice with its vocoder.
func (f *folder) single(m *Model) error {
	n, err := readNetwork(m.Network)
	if err != nil {
		return wrong(m.Network, err)
	}
	m.Metadata = n.metadata
	switch {
	case n.has("lang_zh") && n.has("with_itn"):
		m.Kind = SenseVoice
		if err := lacks(m.Network, n.metadata, append(senseVoiceKeys, paraformerKeys...)...); err != nil {
			return err
		}
	case n.has("lfr_window_size"):
		m.Kind = Paraformer
		if err := lacks(m.Network, n.metadata, paraformerKeys...); err != nil {
			return err
		}
	case n.has("n_speakers") && n.has("sample_rate"):
		return f.voice(m)
	case n.has("output_dim") && n.has("framework"):
		m.Kind = Speaker
		need, known := speakerKeys[n.metadata["framework"]]
		if !known {
			return &Problem{Fault: NoModel, File: m.Dir, Detail: n.metadata["framework"]}
		}
		return lacks(m.Network, n.metadata, need...)
	case len(n.metadata) == 0:
		return &Problem{Fault: Metadata, File: m.Network}
	default:
		return &Problem{Fault: NoModel, File: m.Dir, Detail: n.metadata["model_type"]}
	}
	return checkTokens(m, n.metadata["vocab_size"])
}

func (n network) has(key string) bool { return n.metadata[key] != "" }

// lacks tells which of the keys the metadata of a file do not have.
func lacks(file string, metadata map[string]string, keys ...string) error {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return metadata[key] != "" })
	if len(keys) == 0 {
		return nil
	}
	return &Problem{Fault: Metadata, File: file, Detail: strings.Join(keys, ", ")}
}

// checkTokens looks whether the tokens are as many as the network has: the library ends the process
// when it finds a token that has no sign. vocabulary is "" when the network knows tokens without a sign.
func checkTokens(m *Model, vocabulary string) error {
	if m.Tokens == "" {
		return &Problem{Fault: NoFile, File: filepath.Join(m.Dir, "tokens.txt"), Detail: "tokens.txt"}
	}
	count, err := countTokens(m.Tokens)
	if err != nil {
		return wrong(m.Tokens, err)
	}
	want, err := strconv.Atoi(cmp.Or(vocabulary, "0"))
	if err != nil || count < want*9/10 {
		return &Problem{Fault: Mixed, File: m.Tokens, Detail: strconv.Itoa(count) + " < " + vocabulary}
	}
	return nil
}
