package prompt

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// mark is a place in a template that is replaced.
type mark struct {
	start, end int // of the whole mark, in bytes
	command    bool
	text       string   // the command
	keys       []string // the key, or those the command uses, each once
}

const keyExpr = `\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`

var (
	keyName   = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)
	keyMark   = pattern.Lazy(keyExpr)
	markHere  = pattern.Lazy("^(?:!`[^`]+`|" + keyExpr + ")")
	argInText = pattern.Lazy(`\bRALPH_ARG_([A-Za-z0-9_]+)`)
)

// marks finds everything in the template that is replaced, in order. It looks at the template only, never at a value.
func (p Prompt) marks() []mark {
	var marks []mark
	for end := 0; ; {
		// The expression alone would be tried at every byte.
		skip := strings.IndexAny(p.Template[end:], "!{")
		if skip < 0 {
			return marks
		}
		start := end + skip
		text := markHere().FindString(p.Template[start:])
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

// commandKeys are the keys a command uses, as {{KEY}} or as $RALPH_ARG_KEY.
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
