//go:build race

package testall

const race = true
