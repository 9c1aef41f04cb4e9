package main

import (
	"cmp"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// sbomMain lists what is inside a program, and beside it in an image, as CycloneDX JSON.
func sbomMain(args []string) error {
	when, err := epoch()
	if err != nil {
		return err
	}
	var libraries, debs pairs
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	program := flags.String("program", "", "the program, whose Go modules are listed")
	version := flags.String("version", "", "its version")
	to := flags.String("to", "", "file to write")
	flags.Var(&libraries, "library", "NAME=VERSION of a C library inside the program, repeated")
	flags.Func("deb", "a Debian package of the image, repeated", func(s string) error {
		debs = append(debs, pair{"deb", s})
		return nil
	})
	if err := parse(flags, args, "program", "version", "to"); err != nil {
		return err
	}
	built, err := buildinfo.ReadFile(*program)
	if err != nil {
		return err
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(built.GoVersion, "go"), "-") // 1.26.8-X:simd names an experiment
	all := []cdx.Component{{Type: cdx.ComponentTypeLibrary, Name: "std", Version: number, PackageURL: "pkg:golang/std@" + number, Description: "Go's standard library"}}
	for _, m := range built.Deps {
		if m.Replace != nil {
			return fmt.Errorf("%s is replaced by %s: a release is made of published modules", m.Path, m.Replace.Path)
		}
		all = append(all, cdx.Component{
			Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: "pkg:golang/" + m.Path + "@" + m.Version,
			// Not a checksum of one file but of the module (go.sum), so it is no hash of CycloneDX.
			Properties: &[]cdx.Property{{Name: "go:sum", Value: m.Sum}},
		})
	}
	for _, l := range libraries {
		all = append(all, cdx.Component{Type: cdx.ComponentTypeLibrary, Name: l.name, Version: l.value, PackageURL: "pkg:generic/" + l.name + "@" + l.value, Description: "C library inside the program"})
	}
	for _, d := range debs {
		c, err := debian(d.value)
		if err != nil {
			return err
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b cdx.Component) int { return strings.Compare(a.PackageURL, b.PackageURL) })
	for i := range all {
		all[i].BOMRef = all[i].PackageURL
	}
	if twice := slices.CompactFunc(slices.Clone(all), func(a, b cdx.Component) bool { return a.BOMRef == b.BOMRef }); len(twice) != len(all) {
		return errors.New("a component is named twice")
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: when.Format(time.RFC3339),
		Component: &cdx.Component{BOMRef: "xiaozhi", Type: cdx.ComponentTypeApplication, Name: "xiaozhi", Version: *version, Licenses: &cdx.Licenses{{License: &cdx.License{ID: "MIT"}}}},
	}
	bom.Components = &all
	f, err := os.Create(*to)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return err
	}
	return f.Close()
}

// debian describes a package by what is written in it.
func debian(file string) (cdx.Component, error) {
	out, err := exec.Command("dpkg-deb", "-W", "--showformat=${Package}\n${Version}\n${Architecture}\n${source:Package}\n${source:Version}\n", file).Output()
	if err != nil {
		return cdx.Component{}, fmt.Errorf("%s: %w", file, err)
	}
	f := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(f) < 3 {
		return cdx.Component{}, fmt.Errorf("%s: name, version and architecture are missing", file)
	}
	c := cdx.Component{Type: cdx.ComponentTypeLibrary, Name: f[0], Version: f[1], PackageURL: "pkg:deb/debian/" + f[0] + "@" + strings.ReplaceAll(f[1], "+", "%2B") + "?arch=" + f[2]}
	if len(f) == 5 {
		c.Properties = &[]cdx.Property{{Name: "debian:source", Value: cmp.Or(f[3], f[0]) + " " + cmp.Or(f[4], f[1])}}
	}
	return c, nil
}
