package prompt

import (
	"regexp"
	"slices"

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
	anyMark   = pattern.Lazy("!`[^`]+`|" + keyExpr)
	argInText = pattern.Lazy(`\bRALPH_ARG_([A-Za-z0-9_]+)`)
)

// marks finds everything in the template that is replaced, in order. It looks at the template only, never at a value.
func (p Prompt) marks() []mark {
	var marks []mark
	for _, at := range anyMark().FindAllStringIndex(p.Template, -1) {
		text := p.Template[at[0]:at[1]]
		if text[0] == '!' {
			command := text[2 : len(text)-1]
			marks = append(marks, mark{start: at[0], end: at[1], command: true, text: command, keys: commandKeys(command)})
			continue
		}
		if at[0] > 0 && p.Template[at[0]-1] == '$' {
			continue // ${{ … }} belongs to workflow files
		}
		marks = append(marks, mark{start: at[0], end: at[1], keys: keyMark().FindStringSubmatch(text)[1:2]})
	}
	return marks
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
