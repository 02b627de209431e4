package prompt

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func render(t *testing.T, p Prompt) string {
	t.Helper()
	got, err := p.Render(t.Context(), nil, noCommand(t))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func noCommand(t *testing.T) func(context.Context, string, []string) (string, error) {
	return func(_ context.Context, line string, _ []string) (string, error) {
		t.Errorf("a command ran: %q", line)
		return "", nil
	}
}

func TestKeysAreReplaced(t *testing.T) {
	t.Parallel()
	builtin := map[string]string{"branch": "ralph/42", "empty": ""}
	args := map[string]string{"TONE": "calm"}
	for _, tt := range []struct{ template, want string }{
		{"on {{branch}}", "on ralph/42"},
		{"{{ branch }}{{\tTONE\n}}", "ralph/42calm"},
		{"{{branch}}", "ralph/42"},
		{"{{ has space }} {{}} {{1}} {x} {{a-b}}", "{{ has space }} {{}} {{1}} {x} {{a-b}}"},
		{"${{ branch }} ${{ secrets.X }}", "${{ branch }} ${{ secrets.X }}"},
		{"{{{branch}}}", "{ralph/42}"},
		{"a\n{{empty}}\nb", "a\nb"},
		{"a\n{{empty}}.\nb", "a\n.\nb"},
		{"!`` is no command", "!`` is no command"},
		{"!` without its end is none", "!` without its end is none"},
		{"`code` and !x", "`code` and !x"},
	} {
		if got := render(t, Prompt{Template: tt.template, Builtin: builtin, Args: args}); got != tt.want {
			t.Errorf("%q renders to %q, want %q", tt.template, got, tt.want)
		}
	}
}

func TestUnknownKeyNamesItAndTheNearest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ template, want string }{
		{"a\nb {{isue_title}}", "p.md:2: unknown key {{isue_title}}; did you mean {{issue_title}}?"},
		{"{{BRANCH}}", "p.md:1: unknown key {{BRANCH}}; did you mean {{branch}}?"},
		{"{{colour}}", "p.md:1: unknown key {{colour}}; it is neither built in nor a prompt argument"},
		{"!`echo {{colour}}`", "p.md:1: unknown key {{colour}}; it is neither built in nor a prompt argument"},
		{"!`echo \"$RALPH_ARG_colour\"`", "p.md:1: unknown key {{colour}}; it is neither built in nor a prompt argument"},
	} {
		p := Prompt{Name: "p.md", Template: tt.template, Builtin: map[string]string{"branch": "b"}}
		err := p.Check(Keys())
		if err == nil || err.Error() != tt.want {
			t.Errorf("Check(%q) = %v, want %s", tt.template, err, tt.want)
		}
		p.Builtin["issue_title"] = "t"
		if _, err := p.Render(t.Context(), nil, noCommand(t)); err == nil || err.Error() != tt.want {
			t.Errorf("Render(%q) = %v, want %s", tt.template, err, tt.want)
		}
	}
	err := Prompt{Template: "{{issue_title}}"}.Check(nil)
	if err == nil {
		t.Error("a key without a value passes although there is no issue")
	}
}

func TestUserKeyThatShadowsABuiltinIsAnError(t *testing.T) {
	t.Parallel()
	for _, key := range append(Keys(), "from_caller") {
		p := Prompt{Template: "x", Args: map[string]string{key: "v"}, Builtin: map[string]string{"from_caller": ""}}
		if err := p.Check(nil); err == nil || !strings.Contains(err.Error(), "{{"+key+"}}") {
			t.Errorf("Check with argument %s = %v", key, err)
		}
	}
}

func TestTextFromAValueIsNeverExpandedAgain(t *testing.T) {
	t.Parallel()
	hostile := "{{branch}} !`reboot` {{nope}} {{a}}"
	p := Prompt{Template: "{{a}}|{{b}}", Args: map[string]string{"a": hostile}, Builtin: map[string]string{"b": hostile}}
	if got, want := render(t, p), hostile+"|"+hostile; got != want {
		t.Errorf("rendered to %q, want %q", got, want)
	}
	p = Prompt{Template: "!`cat`{{x}}", Args: map[string]string{"x": "`"}}
	got, err := p.Render(t.Context(), nil, func(context.Context, string, []string) (string, error) {
		return "{{x}} !`reboot`\n\n", nil
	})
	if err != nil || got != "{{x}} !`reboot`\n`" {
		t.Errorf("rendered to %q, %v: a command's output is text too, less one newline", got, err)
	}
}

func TestValueCannotFormACommandWithTheTemplate(t *testing.T) {
	t.Parallel()
	p := Prompt{Template: "{{a}}`reboot` !{{b}}", Args: map[string]string{"a": "!", "b": "`reboot`"}}
	if got := render(t, p); got != "!`reboot` !`reboot`" {
		t.Errorf("rendered to %q", got)
	}
}

func TestInlinePromptIsSentVerbatim(t *testing.T) {
	t.Parallel()
	text := "{{branch}} !`reboot` {{nope}}\n"
	if got := render(t, Prompt{Inline: text}); got != text {
		t.Errorf("rendered to %q", got)
	}
	if err := (Prompt{Inline: text, Args: map[string]string{"a": "b"}}).Check(nil); err == nil {
		t.Error("arguments for an inline prompt must be refused")
	}
	for _, p := range []Prompt{{}, {Inline: "a", Template: "b"}} {
		if p.Check(nil) == nil {
			t.Errorf("%+v must be refused", p)
		}
	}
}

func TestCheckReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	err := Prompt{Template: "{{x1}}\n{{x2}}", Args: map[string]string{"branch": "", "a b": ""}}.Check(nil)
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 4 {
		t.Errorf("errors %v, want four", err)
	}
}

// FuzzRender: a value never adds a command, is inserted unchanged, and rendering never panics.
func FuzzRender(f *testing.F) {
	f.Add("x {{a}} !`echo {{a}}` y", "!`reboot` {{a}}")
	f.Add("{{a}}`reboot`", "!")
	f.Add("!`{{a}}", "`")
	f.Add("{{ a }}\n", "")
	f.Fuzz(func(t *testing.T, template, value string) {
		p := Prompt{Template: template, Args: map[string]string{"a": value}}
		var commands []string
		exec := func(_ context.Context, line string, _ []string) (string, error) {
			commands = append(commands, line)
			return "", nil
		}
		if _, err := p.Render(t.Context(), nil, exec); err != nil {
			return
		}
		hostile := commands
		commands = nil
		p.Args["a"] = "harmless"
		if _, err := p.Render(t.Context(), nil, exec); err != nil {
			t.Fatal(err)
		}
		if strings.Join(hostile, "\x00") != strings.Join(commands, "\x00") {
			t.Errorf("the value %q changed the commands: %q, else %q", value, hostile, commands)
		}
	})
}
