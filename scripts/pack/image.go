package main

import (
	"archive/tar"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// uid is the user and the group that the server is in an image. Debian and Ubuntu give it to nobody.
const uid = "65532"

// imageMain makes one image of all architectures as an OCI layout in a tar file, for skopeo, podman and containerd, and
// one of each architecture as `docker load` of any age reads it. Each folder becomes a layer, in their order.
func imageMain(args []string) error {
	when, err := epoch()
	if err != nil {
		return err
	}
	var layers pairs
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	version := flags.String("version", "", "version, the tag of the image")
	commit := flags.String("commit", "", "commit of the source")
	oci := flags.String("oci", "", "the OCI layout of all architectures to write, a tar file")
	docker := flags.String("docker", "", "the image of one architecture to write, a tar file; ARCH in it is replaced")
	flags.Var(&layers, "layer", "ARCH=FOLDER, repeated")
	if err := parse(flags, args, "version", "commit", "oci", "docker"); err != nil {
		return err
	}
	tag, err := name.NewTag("xiaozhi:"+*version, name.WithDefaultRegistry(""))
	if err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range architectures(layers) {
		image, err := imageOf(arch, layers, *version, *commit, when)
		if err != nil {
			return fmt.Errorf("%s: %w", arch, err)
		}
		if err := tarball.WriteToFile(strings.ReplaceAll(*docker, "ARCH", arch), tag, image); err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform(arch)}})
	}
	return writeLayout(*oci, *version, index, when)
}

// architectures names those of the layers, each once.
func architectures(layers pairs) []string {
	var all []string
	seen := map[string]bool{}
	for _, l := range layers {
		if !seen[l.name] {
			seen[l.name] = true
			all = append(all, l.name)
		}
	}
	return all
}

func platform(arch string) *v1.Platform {
	p := &v1.Platform{OS: "linux", Architecture: arch}
	if arch == "arm64" {
		p.Variant = "v8"
	}
	return p
}

// imageOf makes the image of one architecture.
func imageOf(arch string, layers pairs, version, commit string, when time.Time) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, l := range layers {
		if l.name != arch {
			continue
		}
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			r, w := io.Pipe()
			go func() { w.CloseWithError(writeFolder(w, l.value, when)) }()
			return r, nil
		}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
		if err != nil {
			return nil, err
		}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: when}, CreatedBy: "scripts/release.sh"}}); err != nil {
			return nil, err
		}
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	p := platform(arch)
	file.OS, file.Architecture, file.Variant, file.Created = p.OS, p.Architecture, p.Variant, v1.Time{Time: when}
	file.Config = v1.Config{
		User: uid + ":" + uid, WorkingDir: "/data", Volumes: map[string]struct{}{"/data": {}},
		Env:          []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/data", "LANG=C.UTF-8"},
		Entrypoint:   []string{"/usr/bin/xiaozhi"},
		Cmd:          []string{"serve", "--config", "/etc/xiaozhi/config.yaml", "--data", "/data"},
		ExposedPorts: map[string]struct{}{"8000/tcp": {}, "8003/tcp": {}},
		StopSignal:   "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title": "xiaozhi", "org.opencontainers.image.version": version, "org.opencontainers.image.revision": commit,
			"org.opencontainers.image.licenses": "MIT", "org.opencontainers.image.description": "A voice server for xiaozhi-style speakers",
		},
	}
	return mutate.ConfigFile(image, file)
}

// writeFolder writes a folder as a tar file: sorted, with the owners and modes that its files have, no other times than
// when, and nothing that depends on the machine.
func writeFolder(w io.Writer, root string, when time.Time) error {
	out := tar.NewWriter(w)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		var link string
		if info.Mode()&fs.ModeSymlink != 0 {
			if link, err = os.Readlink(path); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		h.Name, h.Uname, h.Gname, h.ModTime, h.Format = filepath.ToSlash(rel), "", "", when, tar.FormatPAX
		h.AccessTime, h.ChangeTime = time.Time{}, time.Time{}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok {
			h.Uid, h.Gid = int(owner.Uid), int(owner.Gid)
		}
		if d.IsDir() {
			h.Name += "/"
		}
		if err := out.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(out, f)
		return err
	})
	if err != nil {
		return err
	}
	return out.Close()
}

// writeLayout writes an index of images, under its tag, as an OCI layout in a tar file.
func writeLayout(to, tag string, index v1.ImageIndex, when time.Time) error {
	dir, err := os.MkdirTemp("", "xiaozhi-oci-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": tag})); err != nil {
		return err
	}
	f, err := os.Create(to)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := writeFolder(f, dir, when); err != nil {
		return err
	}
	return f.Close()
}
