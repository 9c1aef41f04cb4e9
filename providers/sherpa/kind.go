package sherpa

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"xiaozhi/providers"
	"xiaozhi/providers/service"
	"xiaozhi/providers/sherpa/internal/capi"
	"xiaozhi/providers/sherpa/modelfile"
)

const (
	// Folder is where models are looked for unless the settings say otherwise.
	Folder = "data/models"
	// LibraryFolder is the folder in there that holds the library, when it was fetched.
	LibraryFolder = "sherpa-onnx"
)

// Names of models, as the catalogue of models has them, the one to try first before the others.
var (
	recognizers = []string{"zipformer-zh", "zipformer-zh-en", "zipformer-small-zh-en", "paraformer-zh-en", "sensevoice", "whisper-base"}
	speakers    = []string{"matcha-zh-en", "melo-zh-en", "kokoro-zh-en", "matcha-zh"}
	voiceprints = []string{"campplus-zh-en", "campplus-zh", "eres2netv2-zh", "resnet34-en"}
)

// Kind describes sherpa-onnx on this machine. A model is the name of a folder in the folder of models, or a path;
// without one the first that fits is taken.
func Kind() service.Kind {
	return service.Kind{
		Type: "sherpa", Title: "sherpa-onnx", Free: true,
		Models: map[service.Role][]string{service.ASR: recognizers, service.TTS: speakers, service.Voiceprint: voiceprints},
		More: []service.Setting{
			{Name: "library"}, {Name: "folder"}, {Name: "language"},
			{Name: "decoders", Type: service.Number}, {Name: "threads", Type: service.Number}, {Name: "threshold", Type: service.Number},
		},
		ASR: func(s service.Section) (providers.ASR, error) {
			o := optionsOf(s, service.ASR)
			o.Try = elsewhere(o, service.ASR)
			return orNil(New(o))
		},
		TTS: func(s service.Section) (providers.TTS, error) {
			o := optionsOf(s, service.TTS)
			o.Try = elsewhere(o, service.TTS)
			v, err := NewVoice(o)
			if err != nil {
				return nil, err
			}
			return v, nil
		},
		Voiceprint: func(s service.Section) (providers.Voiceprint, error) {
			o := optionsOf(s, service.Voiceprint)
			o.Try = elsewhere(o, service.Voiceprint)
			v, err := NewVoiceprint(o)
			if err != nil {
				return nil, err
			}
			return v, nil
		},
		ListVoices: listSpeakers, Here: here,
	}
}

// here reports whether the library was fetched and a model for a role is there.
func here(s service.Section, role service.Role) bool {
	o := optionsOf(s, role)
	m, err := modelfile.Find(o.Model)
	return err == nil && plays(m, role) && o.Library != "" && exists(o.Library)
}

// listSpeakers lists the speakers of a section's voice: by name where the model tells their names, else by number.
func listSpeakers(_ context.Context, s service.Section) ([]service.Voice, error) {
	o := optionsOf(s, service.TTS)
	m, err := modelfile.Find(o.Model)
	if err == nil && !m.Kind.Speaks() {
		err = &modelfile.Problem{Fault: modelfile.WrongRole, File: o.Model, Detail: string(m.Kind)}
	}
	if err != nil {
		return nil, failed(o.Name, "list voices", err)
	}
	names := m.Speakers()
	count, _ := strconv.Atoi(m.Metadata["n_speakers"])
	for n := len(names); n < min(max(count, 1), maxSpeakers); n++ {
		names = append(names, strconv.Itoa(n))
	}
	voices := make([]service.Voice, 0, len(names))
	for _, name := range names {
		voices = append(voices, service.Voice{Name: name})
	}
	return voices, nil
}

// maxSpeakers bounds what is listed.
const maxSpeakers = 1000

// orNil keeps a nil pointer from becoming an interface that is not nil.
func orNil(r *Recognizer, err error) (providers.ASR, error) {
	if err != nil {
		return nil, err
	}
	return r, nil
}

// optionsOf makes options of a section.
func optionsOf(s service.Section, role service.Role) Options {
	folder := s.Text("folder", Folder)
	o := Options{
		Name: s.Name, Model: s.Model(role, ""), Library: s.Text("library", ""), Language: s.Text("language", ""),
		Decoders: int(s.Number("decoders", 0)), Threads: int(s.Number("threads", 0)), Speed: s.Speed, Log: s.Log,
		Speaker: s.Voices[""], Threshold: s.Number("threshold", 0), Choose: func(req providers.TTSRequest) string { return s.Voice(req, "") },
	}
	switch {
	case o.Model == "":
		o.Model = first(folder, role)
	case !strings.ContainsRune(o.Model, filepath.Separator):
		o.Model = filepath.Join(folder, o.Model)
	}
	if fetched := filepath.Join(folder, LibraryFolder, capi.DefaultFile); o.Library == "" && exists(fetched) {
		o.Library, _ = filepath.Abs(fetched) // the loader takes a name without a path for one of the system's
	}
	return o
}

// first returns the folder of the first model for a role, or that of the one that would be fetched.
func first(folder string, role service.Role) string {
	order := map[service.Role][]string{service.ASR: recognizers, service.TTS: speakers, service.Voiceprint: voiceprints}[role]
	names := slices.Clone(order)
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	for _, name := range names {
		if m, err := modelfile.Find(filepath.Join(folder, name)); err == nil && plays(m, role) {
			return m.Dir
		}
	}
	return filepath.Join(folder, cmp.Or(order...))
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
