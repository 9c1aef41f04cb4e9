package main

import (
	"fmt"

	"xiaozhi/internal/text/message"
)

// usage lists the commands.
func usage() string {
	text := "usage: xiaozhi COMMAND [flags]\n\n"
	for _, command := range [][2]string{
		{"serve", "command/serve"}, {"talk", "command/talk"}, {"tools", "command/tools"}, {"bench", "command/bench"}, {"version", "command/version"},
	} {
		text += fmt.Sprintf("  %-9s %s\n", command[0], message.Both(command[1]))
	}
	return text + "\n" + message.Both("command/help", "xiaozhi") + "\n"
}
