// Package offer fills the catalog of the gateway: with the core tools, the devices
// and what is known of them, this server's own tools, those of other servers that
// are passed on, declarative tools, prompts and resources. A [Follower] keeps the
// parts of it that change in step with what they come from.
package offer
