package pocketsphinx

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// defaultModelDir is where Debian's pocketsphinx-en-us puts the model.
const defaultModelDir = "/usr/share/pocketsphinx/model/en-us"

// model names the files of an acoustic model, a dictionary and a language model.
type model struct {
	acoustic, dictionary, language, phones string
	features                               []string // as command line arguments
}

// findModel looks for the parts of the en-us model in dir.
func findModel(dir string) (model, error) {
	m := model{
		acoustic:   filepath.Join(dir, "en-us"),
		dictionary: filepath.Join(dir, "cmudict-en-us.dict"),
		language:   filepath.Join(dir, "en-us.lm.bin"),
		phones:     filepath.Join(dir, "en-us-phone.lm.bin"),
	}
	for _, f := range []string{filepath.Join(m.acoustic, "mdef"), m.dictionary, m.language, m.phones} {
		if _, err := os.Stat(f); err != nil {
			return model{}, fmt.Errorf("no English model (install the Debian package pocketsphinx-en-us): %w", err)
		}
	}
	params, err := os.ReadFile(filepath.Join(m.acoustic, "feat.params"))
	if err != nil {
		return model{}, fmt.Errorf("no English model (install the Debian package pocketsphinx-en-us): %w", err)
	}
	m.features = featureArgs(string(params))
	return m, nil
}

// featureArgs turns the model's feat.params into arguments, without those that
// are about the cepstral mean, which is removed here and not in the library.
// Read by the library itself, the file would overrule that.
func featureArgs(params string) []string {
	args := []string{"-featparams", os.DevNull, "-cmn", "none"}
	fields := strings.Fields(params)
	for i := 0; i+1 < len(fields); i += 2 {
		switch fields[i] {
		case "-cmn", "-cmninit", "-model":
		default:
			args = append(args, fields[i], fields[i+1])
		}
	}
	return args
}

// dictationArgs are the settings of the decoder with the language model.
func (m model) dictationArgs() []string {
	return append([]string{"-hmm", m.acoustic, "-dict", m.dictionary, "-lm", m.language}, m.features...)
}

// grammarArgs are the settings of the decoder for grammars and phones. It scores
// every sound of the model in every frame, so that the scores of two searches
// mean the same.
func (m model) grammarArgs() []string {
	return append([]string{
		"-hmm", m.acoustic, "-dict", m.dictionary,
		"-compallsen", "yes", "-bestpath", "no", "-allphone_ci", "yes",
	}, m.features...)
}
