package modelfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// Limits of a list of tokens.
const (
	maxTokens    = 1 << 20
	maxTokenLine = 4096 // bytes
)

var errTokens = errors.New("it is no list of tokens")

// countTokens reads a list of tokens, which has a sign and its number on each line, and returns the
// highest number and one. The library ends the process on a list that it cannot read.
func countTokens(file string) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return parseTokens(f)
}

func parseTokens(r io.Reader) (int, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, maxTokenLine), maxTokenLine)
	count, line := 0, 0
	for lines.Scan() {
		line++
		text := bytes.TrimRight(lines.Bytes(), "\r")
		if len(text) == 0 {
			continue
		}
		cut := bytes.LastIndexAny(text, " \t")
		id, err := strconv.Atoi(string(text[cut+1:]))
		if err != nil || cut < 0 || id < 0 || id >= maxTokens {
			return 0, fmt.Errorf("%w: line %d", errTokens, line)
		}
		count = max(count, id+1)
	}
	if lines.Err() != nil || count == 0 {
		return 0, errTokens
	}
	return count, nil
}
