// Package wire is what passes between a device's connection and its conversation:
// events and microphone packets one way, messages and sound the other. Neither
// side imports the other.
package wire
