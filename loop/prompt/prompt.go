// Package prompt renders the prompt for an agent: templates, their values, and the output of commands in them.
//
// The author of a template is trusted, its values are not: text of an issue never becomes a mark, a command or an option of a
// command. The package starts no process itself; see [Exec]. Everything here is safe for concurrent use, as long as nobody
// changes a Prompt's maps.
package prompt

import (
	"cmp"
	"context"
	_ "embed" // for the default template
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/nearest"
	"github.com/ralph-pool/ralph/internal/neutral"
)

//go:embed default.md
var defaultText string

// Default returns the template for an issue if the user has none. Package loop does not set the values of the issue and the branch:
// without package pool, set base, branch and the Keys of the issue, such as issue_title, in Prompt.Builtin.
func Default() string { return defaultText }

// Exec runs a command line of a template with `sh -c`, with env (KEY=VALUE) added to its environment, and returns its standard
// output. It must run it where the agent works: in the sandbox.
type Exec func(ctx context.Context, line string, env []string) (string, error)

// Prompt is the text for the agent. Exactly one of Inline and Template is set.
//
// A template is text with two kinds of marks. {{KEY}} (a letter or '_', then letters, digits and '_'; blanks inside the braces
// are allowed) is replaced by a value, and !`command` by the command's output. Everything else stays as it is: other text in
// braces, ${{…}} of workflow files, a "!`" without its end. A line that contains only a {{KEY}} with an empty value is removed.
// All marks are found in the template before any value is inserted, so that text from a value is never interpreted.
//
// A {{KEY}} inside a command is passed to it as the environment variable RALPH_ARG_KEY. In the command's text it becomes a
// quoted reference to that variable, which fits the quotes around it and keeps the value one word. A shell never interprets the
// result of such a reference as a program, so no value can become a command. A {{KEY}} is rejected where a shell would
// interpret the value again or use it in arithmetic, and where it would name the program to run; a script in single quotes may
// still use "$RALPH_ARG_KEY".
type Prompt struct {
	Inline   string            // sent unchanged
	Template string            // {{KEY}} and !`command` are replaced
	Name     string            // name of the template in errors: a file name
	Args     map[string]string // the user's own keys; shadowing a built-in key is an error
	Builtin  map[string]string // values of Keys that do not change between iterations, and the caller's own keys
}

// issueKey is the key of the whole issue as one block of data. Its value is derived from other keys.
const issueKey = "issue"

// Keys returns, sorted, all keys to which ralph gives values in a run that works an issue. A run without an issue has fewer. No
// argument may have one of these names.
func Keys() []string {
	return []string{
		"attempt", "base", "branch", "feedback", "gate", issueKey, "issue_body", "issue_comments", "issue_id", "issue_key", "issue_labels",
		"issue_title", "issue_url", "iteration", "max_iterations", "signal",
	}
}

// Check returns all errors in the prompt before anything starts, joined: unknown keys, arguments that shadow a built-in key,
// commands that cannot be made safe. given has the keys of the vars that Render will get.
func (p Prompt) Check(given []string) error {
	if (p.Inline == "") == (p.Template == "") {
		return errors.New("give exactly one of an inline prompt and a prompt template")
	}
	if p.Inline != "" {
		if len(p.Args) > 0 {
			return errors.New("prompt arguments need a template; an inline prompt is sent as it is")
		}
		return nil
	}
	var errs []error
	all := slices.Concat([]string{issueKey}, given, slices.Collect(maps.Keys(p.Builtin)))
	reserved := slices.Concat(all, Keys())
	for _, name := range slices.Sorted(maps.Keys(p.Args)) {
		switch {
		case slices.Contains(reserved, name):
			errs = append(errs, fmt.Errorf("prompt argument %s: there is a built-in {{%[1]s}}; choose another name", name))
		case !keyName().MatchString(name):
			errs = append(errs, fmt.Errorf("prompt argument %q: use letters, digits and '_' only", name))
		}
		all = append(all, name)
	}
	for _, m := range p.marks() {
		errs = append(errs, p.unknownKeyError(m, all))
		if m.command {
			if err := checkCommand(m.text); err != nil {
				errs = append(errs, p.errorAt(m, err))
			}
		}
	}
	return errors.Join(errs...)
}

