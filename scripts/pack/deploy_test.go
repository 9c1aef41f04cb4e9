package main

import (
	"os"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
)

const deploy = "../../deploy/"

// TestCompose: the file is what compose reads; it names the image that is released, keeps the data, and gives the server
// no right that it does not need.
func TestCompose(t *testing.T) {
	options, err := cli.NewProjectOptions([]string{deploy + "compose/compose.yaml"}, cli.WithResolvedPaths(false))
	if err != nil {
		t.Fatal(err)
	}
	project, err := options.LoadProject(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, ok := project.Services["xiaozhi"]
	if !ok {
		t.Fatal("no service xiaozhi")
	}
	number, err := os.ReadFile("../../internal/version/version.go")
	if err != nil {
		t.Fatal(err)
	}
	if tag := strings.TrimPrefix(s.Image, "xiaozhi:"); !strings.Contains(string(number), `"`+tag+`"`) {
		t.Errorf("image %s is not of this version", s.Image)
	}
	if len(s.Volumes) != 1 || s.Volumes[0].Target != "/data" || s.Volumes[0].Source != "data" {
		t.Errorf("volumes %+v, want data at /data", s.Volumes)
	}
	if !s.ReadOnly || len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.CapAdd) > 0 || s.Privileged || s.CPUS != 0 || s.NetworkMode != "host" {
		t.Errorf("read only %v, dropped %v, added %v, privileged %v, processors %v, network %s", s.ReadOnly, s.CapDrop, s.CapAdd, s.Privileged, s.CPUS, s.NetworkMode)
	}
}
