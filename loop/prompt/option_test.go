package prompt

import (
	"context"
	"strings"
	"testing"
)

// A value that a program would take for an option is rejected where it could be one, and only there.
func TestValueIsNoOption(t *testing.T) {
	t.Parallel()
	for template, refused := range map[string]bool{
		"!`git log {{title}}`":                true,
		"!`git log '{{title}}'`":              true,
		"!`echo -- a; git log {{title}}`":     true,
		"!`git log -- {{title}}`":             false,
		"!`git log --grep={{title}}`":         false,
		"!`printf '%s' \"about: {{title}}\"`": false,
		"{{title}}":                           false,
	} {
		p := Prompt{Template: template, Name: "t", Builtin: map[string]string{"title": "--output=/tmp/x"}}
		_, err := p.Render(t.Context(), nil, func(context.Context, string, []string) (string, error) { return "", nil })
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "write -- before it") {
			t.Errorf("%s: %v", template, err)
		}
	}
}
