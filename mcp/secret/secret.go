// Package secret finds the secrets that files of servers and of tools refer to, so that they need not stand there.
package secret

import (
	"context"
	"errors"
	"strings"

	"xiaozhi/internal/private"
	"xiaozhi/internal/text/message"
)

const (
	sealed  = "sealed:" // begins a text that names a sealed secret
	maxFile = 64 << 10  // bytes of a file that holds one
)

// Opener opens sealed secrets, each only for the place that it was entered for. Its errors are for people, and never
// hold the secret. Its methods may be called at the same time.
type Opener interface {
	// Sent opens one that is sent to the host of an address.
	Sent(ctx context.Context, name, address string) (string, error)
	// Given opens one that a program gets in its environment.
	Given(ctx context.Context, name, program string) (string, error)
	// Address opens one that is an address itself.
	Address(ctx context.Context, name string) (string, error)
}

// Sources hold the secrets that files may refer to. The zero value has none.
type Sources struct {
	Variable func(name string) (value string, set bool) // of the environment; nil: none is set
	Sealed   Opener                                     // nil: nothing is sealed
}

// Lookup returns a variable of the environment.
func (s Sources) Lookup(name string) (value string, set bool) {
	if s.Variable == nil {
		return "", false
	}
	return s.Variable(name)
}

// Sent returns the value of a key that is sent to the host of an address: of the file, where one is named, else of the
// sealed secret that text names, else text itself. apart reports that it is one of the first two.
func (s Sources) Sent(ctx context.Context, text, file, address string) (value string, apart bool, err error) {
	return s.value(text, file, func(o Opener, name string) (string, error) { return o.Sent(ctx, name, address) })
}

// Given is [Sources.Sent] for a variable of a program.
func (s Sources) Given(ctx context.Context, text, file, program string) (value string, err error) {
	value, _, err = s.value(text, file, func(o Opener, name string) (string, error) { return o.Given(ctx, name, program) })
	return value, err
}

// Address is [Sources.Sent] for an address.
func (s Sources) Address(ctx context.Context, text, file string) (value string, err error) {
	value, _, err = s.value(text, file, func(o Opener, name string) (string, error) { return o.Address(ctx, name) })
	return value, err
}

func (s Sources) value(text, file string, open func(o Opener, name string) (string, error)) (value string, apart bool, err error) {
	if file != "" {
		value, err = read(file)
		return value, true, err
	}
	name, apart := strings.CutPrefix(text, sealed)
	switch {
	case !apart:
		return text, false, nil
	case s.Sealed == nil:
		return "", true, errors.New(message.Both("sealed/unknown", name))
	}
	value, err = open(s.Sealed, name)
	return value, true, err
}

// read reads a secret from a file of its own, which nobody else may write.
func read(file string) (string, error) {
	data, err := private.Read(file)
	if err != nil {
		return "", err
	}
	value := strings.TrimSpace(string(data))
	switch {
	case value == "":
		return "", errors.New(message.Both("secret/empty", file))
	case len(value) > maxFile:
		return "", errors.New(message.Both("secret/large", file, maxFile))
	}
	return value, nil
}
