package doctor

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"xiaozhi/internal/contact"
	"xiaozhi/internal/text/message"
)

// Bundle goes to somebody who helps with a server. It holds no secrets and no words that were said.
type Bundle struct {
	Version  string
	Settings []byte // JSON without secrets
	Warnings []string
	Log      string // last lines
	Report   Report
	Contacts *contact.Log // nil: the server does not run
	Secrets  []string     // that must not be in it, wherever they come from
	Now      time.Time
}

// shortSecret is the length under which a text is not taken out: it would be everywhere.
const shortSecret = 6

// told is a contact with what was sent.
type told struct {
	contact.Contact
	Sent map[string]string `json:"sent,omitempty"` // by step
}

// Write writes the bundle as a ZIP archive.
func (b Bundle) Write(w io.Writer) error {
	files := []struct {
		name string
		body func() ([]byte, error)
	}{
		{"README.txt", func() ([]byte, error) {
			return []byte(strings.ReplaceAll(message.Both("doctor/bundle"), " / ", "\n\n") + "\n"), nil
		}},
		{"version.json", b.version},
		{"settings.json", func() ([]byte, error) { return indented(json.RawMessage(b.Settings)) }},
		{"doctor.json", func() ([]byte, error) { return indented(b.Report) }},
		{"contacts.json", b.contacts},
		{"log.txt", func() ([]byte, error) { return []byte(strings.Join(append(b.Warnings, b.Log), "\n")), nil }},
	}
	archive := zip.NewWriter(w)
	hide := b.hider()
	for _, f := range files {
		body, err := f.body()
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		part, err := archive.CreateHeader(&zip.FileHeader{Name: "xiaozhi-support/" + f.name, Method: zip.Deflate, Modified: b.Now})
		if err == nil {
			_, err = part.Write(hide(body))
		}
		if err != nil {
			return err
		}
	}
	return archive.Close()
}

// hider returns what takes secrets out, the longest first, as they are and as JSON writes them.
func (b Bundle) hider() func([]byte) []byte {
	var all []string
	for _, s := range b.Secrets {
		if len(s) < shortSecret {
			continue
		}
		all = append(all, s)
		if quoted, err := json.Marshal(s); err == nil {
			all = append(all, string(quoted[1:len(quoted)-1]))
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	all = slices.Compact(all)
	return func(body []byte) []byte {
		for _, s := range all {
			body = bytes.ReplaceAll(body, []byte(s), []byte(contact.Dots))
		}
		return body
	}
}

func (b Bundle) version() ([]byte, error) {
	v := struct {
		Version string            `json:"version"`
		Go      string            `json:"go"`
		System  string            `json:"system"`
		CPUs    int               `json:"cpus"`
		Made    time.Time         `json:"made"`
		Modules map[string]string `json:"modules,omitempty"`
	}{b.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), b.Now, map[string]string{}}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			v.Modules[m.Path] = m.Version
		}
	}
	return indented(v)
}

func (b Bundle) contacts() ([]byte, error) {
	all := []told{}
	if b.Contacts != nil {
		for _, c := range b.Contacts.List() {
			t := told{c, map[string]string{}}
			for _, m := range c.Steps {
				if step, ok := contact.ParseStep(m.Step); ok && m.Raw {
					t.Sent[m.Step] = b.Contacts.Raw(c.Device, step)
				}
			}
			all = append(all, t)
		}
	}
	return indented(all)
}

func indented(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return out.Bytes(), err
}
