package main

import (
	"bytes"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/module"
)

// licenceFile are the names under which modules keep their licences and what they demand to be passed on.
var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|unlicense|patents)([-.].*)?$`)

// licencesMain writes the licence texts of all modules inside a program, Go's own, and others that are named.
func licencesMain(args []string) error {
	var texts pairs
	flags := flag.NewFlagSet("licences", flag.ContinueOnError)
	program := flags.String("program", "", "the program, whose Go modules are asked")
	to := flags.String("to", "", "file to write")
	flags.Var(&texts, "text", "NAME=FILE, the licence of something else that is inside, repeated")
	if err := parse(flags, args, "program", "to"); err != nil {
		return err
	}
	built, err := buildinfo.ReadFile(*program)
	if err != nil {
		return err
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	fmt.Fprint(&out, "What is inside the program xiaozhi, and the licences under which others have given it.\n")
	texts = append(pairs{{"Go " + built.GoVersion, filepath.Join(strings.TrimSpace(string(goroot)), "LICENSE")}}, texts...)
	for _, t := range texts {
		content, err := os.ReadFile(t.value)
		if err != nil {
			return err
		}
		section(&out, t.name, content)
	}
	for _, m := range built.Deps {
		folder, err := folderOf(strings.TrimSpace(string(cache)), m.Path, m.Version)
		if err != nil {
			return err
		}
		found, err := licencesIn(folder)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("%s %s has no file that says its licence in %s", m.Path, m.Version, folder)
		}
		for _, f := range found {
			content, err := os.ReadFile(filepath.Join(folder, f))
			if err != nil {
				return err
			}
			section(&out, m.Path+" "+m.Version+", "+f, content)
		}
	}
	return os.WriteFile(*to, out.Bytes(), 0o644)
}

func section(out *bytes.Buffer, title string, content []byte) {
	fmt.Fprintf(out, "\n%s\n%s\n\n%s\n", title, strings.Repeat("=", len(title)), bytes.TrimSpace(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n"))))
}

// folderOf returns the folder of a module in Go's cache.
func folderOf(cache, path, version string) (string, error) {
	escaped, err := module.EscapePath(path)
	if err != nil {
		return "", err
	}
	v, err := module.EscapeVersion(version)
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, escaped+"@"+v), nil
}

// licencesIn names the licence files of a module, in their order: those of its folder and of the folders in it, for a
// module may hold work of others.
func licencesIn(folder string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != folder && (name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && licenceFile.MatchString(d.Name()) && !strings.HasSuffix(path, ".go") {
			rel, err := filepath.Rel(folder, path)
			if err != nil {
				return err
			}
			found = append(found, filepath.ToSlash(rel))
		}
		return nil
	})
	return found, err
}
