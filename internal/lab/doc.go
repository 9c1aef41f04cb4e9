// Package lab tries things beside the talks: a kept turn with other services, two agents over the same turns, one sentence in
// several voices, the prompt as a model would see it. Nothing of it reaches a device, its history or its tools.
//
// # Concurrency
//
// What a person begins is a [Run] on a goroutine of its own, which [Runs] owns: one of a person at a time, with a time limit.
package lab
