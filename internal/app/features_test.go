package app

import (
	"testing"

	"xiaozhi/agent/feature/alarm"
)

// TestFeatureNames: the states of features are kept by name, so that no two may
// have the same.
func TestFeatureNames(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range features(alarm.New(t.Context(), alarm.Options{}), nil) {
		if name := f.Name(); name == "" || seen[name] {
			t.Errorf("a feature named %q", name)
		} else {
			seen[name] = true
		}
	}
}