// Unused returns the user's arguments that the template does not use, sorted.
func (p Prompt) Unused() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(p.Args)), p.Uses)
}

// Render returns the text to send. vars are built-in values of this iteration, such as those of the loop's Config.PromptVars, and
// override Builtin. exec runs the template's commands; nil: they are shown, not run. The error is Check's, or that of the first
// failed command.
func (p Prompt) Render(ctx context.Context, vars map[string]string, exec Exec) (string, error) {
	if err := p.Check(slices.Collect(maps.Keys(vars))); err != nil {
		return "", err
	}
	if p.Inline != "" {
		return p.Inline, nil
	}
	values := map[string]string{}
	maps.Copy(values, p.Args)
	maps.Copy(values, p.Builtin)
	if _, given := values[issueKey]; !given {
		values[issueKey] = issueSection(p.Builtin)
	}
	maps.Copy(values, vars)

	var out strings.Builder
	pos := 0
	for _, m := range p.marks() {
		out.WriteString(p.Template[pos:m.start])
		pos = m.end
		switch {
		case !m.command:
			value := values[m.keys[0]]
			if value == "" && p.onOwnLine(m) {
				pos++ // with the end of its line
			}
			out.WriteString(value)
		case exec == nil:
			out.WriteString(p.Template[m.start:m.end])
		default:
			text, err := p.run(ctx, m, values, exec)
			if err != nil {
				return "", p.errorAt(m, err)
			}
			out.WriteString(text)
		}
	}
	out.WriteString(p.Template[pos:])
	return out.String(), nil
}

// run returns a command's output without one trailing newline.
func (p Prompt) run(ctx context.Context, m mark, values map[string]string, exec Exec) (string, error) {
	env, err := commandEnv(m, values)
	if err != nil {
		return "", err
	}
	out, err := exec(ctx, commandLine(m.text), env)
	if err != nil {
		return "", fmt.Errorf("!`%s`: %w", neutral.Excerpt(m.text, 100), err)
	}
	return strings.TrimSuffix(out, "\n"), nil
}

// onOwnLine reports whether a mark is alone on its line.
func (p Prompt) onOwnLine(m mark) bool {
	before := m.start == 0 || p.Template[m.start-1] == '\n'
	return before && m.end < len(p.Template) && p.Template[m.end] == '\n'
}

// Uses reports whether the template has the key, also inside a command.
func (p Prompt) Uses(key string) bool {
	return slices.ContainsFunc(p.marks(), func(m mark) bool { return slices.Contains(m.keys, key) })
}

// Mentions reports whether the prompt, or a value that the template uses outside of commands, contains text.
func (p Prompt) Mentions(text string) bool {
	if strings.Contains(p.Inline, text) || strings.Contains(p.Template, text) {
		return true
	}
	for _, m := range p.marks() {
		if !m.command && strings.Contains(p.Args[m.keys[0]]+"\n"+p.Builtin[m.keys[0]], text) {
			return true
		}
	}
	return false
}

// unknownKeyError returns an error for the first key of a mark that has no value, with the nearest known key.
func (p Prompt) unknownKeyError(m mark, known []string) error {
	for _, key := range m.keys {
		if slices.Contains(known, key) {
			continue
		}
		err := fmt.Errorf("unknown key {{%s}}; it is neither built in nor a prompt argument", key)
		if near := nearest.To(key, known); near != "" {
			err = fmt.Errorf("unknown key {{%s}}; did you mean {{%s}}?", key, near)
		}
		return p.errorAt(m, err)
	}
	return nil
}

func (p Prompt) errorAt(m mark, err error) error {
	return fmt.Errorf("%s:%d: %w", cmp.Or(p.Name, "prompt"), 1+strings.Count(p.Template[:m.start], "\n"), err)
}
