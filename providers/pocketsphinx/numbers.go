package pocketsphinx

import (
	"fmt"
	"strconv"
)

var units = [...]string{
	"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
	"eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
}

var tens = [...]string{"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"}

// sayWord returns one written word as it is spoken: digits become number words, up
// to 999. A mix of letters and digits is an error.
func sayWord(word string) ([]string, error) {
	if word == "" {
		return nil, nil
	}
	digits := 0
	for i := range len(word) {
		if word[i] >= '0' && word[i] <= '9' {
			digits++
		}
	}
	if digits == 0 {
		return []string{word}, nil
	}
	n, err := strconv.Atoi(word)
	if digits < len(word) || err != nil || n > 999 {
		return nil, fmt.Errorf("%q is not a word or a number up to 999", word)
	}
	return sayNumber(n), nil
}

// sayNumber reads 0 to 999 in words.
func sayNumber(n int) []string {
	var words []string
	if n >= 100 {
		words = append(words, units[n/100], "hundred")
		if n %= 100; n == 0 {
			return words
		}
	}
	if n >= 20 {
		words = append(words, tens[n/10])
		if n %= 10; n == 0 {
			return words
		}
	}
	return append(words, units[n])
}
