package main

import (
	"fmt"
	"strings"

	"xiaozhi/internal/text/message"
)

// usage lists the commands.
func usage() string {
	var text strings.Builder
	text.WriteString("usage: xiaozhi COMMAND [flags]\n\n")
	for _, command := range [][2]string{
		{"serve", "command/serve"}, {"talk", "command/talk"}, {"tools", "command/tools"}, {"bench", "command/bench"}, {"version", "command/version"},
	} {
		fmt.Fprintf(&text, "  %-9s %s\n", command[0], message.Both(command[1]))
	}
	fmt.Fprintf(&text, "\n%s\n", message.Both("command/help", "xiaozhi"))
	return text.String()
}
