package main

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// unpackMain checks an image and unpacks that of one architecture into a folder, as an engine would. It prints what an
// engine would start: lines of user, dir, env and arg.
func unpackMain(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("unpack", flag.ContinueOnError)
	oci := flags.String("oci", "", "the OCI layout in a tar file")
	arch := flags.String("arch", "", "architecture")
	to := flags.String("to", "", "folder, which must be empty or not be there")
	if err := parse(flags, args, "oci", "arch", "to"); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "xiaozhi-oci-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := untar(*oci, dir); err != nil {
		return err
	}
	image, err := imageIn(dir, *arch)
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*to, 0o755); err != nil {
		return err
	}
	files := mutate.Extract(image)
	defer files.Close()
	untar := exec.Command("tar", "-x", "-p", "--numeric-owner", "-C", *to)
	untar.Stdin, untar.Stderr = files, os.Stderr
	if err := untar.Run(); err != nil {
		return fmt.Errorf("tar: %w", err)
	}
	c := config.Config
	fmt.Fprintf(stdout, "user %s\ndir %s\n", c.User, c.WorkingDir)
	for _, e := range c.Env {
		fmt.Fprintln(stdout, "env", e)
	}
	for _, a := range append(c.Entrypoint, c.Cmd...) {
		fmt.Fprintln(stdout, "arg", a)
	}
	return nil
}

// imageIn finds the image of an architecture in a layout, all of whose sums must be right.
func imageIn(dir, arch string) (v1.Image, error) {
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	names, err := top.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(names.Manifests) != 1 {
		return nil, fmt.Errorf("%d tags, want one", len(names.Manifests))
	}
	index, err := top.ImageIndex(names.Manifests[0].Digest)
	if err != nil {
		return nil, err
	}
	if err := validate.Index(index); err != nil {
		return nil, err
	}
	all, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	for _, m := range all.Manifests {
		if m.Platform != nil && m.Platform.Architecture == arch {
			return index.Image(m.Digest)
		}
	}
	return nil, errors.New("no image for " + arch)
}

// untar unpacks a layout: folders and files.
func untar(file, to string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	for in := tar.NewReader(f); ; {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", file, err)
		case !filepath.IsLocal(h.Name):
			return fmt.Errorf("%s: %q lies outside of it", file, h.Name)
		}
		path := filepath.Join(to, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o755)
		} else {
			err = copyTo(path, in, strings.HasPrefix(filepath.ToSlash(h.Name), "blobs/sha256/"))
		}
		if err != nil {
			return err
		}
	}
}

// copyTo writes a file. That of a blob must have the sum that is its name.
func copyTo(path string, from io.Reader, blob bool) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(f, io.TeeReader(from, sum)); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); blob && got != filepath.Base(path) {
		return fmt.Errorf("blob %s has the sum %s", filepath.Base(path), got)
	}
	return f.Close()
}
