package suite

import (
	"bytes"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// Lines that may be inserted before a file's tests, and the names that such lines bind.
var (
	importForm = pattern.Lazy(`^\s*(import|use|using|require|require_relative|from\s+\S+\s+import)\b` +
		`|^\s*([\w.]+ )?"[^"\s]+"$|=\s*require\(["'][^"']+["']\);?$`)
	bindForm    = pattern.Lazy(`\bimport\b(.*?)(?:\bfrom\b.*)?$|\b(?:const|let|var)\b(.*)=`)
	nameForm    = pattern.Lazy(`\w+|\*`)
	closingForm = pattern.Lazy(`^[\s})\];,]*$|^\s*end$`)
)

// onlyGrew reports whether text was only added: all old lines are still there, in order, with nothing but imports between
// them, and the rest follows. New text must neither import a name that was in use nor contain the name of an old test:
// either could replace the old one.
func onlyGrew(old, now []byte, tests map[string]int) bool {
	before, after := lines(old), lines(now)
	end := len(before)
	for end > 0 && closingForm().MatchString(before[end-1]) { // new tests may be inside the same suite
		end--
	}
	known := words(before)
	var fresh []string
	n := 0
	for _, line := range after {
		if n < len(before) && line == before[n] {
			n++
			continue
		}
		isImport := importForm().MatchString(line)
		if isImport && bindsKnown(line, known) || n < end && !isImport && strings.TrimSpace(line) != "" {
			return false
		}
		fresh = append(fresh, line)
	}
	said := words(fresh)
	for name := range tests {
		if strings.HasPrefix(strings.ToLower(name), "test") && said[name] {
			return false
		}
	}
	return n == len(before)
}

// bindsKnown reports whether the line imports a name that was in use, or everything (*).
func bindsKnown(line string, known map[string]bool) bool {
	for _, m := range bindForm().FindAllStringSubmatch(line, -1) {
		names := nameForm().FindAllString(m[1]+m[2], -1)
		if slices.ContainsFunc(names, func(name string) bool { return name == "*" || known[name] }) {
			return true
		}
	}
	return false
}

// words returns the words of a text that can be names.
func words(text []string) map[string]bool {
	all := map[string]bool{}
	for _, line := range text {
		for _, w := range nameForm().FindAllString(line, -1) {
			all[w] = w != "as" && w != "type"
		}
	}
	return all
}

// lines returns the lines of a text, without blank lines at the end.
func lines(text []byte) []string {
	text = bytes.TrimRight(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), " \t\n")
	if len(text) == 0 {
		return nil
	}
	return strings.Split(string(text), "\n")
}
