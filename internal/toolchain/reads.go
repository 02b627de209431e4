package toolchain

import (
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
)

// ReadsOf returns what the setup lines read. ok is false if that is unknown.
func ReadsOf(setup []string) (all ecosystem.Reads, ok bool) { return known().readsOf(setup) }

func (all table) readsOf(setup []string) (sum ecosystem.Reads, ok bool) {
	for _, line := range setup {
		if inner, below := strings.CutPrefix(line, "(cd "); below && strings.HasSuffix(inner, ")") {
			if _, command, one := strings.Cut(strings.TrimSuffix(inner, ")"), " && "); one {
				line = strings.TrimSuffix(strings.TrimPrefix(command, "("), ")")
			}
		}
		reads, ok := all.read(line)
		if !ok {
			return ecosystem.Reads{}, false
		}
		sum.Files = append(sum.Files, reads.Files...)
		sum.Unless = append(sum.Unless, reads.Unless...)
		sum.Code = sum.Code || reads.Code
	}
	return sum, len(setup) > 0
}

// read returns what one line reads.
func (all table) read(line string) (ecosystem.Reads, bool) {
	for _, t := range all.tools() {
		for _, f := range t.Reads {
			if isOf(f, line, slices.ContainsFunc(t.Setup, func(l ecosystem.Line) bool { return l.Shell == line })) {
				return f.Reads, true
			}
		}
	}
	return ecosystem.Reads{}, false
}

// isOf reports whether the line is one of the fetching commands. proposed means that the line is in the tool's Setup.
func isOf(f ecosystem.Fetch, line string, proposed bool) bool {
	has := func(part string) bool { return strings.Contains(line, part) }
	if proposed && slices.ContainsFunc(f.Lines, has) {
		return true
	}
	return !strings.ContainsAny(line, "&|;<>$`()\\\n") && slices.ContainsFunc(f.Commands, func(command string) bool {
		rest, ok := strings.CutPrefix(line, command)
		return ok && (rest == "" || rest[0] == ' ') && !slices.ContainsFunc(strings.Fields(rest), func(word string) bool { return word[0] != '-' })
	})
}

// tools returns the tools of all ecosystems.
func (all table) tools() (tools []ecosystem.Tool) {
	for _, e := range all {
		tools = append(tools, e.Tools...)
	}
	return tools
}
