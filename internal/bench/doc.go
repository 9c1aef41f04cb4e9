// Package bench measures servers that xiaozhi-style speakers connect to: ours
// or another's. It brings stub providers whose delays can be set, simulated
// devices that speak packets encoded once and never decode what they hear, and
// the metrics M1 to M17, each next to a control: a timer that does nothing. A
// figure about time that was taken while the control was late is void.
//
// The parts that judge (stats.go, playout.go, figure.go, report.go) look at no
// clock: they take times that were noted when a socket was read or written.
package bench
