// Pinyin makes the table of readings that the program holds, of the dictionary of github.com/mozillazg/go-pinyin, which as a
// part of the program would be a map of 2.6 MB on its heap from the start on:
//
//	go run ./providers/local/pinyin > providers/local/pinyin.readings
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/mozillazg/go-pinyin"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "pinyin:", err)
		os.Exit(1)
	}
}

// run writes a line of all syllables, apart by spaces, and then for each character in their order the character (three bytes,
// big endian) and the place of its first reading among the syllables (two bytes).
func run(out io.Writer) error {
	args := pinyin.NewArgs()
	args.Style = pinyin.Tone3
	readings := map[rune]string{}
	for c := range pinyin.PinyinDict {
		if all := pinyin.SinglePinyin(rune(c), args); len(all) > 0 { //nolint:gosec // they are characters
			readings[rune(c)] = all[0] //nolint:gosec // as above
		}
	}
	var characters []rune
	var syllables []string
	for c, s := range readings {
		characters, syllables = append(characters, c), append(syllables, s)
	}
	slices.Sort(characters)
	slices.Sort(syllables)
	syllables = slices.Compact(syllables)
	w := bufio.NewWriter(out)
	_, _ = w.WriteString(strings.Join(syllables, " ") + "\n") // Flush tells of errors
	for _, c := range characters {
		at, _ := slices.BinarySearch(syllables, readings[c])
		_, _ = w.Write([]byte{byte(c >> 16), byte(c >> 8), byte(c)})
		_, _ = w.Write(binary.BigEndian.AppendUint16(nil, uint16(at))) //nolint:gosec // there are some 1,500
	}
	return w.Flush()
}
