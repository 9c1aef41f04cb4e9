// Package e2e tests the built program: real processes, real sockets on
// loopback, human recordings, and the strict simulated speaker.
package e2e
