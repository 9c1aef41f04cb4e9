package providers_test

import (
	"errors"
	"fmt"
	"testing"

	"xiaozhi/providers"
)

func TestLacksLanguage(t *testing.T) {
	lacks := &providers.Error{Provider: "a", Op: "speak", Kind: providers.BadRequest, Err: fmt.Errorf("%w: ja", providers.ErrLanguage)}
	down := &providers.Error{Provider: "b", Op: "speak", Err: errors.New("down")}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"nothing":             {nil, false},
		"one":                 {lacks, true},
		"wrapped":             {fmt.Errorf("synthesise: %w", lacks), true},
		"all of a chain":      {&providers.Error{Op: "speak", Err: errors.Join(lacks, lacks)}, true},
		"one of a chain":      {&providers.Error{Op: "speak", Err: errors.Join(down, lacks)}, false},
		"another":             {down, false},
		"two in one":          {fmt.Errorf("%w, %w", lacks, down), false},
		"the name of it only": {errors.New(providers.ErrLanguage.Error()), false},
	} {
		if got := providers.LacksLanguage(c.err); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
