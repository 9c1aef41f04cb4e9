package pocketsphinx

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// defaultModelDir is the folder of the model of Debian's pocketsphinx-en-us.
const defaultModelDir = "/usr/share/pocketsphinx/model/en-us"

// model names the files of an acoustic model, a dictionary and a language model.
type model struct {
	acoustic, dictionary, language string
	features                       []string // as command line arguments
}

// modelFiles are the files that the model must have, and what each begins with.
// The library ends the whole process over some of them when they are missing
// or something else, so they are looked at before it is asked to load them.
var modelFiles = []struct {
	name   string
	begins string
	at     int64 // where that is in the file
}{
	{"en-us/mdef", "BMDF", 0},
	{"en-us/means", "s3\n", 0},
	{"en-us/variances", "s3\n", 0},
	{"en-us/transition_matrices", "s3\n", 0},
	{"en-us/sendump", "BEGIN FILE FORMAT", 4},
	{"en-us.lm.bin", "Trie Language Model", 0},
	{"cmudict-en-us.dict", "", 0},
}

// findModel looks for the parts of the en-us model in dir.
func findModel(dir string) (model, error) {
	for _, f := range modelFiles {
		if err := checkBeginning(filepath.Join(dir, f.name), f.begins, f.at); err != nil {
			return model{}, fmt.Errorf("no English model (install the Debian package pocketsphinx-en-us): %w", err)
		}
	}
	m := model{
		acoustic:   filepath.Join(dir, "en-us"),
		dictionary: filepath.Join(dir, "cmudict-en-us.dict"),
		language:   filepath.Join(dir, "en-us.lm.bin"),
	}
	params, err := os.ReadFile(filepath.Join(m.acoustic, "feat.params"))
	if err != nil {
		return model{}, fmt.Errorf("no English model (install the Debian package pocketsphinx-en-us): %w", err)
	}
	m.features = featureArgs(string(params))
	return m, nil
}

// is reports whether the other model is of the same files.
func (m model) is(other model) bool {
	return m.acoustic == other.acoustic && m.dictionary == other.dictionary && m.language == other.language &&
		slices.Equal(m.features, other.features)
}

// checkBeginning reads as many bytes of a file as should be there and compares them.
func checkBeginning(file, want string, at int64) (err error) {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	got := make([]byte, max(len(want), 1)) // an empty file is an error
	if _, err := f.ReadAt(got, at); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	if want != "" && string(got) != want {
		return fmt.Errorf("%s begins with %q, want %q", file, got, want)
	}
	return nil
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

// highWarp takes the sounds of high voices down by 15 %, to where a lower voice has them.
const highWarp = "1.15"

// warped returns the settings of a front end that takes all frequencies down by a factor.
func (m model) warped(factor string) []string {
	return append([]string{"-warp_type", "inverse_linear", "-warp_params", factor}, m.features...)
}

// dictationArgs returns the settings of the decoder with the language model. One
// pass with wide beams hears as well as the library's two passes with narrow
// ones, and is done when the sound is: the second pass begins only at the end.
// The bound on active states is what music would go far beyond.
func (m model) dictationArgs() []string {
	return append([]string{
		"-hmm", m.acoustic, "-dict", m.dictionary, "-lm", m.language, "-compallsen", "yes",
		"-fwdflat", "no", "-beam", "1e-60", "-pbeam", "1e-60", "-wbeam", "1e-40", "-lw", "7", "-wip", "0.4", "-maxhmmpf", "8000",
	}, m.features...)
}

// grammarArgs returns the settings of the decoder for grammars. Like dictation it
// scores every sound of the model in every frame (compallsen), so that the scores
// of the two mean the same.
func (m model) grammarArgs() []string {
	return append([]string{
		"-hmm", m.acoustic, "-dict", m.dictionary, "-compallsen", "yes", "-bestpath", "no",
	}, m.features...)
}
