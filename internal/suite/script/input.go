package script

import (
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// inputs are the variables of a text that get their values from other commands, or from files.
type inputs struct {
	named map[string][]input
	open  []input // their commands have not ended
	loops int     // the number of present loops
	runs  int     // how many of these, the outer ones, run a value
}

// input has the commands that give variables their values.
type input struct {
	names    []string
	from, to int
	level    int // the number of groups around it
}

// close ends the commands of inputs that are open in a group.
func (i *inputs) close(level, to int) {
	for len(i.open) > 0 && i.open[len(i.open)-1].level >= level {
		in := i.open[len(i.open)-1]
		in.to, i.open = to, i.open[:len(i.open)-1]
		i.add(in)
	}
}

func (i *inputs) add(in input) {
	for _, name := range in.names {
		i.named[name] = append(i.named[name], in)
	}
}

// variable matches the use of a variable, and assigned the assignment of what a command prints.
var (
	variable = pattern.Lazy(`\$\{?(\w+)`)
	assigned = pattern.Lazy("(\\w+)=[\"']?\\$?$")
)

// read notes the variables that a command sets, and marks where the values of those come from that it runs.
func (s *scanner) read(text string, words []string, at int) {
	i, level := &s.inputs, len(s.groups)
	if fields := strings.Fields(text); len(fields) > 0 && fields[0] == "do" {
		i.loops++
	}
	before, _, uses := strings.Cut(text, "$")
	if first := withoutKeywords(command{text: before}.words()); uses && (len(first) == 0 || runsText(first[0]) || lacksScript(first, s.interpreters)) {
		for _, match := range variable().FindAllStringSubmatch(text, -1) {
			for _, in := range i.named[match[1]] {
				s.mark(in.from, in.to)
				i.runs = i.loops
			}
			delete(i.named, match[1])
		}
	}
	var match []string
	if text = strings.TrimSpace(text); uses || strings.HasSuffix(text, "=") || strings.HasSuffix(text, "\"") {
		match = assigned().FindStringSubmatch(text)
	}
	switch {
	case match != nil:
		i.open = append(i.open, input{names: match[1:], from: at, level: level})
	case len(words) > 1 && words[0] == "for":
		i.open = append(i.open, input{names: words[1:2], from: at + 1, level: level})
	case len(words) > 0 && slices.Contains([]string{"read", "mapfile", "readarray"}, words[0]):
		i.add(input{names: words[1:], from: s.top().pipe, to: at + 1})
	case len(words) > 0 && words[0] == "done" && i.loops > 0:
		if i.runs == i.loops {
			s.mark(at, at+1)
		}
		i.loops--
		i.runs = min(i.runs, i.loops)
	}
}
