package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// write makes a folder of files; a name that ends with a slash is a folder.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestImageTwice: an image has the same bytes wherever and whenever it is made, starts the server as a user without rights,
// and holds the files of all layers, the later over the earlier.
func TestImageTwice(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	make := func() string {
		system := write(t, map[string]string{"etc/passwd": "x", "usr/lib/a.so": "a"})
		program := write(t, map[string]string{"usr/bin/xiaozhi": "program", "usr/lib/a.so": "b"})
		if err := os.Chtimes(filepath.Join(system, "etc/passwd"), time.Now(), time.Unix(time.Now().UnixNano()%1e9, 0)); err != nil {
			t.Fatal(err)
		}
		out := t.TempDir()
		args := []string{"image", "-version", "1.2.3", "-commit", "c", "-oci", out + "/oci.tar", "-docker", out + "/docker_ARCH.tar"}
		for _, arch := range []string{"amd64", "arm64"} {
			args = append(args, "-layer", arch+"="+system, "-layer", arch+"="+program)
		}
		if err := run(args); err != nil {
			t.Fatal(err)
		}
		return out
	}
	one, two := make(), make()
	for _, name := range []string{"oci.tar", "docker_amd64.tar", "docker_arm64.tar"} {
		a, err := os.ReadFile(filepath.Join(one, name))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(two, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs between two times", name)
		}
	}
	root := filepath.Join(t.TempDir(), "root")
	var said bytes.Buffer
	if err := unpackMain([]string{"-oci", one + "/oci.tar", "-arch", "arm64", "-to", root}, &said); err != nil {
		t.Fatal(err)
	}
	if content, _ := os.ReadFile(filepath.Join(root, "usr/lib/a.so")); string(content) != "b" {
		t.Errorf("the file of the later layer holds %q", content)
	}
	if got := said.String(); !strings.HasPrefix(got, "user 65532:65532\ndir /data\n") || !strings.Contains(got, "\narg /usr/bin/xiaozhi\narg serve\n") {
		t.Errorf("an engine would start %q", got)
	}
	image, err := tarball.ImageFromPath(one+"/docker_arm64.tar", nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Architecture != "arm64" || config.Config.User != "65532:65532" || config.Created.Unix() != 1700000000 {
		t.Errorf("docker load: %+v, %v", config, err)
	}
	if err := unpackMain([]string{"-oci", one + "/oci.tar", "-arch", "riscv64", "-to", root}, &said); err == nil {
		t.Error("an image for riscv64 was found")
	}
}

// TestUnpackBroken: an image with a wrong sum, or files outside, is refused.
func TestUnpackBroken(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	out := t.TempDir()
	if err := run([]string{"image", "-version", "1", "-commit", "c", "-oci", out + "/oci.tar", "-docker", out + "/d_ARCH.tar", "-layer", "amd64=" + write(t, map[string]string{"a": "b"})}); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(out + "/oci.tar")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func([]byte) []byte{
		"cut":     func(b []byte) []byte { return b[:len(b)/2] },
		"changed": func(b []byte) []byte { return bytes.Replace(b, []byte("65532:65532"), []byte("00000:00000"), 1) },
		"outside": func(b []byte) []byte { return bytes.Replace(b, []byte("index.json"), []byte("../x/index"), 1) },
	} {
		if err := os.WriteFile(out+"/broken.tar", change(bytes.Clone(whole)), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := unpackMain([]string{"-oci", out + "/broken.tar", "-arch", "amd64", "-to", filepath.Join(t.TempDir(), "x")}, &bytes.Buffer{}); err == nil {
			t.Errorf("%s: unpacked", name)
		}
	}
}

// TestInside: the lists of what is inside this test's own program name its modules and Go, with the version of each.
func TestInside(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := run([]string{"sbom", "-program", self, "-version", "1.2.3", "-library", "libopus=1.3.1", "-to", out + "/sbom.json"}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(out + "/sbom.json")
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := json.Unmarshal(content, &bom); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, c := range *bom.Components {
		names[c.Name] = c.Version
	}
	if names["libopus"] != "1.3.1" || names["std"] == "" || names["github.com/google/go-containerregistry"] == "" || bom.Metadata.Timestamp != "2023-11-14T22:13:20Z" {
		t.Errorf("%v at %s", names, bom.Metadata.Timestamp)
	}
	if err := run([]string{"licences", "-program", self, "-to", out + "/licences.txt", "-text", "other=" + write(t, map[string]string{"L": "as you like"}) + "/L"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out + "/licences.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"github.com/google/go-containerregistry", "Apache License", "as you like", "The Go Authors"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the licences do not hold %q", want)
		}
	}
}

// TestMisuse: what is wrong on the command line is named.
func TestMisuse(t *testing.T) {
	for _, c := range []struct{ epoch, args, want string }{
		{"", "sbom", "SOURCE_DATE_EPOCH"},
		{"soon", "sbom", "SOURCE_DATE_EPOCH"},
		{"1", "", "image, sbom"},
		{"1", "imag", `"imag"`},
		{"1", "image -version 1", "-commit is missing"},
		{"1", "image -layer amd64", "NAME=VALUE"},
		{"1", "sbom -program /none -version 1 -to /none", "/none"},
		{"1", "sbom x", `"x"`},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", c.epoch)
		if err := run(strings.Fields(c.args)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.args, err, c.want)
		}
	}
}
