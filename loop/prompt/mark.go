package prompt

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// mark is a place in a template that is replaced.
type mark struct {
	start, end int // byte offsets of the whole mark
	command    bool
	text       string   // the command
	keys       []string // the key, or the keys in the command, each once
}

const keyExpr = `\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`

var (
	keyName     = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)
	keyMark     = pattern.Lazy(keyExpr)
	markAtStart = pattern.Lazy("^(?:!`[^`]+`|" + keyExpr + ")")
	argInText   = pattern.Lazy(`\bRALPH_ARG_([A-Za-z0-9_]+)`)
)

// marks returns all marks in the template, in order. It looks only at the template, never at a value.
func (p Prompt) marks() []mark {
	var marks []mark
	for end := 0; ; {
		// Trying the expression at every byte would be slow.
		skip := strings.IndexAny(p.Template[end:], "!{")
		if skip < 0 {
			return marks
		}
		start := end + skip
		text := markAtStart().FindString(p.Template[start:])
		end = start + max(len(text), 1)
		switch {
		case text == "", text[0] == '{' && start > 0 && p.Template[start-1] == '$': // ${{ … }} belongs to workflow files
		case text[0] == '!':
			command := text[2 : len(text)-1]
			marks = append(marks, mark{start: start, end: end, command: true, text: command, keys: commandKeys(command)})
		default:
			marks = append(marks, mark{start: start, end: end, keys: keyMark().FindStringSubmatch(text)[1:2]})
		}
	}
}

// commandKeys returns the keys that a command uses, as {{KEY}} or as $RALPH_ARG_KEY.
func commandKeys(command string) []string {
	var keys []string
	for _, pattern := range []*regexp.Regexp{keyMark(), argInText()} {
		for _, m := range pattern.FindAllStringSubmatch(command, -1) {
			if !slices.Contains(keys, m[1]) {
				keys = append(keys, m[1])
			}
		}
	}
	return keys
}
