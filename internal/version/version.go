// Package version says what this program is: its version, the commit and the settings of the compiler that it was built
// from, and the numbers by which programs of different versions know whether they understand one another's data.
package version

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// The linker replaces these (-X) in scripts/release.sh; nothing else does.
var (
	number = "0.1.0"
	commit = ""
)

// Number returns the version, such as 0.1.0, that the server reports to devices, tools and people.
func Number() string { return number }

// Info describes a program, as `xiaozhi version --json` prints it.
type Info struct {
	Version  string   `json:"version"`
	Commit   string   `json:"commit"` // of the source; "" where the compiler was not told
	Modified bool     `json:"modified,omitempty"`
	Go       string   `json:"go"`
	OS       string   `json:"os"`
	Arch     string   `json:"arch"`
	Features []string `json:"features"` // of the build, sorted: cgo, race, experiments of Go (simd)

	Numbers
	Libraries map[string]string `json:"libraries"` // versions of C libraries inside the program, by name
}

// Numbers are raised whenever an older program would misunderstand a newer one.
type Numbers struct {
	Data     int64 `json:"data"`     // schema of the database
	Wire     int64 `json:"wire"`     // messages between the nodes of a fleet; 0: this build is no node
	Settings int64 `json:"settings"` // keys and meaning of config.yaml
}

// Describe returns what the running program is, by what the compiler has written into it.
func Describe(n Numbers, libraries map[string]string) Info {
	built, _ := debug.ReadBuildInfo() // nil: it was not told
	return describe(built, n, libraries)
}

func describe(built *debug.BuildInfo, n Numbers, libraries map[string]string) Info {
	i := Info{Version: number, Commit: commit, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Features: []string{}, Numbers: n, Libraries: libraries}
	if built == nil {
		return i
	}
	for _, s := range built.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Commit = cmp.Or(i.Commit, s.Value)
		case "vcs.modified":
			i.Modified = s.Value == "true"
		case "CGO_ENABLED":
			if s.Value == "1" {
				i.Features = append(i.Features, "cgo")
			}
		case "-race":
			i.Features = append(i.Features, "race")
		case "GOEXPERIMENT":
			i.Features = append(i.Features, strings.FieldsFunc(s.Value, func(r rune) bool { return r == ',' })...)
		}
	}
	slices.Sort(i.Features)
	return i
}
