package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"xiaozhi/internal/text/message"
)

// readPassword reads a password from a file, from standard input, or from a person, who sees nothing of it.
func readPassword(file string, stdin io.Reader, stderr io.Writer) (word string, err error) {
	defer func() {
		if err == nil && word == "" {
			err = errors.New(message.Both("people/no-word"))
		}
	}()
	if terminal, ok := stdin.(*os.File); file == "" && ok && term.IsTerminal(int(terminal.Fd())) {
		return askPassword(terminal, stderr)
	}
	if file != "" && file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		stdin = f
	}
	return readLine(stdin)
}

// askHidden reads one line from a terminal without showing it. id is the text that asks for it.
func askHidden(id string, terminal *os.File, stderr io.Writer) (string, error) {
	fmt.Fprintf(stderr, "%s: ", message.Both(id))
	line, err := term.ReadPassword(int(terminal.Fd()))
	fmt.Fprintln(stderr)
	return string(line), err
}

// readLine reads one line from what is no terminal.
func readLine(stdin io.Reader) (string, error) {
	const limit = 4096 // bytes: more is no password
	line, err := bufio.NewReader(io.LimitReader(stdin, limit)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimRight(line, "\r\n"), nil
}

// askPassword asks a person for a new password twice.
func askPassword(terminal *os.File, stderr io.Writer) (string, error) {
	first, err := askHidden("people/password", terminal, stderr)
	if err != nil {
		return "", err
	}
	again, err := askHidden("people/again", terminal, stderr)
	if err == nil && again != first {
		err = errors.New(message.Both("people/differ"))
	}
	return first, err
}
