package agents

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"
)

// The lines of a stream are read shallowly: a decoder names the keys it wants of an object and gets their raw values;
// everything else is stepped over at the speed of a byte search. So a tool result of many megabytes costs neither
// memory nor a parse tree, and nesting costs no stack. What is stepped over is checked for balance only.

// errShape is the one error of this file: the bytes are not the JSON that was asked for.
var errShape = errors.New("unexpected JSON")

// field is a key a decoder wants, and where the raw value goes. A key that is absent, or null, leaves nil.
type field struct {
	key string
	raw *[]byte
}

// object reads the top level of a JSON object. The raw values alias data. A wanted key that comes twice is an error:
// readers disagree about which one counts.
func object(data []byte, fields ...field) error {
	var seen uint64
	return walk(data, func(key, value []byte) error {
		f := find(fields, key)
		if f < 0 {
			return nil
		}
		if seen&(1<<f) != 0 {
			return errShape
		}
		seen |= 1 << f
		*fields[f].raw = orNil(value)
		return nil
	})
}

// walk calls each with every raw key (what stands between the quotes) and value of a JSON object.
func walk(data []byte, each func(key, value []byte) error) error {
	i, ok := open(data, '{')
	if !ok {
		return errShape
	}
	for first := true; ; first = false {
		if i = blank(data, i); i < len(data) && data[i] == '}' && first {
			return atEnd(data, i+1)
		}
		keyEnd := skipString(data, i)
		if keyEnd < 0 {
			return errShape
		}
		key := data[i+1 : keyEnd-1]
		if i = blank(data, keyEnd); i >= len(data) || data[i] != ':' {
			return errShape
		}
		start := blank(data, i+1)
		end := skip(data, start)
		if end < 0 {
			return errShape
		}
		if err := each(key, data[start:end]); err != nil {
			return err
		}
		if i = blank(data, end); i >= len(data) {
			return errShape
		}
		switch data[i] {
		case ',':
			i++
		case '}':
			return atEnd(data, i+1)
		default:
			return errShape
		}
	}
}

// elements calls each with the raw value of every element of a JSON array, and stops at its first error. A null or
// absent array has none.
func elements(data []byte, each func(raw []byte) error) error {
	if data == nil {
		return nil
	}
	i, ok := open(data, '[')
	if !ok {
		return errShape
	}
	for first := true; ; first = false {
		if i = blank(data, i); i < len(data) && data[i] == ']' && first {
			return atEnd(data, i+1)
		}
		end := skip(data, i)
		if end < 0 {
			return errShape
		}
		if err := each(data[i:end]); err != nil {
			return err
		}
		if i = blank(data, end); i >= len(data) {
			return errShape
		}
		switch data[i] {
		case ',':
			i++
		case ']':
			return atEnd(data, i+1)
		default:
			return errShape
		}
	}
}

// members calls each with the raw value of every member of a JSON object, whatever its key. A null or absent object has
// none.
func members(data []byte, each func(raw []byte) error) error {
	if data == nil {
		return nil
	}
	return walk(data, func(_, value []byte) error { return each(value) })
}

// find returns the index of the field with this raw key (what stands between the quotes), or -1.
func find(fields []field, key []byte) int {
	if bytes.IndexByte(key, '\\') >= 0 {
		var plain string
		if json.Unmarshal(append(append([]byte{'"'}, key...), '"'), &plain) != nil {
			return -1
		}
		key = []byte(plain)
	}
	for i := range fields {
		if fields[i].key == string(key) {
			return i
		}
	}
	return -1
}

func open(data []byte, bracket byte) (next int, ok bool) {
	i := blank(data, 0)
	return i + 1, i < len(data) && data[i] == bracket
}

func atEnd(data []byte, i int) error {
	if blank(data, i) != len(data) {
		return errShape
	}
	return nil
}

func orNil(raw []byte) []byte {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// blank returns the index of the first byte from i on that is not white space.
func blank(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n') {
		i++
	}
	return i
}

// skip returns the index after the value that starts at i, or -1.
func skip(data []byte, i int) int {
	for depth := 0; i < len(data); {
		switch data[i] {
		case '"':
			if i = skipString(data, i); i < 0 {
				return -1
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return -1
			}
			i++
			continue
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 't', 'f', 'n':
			start := i
			for i < len(data) && !delimits(data[i]) {
				i++
			}
			if !literal(data[start:i]) {
				return -1
			}
		default:
			return -1
		}
		if depth < 0 {
			return -1
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

func delimits(c byte) bool {
	switch c {
	case ',', ':', '}', ']', '{', '[', '"', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// literal reports a keyword or what looks like a number.
func literal(word []byte) bool {
	switch string(word) {
	case "true", "false", "null":
		return true
	}
	for _, c := range word {
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			return false
		}
	}
	return true
}

// skipString returns the index after the string that starts at i, or -1. A quote ends it unless an odd number of
// backslashes stands before.
func skipString(data []byte, i int) int {
	if i >= len(data) || data[i] != '"' {
		return -1
	}
	for from := i + 1; ; {
		n := bytes.IndexByte(data[from:], '"')
		if n < 0 {
			return -1
		}
		quote := from + n
		slashes := 0
		for quote-1-slashes >= from && data[quote-1-slashes] == '\\' {
			slashes++
		}
		from = quote + 1
		if slashes%2 == 0 {
			return from
		}
	}
}

// text decodes a JSON string; absent is "".
func text(raw []byte) (string, error) {
	if raw == nil {
		return "", nil
	}
	if len(raw) < 2 || raw[0] != '"' {
		return "", errShape
	}
	if body := raw[1 : len(raw)-1]; plain(body) {
		return string(body), nil
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", errShape
	}
	return s, nil
}

// plain reports that what stands between two quotes stands for itself.
func plain(body []byte) bool {
	for _, c := range body {
		if c < ' ' || c == '\\' || c == '"' {
			return false
		}
	}
	return utf8.Valid(body)
}

// count decodes a number of something: a whole number of zero or more; absent is 0. Its bound keeps every sum of
// counts in range.
func count(raw []byte) (int64, error) {
	const most = 1 << 48
	if raw == nil {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, errShape
	}
	return n, nil
}

// amount decodes a number of zero or more; absent is 0.
func amount(raw []byte) (float64, error) {
	if raw == nil {
		return 0, nil
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !(n >= 0 && n < 1e12) {
		return 0, errShape
	}
	return n, nil
}

// truth decodes a boolean; absent is false.
func truth(raw []byte) (bool, error) {
	switch string(raw) {
	case "true":
		return true, nil
	case "false", "":
		return false, nil
	}
	return false, errShape
}
