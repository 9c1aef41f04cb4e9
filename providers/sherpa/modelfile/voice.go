package modelfile

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// voice completes a voice.
func (f *folder) voice(m *Model) error {
	m.Data = f.file(func(name string) bool { return name == "espeak-ng-data" })
	m.Styles = f.file(func(name string) bool { return name == "voices.bin" })
	m.Lexicon = strings.Join(f.lexicons(), ",")
	m.Archives = strings.Join(f.all(func(name string) bool { return strings.HasSuffix(name, ".far") }), ",")
	rules := f.rules()
	for _, file := range rules {
		if err := checkRule(file); err != nil {
			return err
		}
	}
	m.Rules = strings.Join(rules, ",")
	if err := checkTokens(m, ""); err != nil {
		return err
	}
	switch {
	case m.Styles != "" || m.Metadata["style_dim"] != "":
		m.Kind = Kokoro
		return f.kokoro(m)
	case m.Vocoder != "" || strings.Contains(m.Metadata["model_type"], "matcha"):
		m.Kind = Matcha
		return f.matcha(m)
	}
	m.Kind = VITS
	return f.vits(m)
}

func (f *folder) vits(m *Model) error {
	if err := lacks(m.Network, m.Metadata, "language", "comment"); err != nil {
		return err
	}
	if m.Lexicon == "" && m.Data == "" && m.Metadata["frontend"] != "characters" {
		return &Problem{Fault: NoFile, File: m.Dir, Detail: "lexicon.txt"}
	}
	return nil
}

func (f *folder) matcha(m *Model) error {
	if m.Vocoder == "" {
		return &Problem{Fault: NoFile, File: m.Dir, Detail: "vocos-22khz-univ.onnx"}
	}
	if _, err := readNetwork(m.Vocoder); err != nil {
		return wrong(m.Vocoder, err)
	}
	if m.Lexicon == "" && m.Data == "" {
		return &Problem{Fault: NoFile, File: m.Dir, Detail: "lexicon.txt"}
	}
	return nil
}

// kokoro also looks whether the speakers are as many as the network says.
func (f *folder) kokoro(m *Model) error {
	if err := lacks(m.Network, m.Metadata, "style_dim", "has_espeak"); err != nil {
		return err
	}
	if m.Styles == "" {
		return &Problem{Fault: NoFile, File: m.Dir, Detail: "voices.bin"}
	}
	if m.Data == "" {
		return &Problem{Fault: NoFile, File: m.Dir, Detail: "espeak-ng-data"}
	}
	if version, _ := strconv.Atoi(m.Metadata["version"]); version >= 2 && m.Lexicon == "" {
		return &Problem{Fault: NoFile, File: m.Dir, Detail: "lexicon-zh.txt"}
	}
	info, err := os.Stat(m.Styles)
	if err != nil {
		return wrong(m.Styles, err)
	}
	floats, _ := strconv.ParseInt(m.Metadata["n_speakers"], 10, 64)
	for dim := range strings.SplitSeq(m.Metadata["style_dim"], ",") {
		n, _ := strconv.ParseInt(strings.TrimSpace(dim), 10, 64)
		floats *= max(0, min(n, 1<<20))
	}
	switch {
	case info.Size() < floats*4:
		return &Problem{Fault: Truncated, File: m.Styles}
	case info.Size() != floats*4:
		return &Problem{Fault: Mixed, File: m.Styles, Detail: strconv.FormatInt(info.Size(), 10) + " ≠ " + strconv.FormatInt(floats*4, 10)}
	}
	return nil
}

// fstMagic are the first four bytes of every file of OpenFst.
const fstMagic = 2125659606

// checkRule looks whether a file is a rule of OpenFst.
func checkRule(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return wrong(file, err)
	}
	defer f.Close()
	var magic uint32
	if err := binary.Read(f, binary.LittleEndian, &magic); err != nil || magic != fstMagic {
		return &Problem{Fault: Foreign, File: file, Detail: "sherpa/is-other"}
	}
	return nil
}

// folder is the folder of a model.
type folder struct {
	dir   string
	names []string // sorted
}

// all returns the paths of files by name.
func (f *folder) all(fits func(name string) bool) []string {
	var out []string
	for _, name := range f.names {
		if fits(name) {
			out = append(out, filepath.Join(f.dir, name))
		}
	}
	return out
}

// file returns the first of such paths, or "".
func (f *folder) file(fits func(name string) bool) string {
	if all := f.all(fits); len(all) > 0 {
		return all[0]
	}
	return ""
}

// network returns the network with one of the words in its name, or "".
func (f *folder) network(words ...string) string {
	return best(f.all(func(name string) bool {
		return strings.HasSuffix(name, ".onnx") && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
	}))
}

// other returns a network whose name says no part, or "".
func (f *folder) other() string {
	words := []string{"encoder", "decoder", "joiner", "vocos", "hifigan", "vocoder"}
	return best(f.all(func(name string) bool {
		return strings.HasSuffix(name, ".onnx") && !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
	}))
}

// best is the one of small numbers, which is faster, or else the first.
func best(files []string) string {
	if i := slices.IndexFunc(files, func(file string) bool { return strings.Contains(filepath.Base(file), "int8") }); i >= 0 {
		return files[i]
	}
	if len(files) == 0 {
		return ""
	}
	return files[0]
}

// lexicons are the lists of words: of British and American English only the latter.
func (f *folder) lexicons() []string {
	all := f.all(func(name string) bool { return strings.HasPrefix(name, "lexicon") && strings.HasSuffix(name, ".txt") })
	american := slices.ContainsFunc(all, func(file string) bool { return strings.HasSuffix(file, "-us-en.txt") })
	return slices.DeleteFunc(all, func(file string) bool { return american && strings.HasSuffix(file, "-gb-en.txt") })
}

// rules are the files that write numbers as words, in the order in which they are used.
func (f *folder) rules() []string {
	var out []string
	for _, first := range []string{"phone", "date", "number", "new_heteronym"} {
		out = append(out, f.all(func(name string) bool { return strings.HasPrefix(name, first) && strings.HasSuffix(name, ".fst") })...)
	}
	return out
}
