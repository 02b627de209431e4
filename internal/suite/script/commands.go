package script

import (
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// command is a part of a text between separators, mostly a simple command.
type command struct {
	text     string
	executed bool // an interpreter may run what it prints: sh reads it from a pipe, or as "$(…)"
}

// words splits a command into words, without quotes.
func (c command) words() []string {
	return strings.FieldsFunc(c.text, func(r rune) bool { return strings.ContainsRune(" \t\r\"'<>=$,", r) })
}

// group is a part of a text in parentheses or backquotes, or the text itself.
type group struct {
	begin    int  // its first command
	pipe     int  // the first command of the present pipe
	piped    bool // the next command reads from the pipe
	first    bool // no word of the present command yet
	runs     bool // the present command runs what follows as a script
	tests    bool // the present command compares what follows
	side     int  // one more than the first command of a substitution that it compares
	executed bool // an interpreter may run what the group prints
}

// scanner splits a text into commands. Its time is linear in the length of the text.
type scanner struct {
	interpreters []string
	found        []command
	groups       []group
	marks        []int // marks[i] changes the number of reasons why commands from i on are executed
	inputs       inputs
}

// commands returns the commands of a text.
func commands(text string, interpreters []string) []command {
	s := scanner{interpreters: interpreters, groups: []group{{first: true}}, marks: []int{0}, inputs: inputs{named: map[string][]input{}}}
	begin, quoted := 0, false // quoted: within backquotes
	for i := 0; i < len(text); i++ {
		c := text[i]
		if !strings.ContainsRune("\n`;&|(){}", rune(c)) {
			continue
		}
		s.end(text[begin:i])
		begin = i + 1
		double := begin < len(text) && text[begin] == c
		switch {
		case c == '|' && !double:
			s.next(true)
		case c == '(':
			s.open(i > 0 && (text[i-1] == '$' || text[i-1] == '<'))
		case c == ')':
			s.close()
		case c == '`' && !quoted:
			s.open(true)
			quoted = true
		case c == '`':
			s.close()
			quoted = false
		case c == '{' || c == '}' || c == '&' && i > 0 && (text[i-1] == '>' || text[i-1] == '|'): // ${…}, 2>&1, |&
		default:
			s.next(false)
		}
		if double && (c == '|' || c == '&') {
			i, begin = i+1, begin+1
		}
	}
	s.end(text[begin:])
	reasons := 0
	for i := range s.found {
		reasons += s.marks[i]
		s.found[i].executed = reasons > 0
	}
	return s.found
}

func (s *scanner) top() *group { return &s.groups[len(s.groups)-1] }

// mark marks the commands from one on, up to another, as executed.
func (s *scanner) mark(from, to int) {
	s.marks[from]++
	s.marks[to]--
}

// end ends a command, or a part of one.
func (s *scanner) end(text string) {
	c, g, at := command{text: text}, s.top(), len(s.found)
	if strings.Contains(text, ">") {
		text = output().ReplaceAllString(text, "")
	}
	words := withoutKeywords(command{text: text}.words())
	s.found, s.marks = append(s.found, c), append(s.marks, 0)
	if g.piped && (readsScript(words, s.interpreters) || readsCompared(words)) {
		s.mark(g.pipe, at)
	}
	s.read(text, words, at)
	if g.first && len(words) > 0 {
		g.tests = slices.Contains([]string{"test", "[", "[["}, words[0])
	}
	g.runs = g.first && len(words) > 0 && runsText(words[0]) || lacksScript(words, s.interpreters) || g.runs && len(words) == 0
	g.first = g.first && len(words) == 0
}

// next begins a command.
func (s *scanner) next(piped bool) {
	g := s.top()
	if !piped {
		g.pipe = len(s.found)
		s.inputs.close(len(s.groups), len(s.found))
	}
	g.piped, g.first, g.runs, g.tests, g.side = piped, true, false, false, 0
}

// open begins a group. What a substitution prints is a script after an interpreter, and in the place of a program.
func (s *scanner) open(substitution bool) {
	g, inner := s.top(), group{begin: len(s.found), pipe: len(s.found), first: true}
	switch {
	case substitution:
		inner.executed = g.runs || g.first
		g.first = false
	case g.piped:
		inner.pipe, inner.piped = g.pipe, true
	}
	s.groups = append(s.groups, inner)
}

// close ends a group.
func (s *scanner) close() {
	g := s.top()
	if len(s.groups) == 1 { // as in the pattern of a case
		s.next(false)
		return
	}
	if g.executed {
		s.mark(g.begin, len(s.found))
	}
	s.inputs.close(len(s.groups), len(s.found))
	s.groups = s.groups[:len(s.groups)-1]
	switch outer := s.top(); {
	case !outer.tests:
	case outer.side == 0:
		outer.side = g.begin + 1
	default: // what two substitutions print is compared
		s.mark(outer.side-1, len(s.found))
	}
}

// output matches the redirection of a command's output.
var output = pattern.Lazy(`\d*>+\s*[^\s<>]*`)

func withoutKeywords(words []string) []string {
	for len(words) > 0 && startsCommand(words[0]) {
		words = words[1:]
	}
	return words
}

// runsText reports whether a program of the shell runs text or a file in the present shell.
func runsText(word string) bool { return slices.Contains([]string{"eval", ".", "source"}, word) }

// readsScript reports whether a command runs its standard input as a script, or each line of it.
func readsScript(words, interpreters []string) bool {
	runs := func(word string) bool {
		return slices.Contains(interpreters, path.Base(word)) || path.Base(word) == "make"
	}
	if slices.ContainsFunc(words, func(word string) bool { return word == "-" || word == "-s" || word == "/dev/stdin" }) {
		return slices.ContainsFunc(words, runs)
	}
	if i := slices.Index(words, "-c"); i > 1 && words[0] == "xargs" && runs(words[i-1]) {
		return true
	}
	return lacksScript(words, interpreters)
}

// readsCompared reports whether a command compares with its standard input.
func readsCompared(words []string) bool {
	if len(words) == 0 {
		return false
	}
	program := path.Base(words[0])
	return slices.Contains(comparers(), program) || strings.HasSuffix(program, "grep") && !onlyReads(words)
}

// comparers returns the programs that compare files.
func comparers() []string { return []string{"diff", "cmp", "comm", "sdiff", "colordiff"} }

// lacksScript reports whether a command ends with an interpreter and its options, so that the script comes from elsewhere.
func lacksScript(words, interpreters []string) bool {
	if slices.Contains(words, "-n") { // sh -n runs nothing
		return false
	}
	for i, word := range slices.Backward(words) {
		value := i > 0 && strings.HasPrefix(words[i-1], "-") && strings.HasSuffix(words[i-1], "o") // -o pipefail
		if !value && !strings.HasPrefix(word, "-") {
			return slices.Contains(interpreters, path.Base(word))
		}
	}
	return false
}
