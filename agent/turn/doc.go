// Package turn decides who may speak in a conversation. [Rules.Next] is a pure
// function from a [State] and an [Event] to the next state and the [Effect]s that
// carry it out; the actor of package agent feeds it and performs them. The package
// has no clock, no lock and no goroutine: time comes in with [Seen].
// docs/turn.md shows the transition table.
package turn
