package version

import (
	"encoding/json"
	"maps"
	"runtime/debug"
	"slices"
	"testing"
)

func TestDescribeBuild(t *testing.T) {
	built := &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "-race", Value: "true"},
		{Key: "CGO_ENABLED", Value: "1"},
		{Key: "GOEXPERIMENT", Value: "simd,arenas"},
		{Key: "vcs.revision", Value: "abc"},
		{Key: "vcs.modified", Value: "true"},
	}}
	i := describe(built, Numbers{Data: 5, Settings: 1}, map[string]string{"libopus": "1.3.1"})
	if want := []string{"arenas", "cgo", "race", "simd"}; !slices.Equal(i.Features, want) {
		t.Errorf("features %q, want %q", i.Features, want)
	}
	if i.Commit != "abc" || !i.Modified || i.Version != number || i.Data != 5 {
		t.Errorf("%+v", i)
	}
	if i := describe(nil, Numbers{}, nil); i.Commit != "" || len(i.Features) != 0 || i.Go == "" {
		t.Errorf("without build information: %+v", i)
	}
}

// TestInfoKeys: programs that read `xiaozhi version --json` find these names.
func TestInfoKeys(t *testing.T) {
	text, err := json.Marshal(describe(&debug.BuildInfo{}, Numbers{}, map[string]string{}))
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := json.Unmarshal(text, &keys); err != nil {
		t.Fatal(err)
	}
	want := []string{"arch", "commit", "data", "features", "go", "libraries", "os", "settings", "version", "wire"}
	if got := slices.Sorted(maps.Keys(keys)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if features, ok := keys["features"].([]any); !ok || len(features) != 0 {
		t.Errorf("features are %v, want an empty list", keys["features"])
	}
}
