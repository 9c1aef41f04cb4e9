// Cl100k makes the table of tokens that the program holds. It reads
// cl100k_base.tiktoken as OpenAI publishes it, a line for each token (base64, a
// space, its rank), and writes the file that package history embeds:
//
//	go run ./agent/history/cl100k < cl100k_base.tiktoken > agent/history/cl100k.tokens
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "cl100k:", err)
		os.Exit(1)
	}
}

// run writes tokens by length, those of a length in the order of their bytes: how many there
// are (four bytes, big endian, for each length from one up), then each with its rank (three bytes).
func run(in io.Reader, out io.Writer) error {
	byLength, err := read(in)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	_ = w.WriteByte(byte(len(byLength))) // Flush tells of errors
	for _, records := range byLength {
		_, _ = w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(records)))) //nolint:gosec // at most the lines of a file
	}
	for _, records := range byLength {
		slices.SortFunc(records, bytes.Compare)
		for _, r := range records {
			_, _ = w.Write(r)
		}
	}
	return w.Flush()
}

// read returns the records of each length, from one up.
func read(in io.Reader) (byLength [][][]byte, err error) {
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		coded, rank, _ := strings.Cut(lines.Text(), " ")
		token, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		r, err := strconv.ParseUint(rank, 10, 24)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(token) == 0 || len(token) > 255 {
			return nil, fmt.Errorf("line %d: a token of %d bytes", n, len(token))
		}
		for len(byLength) < len(token) {
			byLength = append(byLength, nil)
		}
		record := append(token, byte(r>>16), byte(r>>8), byte(r))
		byLength[len(token)-1] = append(byLength[len(token)-1], record)
	}
	return byLength, lines.Err()
}
