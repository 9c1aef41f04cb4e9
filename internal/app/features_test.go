package app

import (
	"testing"

	"xiaozhi/agent/feature/alarm"
	"xiaozhi/agent/feature/mail"
	"xiaozhi/memory"
)

// TestFeatureNames: the states of features are kept by name, so that no two may
// have the same.
func TestFeatureNames(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range features(alarm.New(t.Context(), alarm.Options{}), mail.New(t.Context(), mail.Options{}), nil, memory.New(t.Context(), memory.Options{}), nil) {
		if name := f.Name(); name == "" || seen[name] {
			t.Errorf("a feature named %q", name)
		} else {
			seen[name] = true
		}
	}
}
