package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/internal/pattern"
)

const (
	argPrefix = "RALPH_ARG_"
	argLimit  = 120 << 10 // maximum bytes of one environment variable; systems allow 128 KiB
)

// runsValue matches constructs that could run a value as code: arithmetic (in which bash runs commands in array subscripts), eval
// and the like, the script of a shell or interpreter, and programs that start the program in their arguments.
var runsValue = pattern.Lazy(
	`\(\(|\$\[|\[\[|<<|\$\{[^}]*(?:\{\{|[\[:])|(?:^|[;&|(\n])\s*\.\s|-(?:exec|ok)(?:dir)?\s|` +
		`(?:^|[\s;&|(/'"])(?:eval|let|declare|typeset|export|alias|trap|source|(?:ba|da|z|k|mk|a|fi|c|tc)?sh|su|ssh|xargs|` +
		`env|exec|command|builtin|nohup|sudo|doas|nice|timeout|stdbuf|setsid|watch|parallel|flock|busybox|` +
		`perl|python[0-9.]*|ruby|node|awk|gawk|mawk|sed|make)(?:[\s'"]|$)`)

// beforeProgram matches text after which the next word is a program name: a separator or keyword, followed at most by
// assignments, redirections and words that may expand to nothing.
var beforeProgram = pattern.Lazy(
	`(?:^|[;&|({!\n]|(?:^|[\s;])(?:then|do|else|elif|if|while|until|time|[^\s$(;]*\))\s)\s*` +
		`(?:\w+=\S*\s+|\d*[<>]+[&|]?\s*\S+\s+|\$\([^)]*\)\s+|"?\$\S+\s+)*(?:"?\$\S*)?$`)

// quoting is the quoting state of a shell at a place in a command line.
type quoting int

const (
	bare quoting = iota
	single
	double
)

// checkCommand rejects a {{KEY}} whose value could become more than a word. In doubt it rejects.
func checkCommand(command string) error {
	at := keyMark().FindAllStringIndex(command, -1)
	if len(at) == 0 {
		return nil
	}
	name := keyMark().FindStringSubmatch(command)[1]
	if m := runsValue().FindString(command); m != "" {
		return fmt.Errorf("!`%s`: {{%s}} is not allowed in a command with %q, which may run its value; "+
			"say \"$%s%[2]s\" inside a single-quoted script instead", neutral.Excerpt(command, 100), name, neutral.Excerpt(m, 20), argPrefix)
	}
	var q quoteScanner
	pos := 0
	for _, m := range at {
		q.read(command[pos:m[0]])
		pos = m[1]
		switch {
		case q.escaped || strings.HasSuffix(command[:m[0]], "$"):
			return fmt.Errorf("!`%s`: {{%s}} after %q is not allowed; put a blank or quotes before it",
				neutral.Excerpt(command, 100), name, command[m[0]-1:m[0]])
		case q.substitution:
			return fmt.Errorf("!`%s`: {{%s}} in $(…) inside double quotes is not allowed; leave the double quotes out",
				neutral.Excerpt(command, 100), name)
		case beforeProgram().MatchString(strings.TrimRight(command[:m[0]], `'"`)):
			return fmt.Errorf("!`%s`: {{%s}} would name the program to run; write the program's name",
				neutral.Excerpt(command, 100), name)
		}
	}
	return nil
}

// commandLine replaces each {{KEY}} by a reference to its variable, in quotes that fit the surrounding ones. Even if it misjudges
// the quotes (an apostrophe in a comment), every form is a plain reference or plain text to the shell, and never a program.
func commandLine(command string) string {
	var out strings.Builder
	var q quoteScanner
	pos := 0
	for _, m := range keyMark().FindAllStringSubmatchIndex(command, -1) {
		q.read(command[pos:m[0]])
		out.WriteString(command[pos:m[0]])
		pos = m[1]
		reference := "${" + argPrefix + command[m[2]:m[3]] + "}"
		switch q.state {
		case double:
			out.WriteString(reference)
		case single:
			out.WriteString(`'"` + reference + `"'`)
		default:
			out.WriteString(`"` + reference + `"`)
		}
	}
	return out.String() + command[pos:]
}

// quoteScanner tracks a shell's quotes through a command line.
type quoteScanner struct {
	state        quoting
	escaped      bool // the next byte is literal
	substitution bool // $( was opened inside the double quotes
}

func (s *quoteScanner) read(text string) {
	for i := range len(text) {
		c := text[i]
		switch {
		case s.escaped:
			s.escaped = false
		case s.state == single:
			if c == '\'' {
				s.state = bare
			}
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.substitution = false
			if s.state == double {
				s.state = bare
			} else {
				s.state = double
			}
		case c == '\'' && s.state == bare:
			s.state = single
		case c == '(' && s.state == double && i > 0 && text[i-1] == '$':
			s.substitution = true
		}
	}
}

// optionKeys returns the keys at the beginning of a word that has no -- before it: there a program would take a value with a
// leading dash for an option.
func optionKeys(command string) map[string]bool {
	keys := map[string]bool{}
	var q quoteScanner
	pos := 0
	for _, m := range keyMark().FindAllStringSubmatchIndex(command, -1) {
		q.read(command[pos:m[0]])
		pos = m[1]
		before := command[:m[0]]
		if i := strings.LastIndexAny(before, ";&|\n"); i >= 0 {
			before = before[i+1:]
		}
		word := strings.TrimRight(before, `'"`)
		begins := word == "" || strings.ContainsAny(word[len(word)-1:], " \t(")
		if q.state != bare && word == before {
			begins = false // inside a quoted word
		}
		ended := slices.Contains(strings.Fields(word), "--")
		if begins && !ended {
			keys[command[m[2]:m[3]]] = true
		}
	}
	return keys
}

// commandEnv returns the environment variables with a command's values.
func commandEnv(m mark, values map[string]string) ([]string, error) {
	option := optionKeys(m.text)
	env := make([]string, 0, len(m.keys))
	for _, key := range m.keys {
		value := strings.ReplaceAll(values[key], "\x00", "")
		if option[key] && strings.HasPrefix(value, "-") {
			return nil, fmt.Errorf("the value of {{%s}} begins with a dash, "+
				"which the program would read as an option; write -- before it", key)
		}
		if len(value) > argLimit {
			return nil, fmt.Errorf("{{%s}} has %d bytes, too many for a command (%d); use it outside of commands",
				key, len(value), argLimit)
		}
		env = append(env, argPrefix+key+"="+value)
	}
	return env, nil
}
