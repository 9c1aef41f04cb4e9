// Package gateway is what others may use of this server: its devices and their
// tools, by HTTP. Who is let in is decided in one place, Access.
package gateway
