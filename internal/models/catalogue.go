// Package models fetches models of speech and keeps them in a folder: what is known of them is data
// (catalogue.yaml), what is fetched is verified before it is put into its place, and what is there can be checked
// at any time.
package models

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"runtime"
	"slices"

	"go.yaml.in/yaml/v3"
)

//go:embed catalogue.yaml
var known []byte

// Entry is a model, or a library, that can be fetched.
type Entry struct {
	Name      string   `yaml:"name"`
	Role      string   `yaml:"role"`
	Kind      string   `yaml:"kind"`
	Platform  string   `yaml:"platform"` // as GOOS/GOARCH; "": all
	Languages []string `yaml:"languages"`
	Licence   string   `yaml:"licence"`
	Parts     []Part   `yaml:"parts"`
}

// Part is a file of a model, or an archive of several.
type Part struct {
	Sources []Source `yaml:"sources"` // each gives the same
	Keep    []string `yaml:"keep"`    // patterns of names in an archive; nil: all but samples of sound
	Flat    bool     `yaml:"flat"`    // an archive's files are put side by side
}

// Source gives a part.
type Source struct {
	URL    string `yaml:"url"` // https, http or file; without a host: only at a mirror
	Size   int64  `yaml:"size"`
	SHA256 string `yaml:"sha256"` // "" where it is not known
}

// file is the name of what a source gives.
func (s Source) file() string {
	u, err := url.Parse(s.URL)
	if err != nil {
		return ""
	}
	return path.Base(u.Path)
}

// Size is the number of bytes that are fetched, from the first sources.
func (e Entry) Size() int64 {
	var n int64
	for _, p := range e.Parts {
		n += p.Sources[0].Size
	}
	return n
}

// Verified reports whether the checksums of all sources are known.
func (e Entry) Verified() bool {
	return !slices.ContainsFunc(e.Parts, func(p Part) bool {
		return slices.ContainsFunc(p.Sources, func(s Source) bool { return s.SHA256 == "" })
	})
}

// Catalogue lists models, and may say where else their files are.
type Catalogue struct {
	Mirror string  `yaml:"mirror"` // address of a folder, https, http or file, that has the files in place of their sources; "": none
	Models []Entry `yaml:"models"`
}

// Load returns the known entries for this machine, and what a file of the owner's says, which need not be there. An
// entry of the file replaces one of the same name.
func Load(own string) (Catalogue, error) {
	c, err := parse(known)
	if err != nil {
		return Catalogue{}, fmt.Errorf("catalogue.yaml: %w", err)
	}
	text, err := os.ReadFile(own)
	if own == "" || errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	var more Catalogue
	if err == nil {
		more, err = parse(text)
	}
	if err != nil {
		return Catalogue{}, fmt.Errorf("%s: %w", own, err)
	}
	others := slices.DeleteFunc(c.Models, func(e Entry) bool {
		return slices.ContainsFunc(more.Models, func(m Entry) bool { return m.Name == e.Name })
	})
	return Catalogue{more.Mirror, append(others, more.Models...)}, nil
}

// name is what an entry may be called: it becomes a folder.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,63}$`)

var checksum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// maxEntries bounds a catalogue.
const maxEntries = 1000

// parse reads a catalogue and leaves out entries for other machines.
func parse(text []byte) (Catalogue, error) {
	var all Catalogue
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		return Catalogue{}, err
	}
	if len(all.Models) > maxEntries {
		return Catalogue{}, fmt.Errorf("%d models: at most %d", len(all.Models), maxEntries)
	}
	if err := CheckMirror(all.Mirror); err != nil {
		return Catalogue{}, err
	}
	here := Catalogue{Mirror: all.Mirror}
	for _, e := range all.Models {
		if err := e.check(); err != nil {
			return Catalogue{}, fmt.Errorf("model %q: %w", e.Name, err)
		}
		if e.Platform == "" || e.Platform == runtime.GOOS+"/"+runtime.GOARCH {
			here.Models = append(here.Models, e)
		}
	}
	return here, nil
}

// CheckMirror reports what is wrong with the address of a mirror; "" is none.
func CheckMirror(address string) error {
	u, err := url.Parse(address)
	if err != nil || address != "" && !slices.Contains(schemes, u.Scheme) {
		return fmt.Errorf("mirror %q: want an address of a folder, such as https://example.org/models or file:///media/usb", address)
	}
	return nil
}

// schemes are those of addresses that can be fetched.
var schemes = []string{"https", "http", "file"}

func (e Entry) check() error {
	switch {
	case !name.MatchString(e.Name):
		return errors.New("a name has small letters, digits, - and . and begins with one of the first two")
	case !slices.Contains([]string{"asr", "tts", "voiceprint", "library"}, e.Role):
		return fmt.Errorf("role %q: want asr, tts, voiceprint or library", e.Role)
	case len(e.Parts) == 0:
		return errors.New("it has no parts")
	}
	for _, p := range e.Parts {
		if len(p.Sources) == 0 {
			return errors.New("a part has no sources")
		}
		for _, s := range p.Sources {
			if err := s.check(); err != nil {
				return err
			}
		}
		for _, k := range p.Keep {
			if _, err := path.Match(k, ""); err != nil {
				return fmt.Errorf("keep %q: %w", k, err)
			}
		}
	}
	return nil
}

func (s Source) check() error {
	u, err := url.Parse(s.URL)
	switch {
	case err != nil || u.Path == "" || s.file() == "." || s.file() == "/" || s.file() == "..":
		return fmt.Errorf("source %q is no address of a file", s.URL)
	case u.Scheme != "" && !slices.Contains(schemes, u.Scheme):
		return fmt.Errorf("source %q: want https, http or file", s.URL)
	case s.SHA256 != "" && !checksum.MatchString(s.SHA256):
		return fmt.Errorf("sha256 %q: want 64 hexadecimal digits in small letters", s.SHA256)
	case s.Size < 0:
		return fmt.Errorf("size %d", s.Size)
	}
	return nil
}
