package app

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"xiaozhi/providers"
)

// unavailable is the provider of a chain of which no member could be made: every use
// fails with an error that names the chain.
type unavailable struct {
	role  string
	names []string
}

func (u unavailable) err(op string) error {
	return &providers.Error{
		Provider: "none", Op: op, Kind: providers.Unavailable,
		Err: fmt.Errorf("no %s of [%s] could be started; the start log says why", u.role, strings.Join(u.names, " ")),
	}
}

// Name is "none".
func (u unavailable) Name() string { return "none" }

// Open always fails.
func (u unavailable) Open(context.Context, providers.ASRRequest) (providers.ASRStream, error) {
	return nil, u.err("recognize")
}

// Synthesize always fails.
func (u unavailable) Synthesize(context.Context, providers.TTSRequest) iter.Seq2[providers.Sound, error] {
	return func(yield func(providers.Sound, error) bool) { yield(providers.Sound{}, u.err("speak")) }
}
