// Package think answers a turn: it asks the model, runs the tools that it calls,
// and gives what is to be heard to the speaker.
package think
