// Command pack makes what a release (scripts/release.sh) holds beside its programs, without an engine for containers and
// byte by byte the same each time: images, lists of what is inside (SBOM) and the licences of it.
//
//	pack image -version V -commit C -layer ARCH=FOLDER ... -oci FILE -docker FILE
//	pack sbom -program FILE -version V [-library NAME=VERSION ...] [-deb FILE ...] -to FILE
//	pack licences -program FILE -to FILE [-text NAME=FILE ...]
//	pack unpack -oci FILE -arch ARCH -to FOLDER
//
// All times in what it makes are SOURCE_DATE_EPOCH.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("image, sbom, licences or unpack?")
	}
	switch command, args := args[0], args[1:]; command {
	case "image":
		return imageMain(args)
	case "sbom":
		return sbomMain(args)
	case "licences":
		return licencesMain(args)
	case "unpack":
		return unpackMain(args, os.Stdout)
	default:
		return fmt.Errorf("%q is not image, sbom, licences or unpack", command)
	}
}

// epoch reads SOURCE_DATE_EPOCH, seconds since 1970.
func epoch() (time.Time, error) {
	s := os.Getenv("SOURCE_DATE_EPOCH")
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is %q, not seconds since 1970", s)
	}
	return time.Unix(n, 0).UTC(), nil
}

// pairs are the values of a flag NAME=VALUE that may be repeated, in their order.
type pairs []pair

type pair struct{ name, value string }

func (p *pairs) String() string { return "" }

func (p *pairs) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" || value == "" {
		return fmt.Errorf("%q is not NAME=VALUE", s)
	}
	*p = append(*p, pair{name, value})
	return nil
}

// parse reads flags, all of which must be there.
func parse(flags *flag.FlagSet, args []string, needed ...string) error {
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected: %q", flags.Arg(0))
	}
	for _, name := range needed {
		if flags.Lookup(name).Value.String() == "" {
			return fmt.Errorf("%s: -%s is missing", flags.Name(), name)
		}
	}
	return nil
}
