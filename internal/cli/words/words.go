// Package words splits command lines that people write in the configuration.
package words

import (
	"errors"
	"fmt"
	"strings"
)

// Split splits a command line into words as a POSIX shell does, and does nothing else that a shell does: it knows no
// variables, globs, pipes or redirections. It refuses unquoted characters of pipes and redirections, so that nobody expects
// them to work.
func Split(line string) ([]string, error) {
	var (
		words []string
		word  strings.Builder
		open  bool // in a word, perhaps an empty quoted one
		runes = []rune(line)
	)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; r {
		case ' ', '\t', '\n':
			if open {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		case '\\':
			if i++; i == len(runes) {
				return nil, errors.New("ends with a backslash")
			}
			word.WriteRune(runes[i])
			open = true
		case '\'', '"':
			end, err := quoted(&word, runes, i)
			if err != nil {
				return nil, err
			}
			i, open = end, true
		case '|', '&', ';', '<', '>', '`':
			return nil, fmt.Errorf("%q needs a shell; quote it, or write sh -c '…'", r)
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}

// quoted appends the text between the quote at start and its closing quote, whose index it returns.
func quoted(word *strings.Builder, runes []rune, start int) (end int, err error) {
	quote := runes[start]
	for i := start + 1; i < len(runes); i++ {
		r := runes[i]
		switch {
		case r == quote:
			return i, nil
		case r == '\\' && quote == '"' && i+1 < len(runes) && strings.ContainsRune("\"\\$`", runes[i+1]):
			i++
			word.WriteRune(runes[i])
		default:
			word.WriteRune(r)
		}
	}
	return 0, fmt.Errorf("the %c at character %d is never closed", quote, start+1)
}
