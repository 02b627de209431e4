package prompt

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// hostile returns values that would run `touch HIT` if any shell interpreted them as a program.
func hostile() []string {
	return []string{
		"$(touch HIT)", "`touch HIT`", "; touch HIT", "\"; touch HIT; \"", "'; touch HIT; '", "\n touch HIT\n",
		"| touch HIT", "&& touch HIT #", "'\"$(touch HIT)\"'", "\\\"; touch HIT; \\\"", "${x:-$(touch HIT)}",
		"a[$(touch HIT)]", "x) touch HIT;;", "!`touch HIT`", "-rf ~", "* ?", "$RALPH_ARG_v", "\\", "\\'; touch HIT #",
		"EOF\ntouch HIT\nEOF", "}; touch HIT; {",
	}
}

// sh runs a prompt's commands with a real shell, in a folder.
func sh(t *testing.T, dir string) func(context.Context, string, []string) (string, error) {
	return func(ctx context.Context, line string, env []string) (string, error) {
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Dir, cmd.Env = dir, append([]string{"PATH=" + os.Getenv("PATH")}, env...)
		out, err := cmd.Output()
		return string(out), err
	}
}

func TestValuesAreDataInARealShell(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		command string
		exact   bool // prints "<VALUE>" and nothing else
	}{
		{`printf '<%s>' {{v}}`, true},
		{`printf '<%s>' "{{v}}"`, true},
		{`printf '<%s>' '{{v}}'`, true},
		{`printf '%s' "<{{ v }}>"`, true},
		{`printf '%s' '<{{v}}>'`, true},
		{`printf '%s%s' '<'{{v}} ">"`, true},
		{`printf '<%s>' "$RALPH_ARG_v"`, true},
		{`sh -c 'printf "<%s>" "$RALPH_ARG_v"'`, true},
		{`eval 'printf "<%s>" "$RALPH_ARG_v"'`, true},
		{`x={{v}}; printf '<%s>' "$x"`, true},
		{`for x in {{v}}; do printf '<%s>' "$x"; done`, true},
		{`case {{v}} in *) printf '<%s>' {{v}};; esac`, true},
		{`printf '<%s>' "$(printf '%s' "$RALPH_ARG_v"; echo .)" | tr -d '\n' >/dev/null; printf '<%s>' {{v}}`, true},
		{"# don't worry\nprintf '<%s>' {{v}}", false}, // the apostrophe misleads the quote scanner, not the shell
		{"printf '<%s>' a #' {{v}}\nprintf '<%s>' \"{{v}}\"", false},
		{`printf "\"" ; printf '<%s>' {{v}}`, false},
		{`printf '<%s>' $(printf %s {{v}})`, false},
	} {
		for _, value := range hostile() {
			dir := t.TempDir()
			p := Prompt{Template: "!`" + tt.command + "`", Args: map[string]string{"v": value}}
			got, err := p.Render(t.Context(), nil, sh(t, dir))
			if strings.HasPrefix(value, "-") && optionKeys(tt.command)["v"] {
				if err == nil {
					t.Errorf("%s with %q is not refused", tt.command, value)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s with %q: %v", tt.command, value, err)
			}
			if want := strings.TrimSuffix("<"+value+">", "\n"); tt.exact && got != want {
				t.Errorf("%s prints %q, want %q", tt.command, got, want)
			}
			if _, err := os.Stat(filepath.Join(dir, "HIT")); err == nil {
				t.Errorf("%s ran the value %q", tt.command, value)
			}
		}
	}
}

func TestCommandsThatCannotBeMadeSafeAreRefused(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		`eval echo {{v}}`, `sh -c "echo {{v}}"`, `bash -c 'echo {{v}}'`, `echo hi; eval "x={{v}}"`, `/bin/sh -c {{v}}`,
		`echo $(({{v}}))`, `echo $((1 + {{v}}))`, `[[ {{v}} -eq 1 ]]`, `((x={{v}}))`, `echo $[{{v}}]`, `let x={{v}}`,
		"cat <<EOF\n{{v}}\nEOF", `echo {{v}} | xargs sh`, `awk "{{v}}"`, `sed "s/x/{{v}}/"`, `. {{v}}`, `echo ${x:-{{v}}}`,
		`{{v}}`, `"{{v}}" x`, `echo a; {{v}}`, `echo a | {{v}}`, `X=1 {{v}}`, `if {{v}}; then :; fi`, "echo a\n{{v}}", `exec {{v}}`,
		`( {{v}} )`, `$({{v}})`, `! {{v}}`, `$(true) {{v}}`, `"$@" {{v}}`, `$*{{v}}`, `$x {{v}}`, `>f {{v}}`, `2>&1 {{v}}`, `case a in a) {{v}};; esac`,
		`nice -n 5 {{v}}`, `find . -exec {{v}} \;`, `echo \{{v}}`, `echo ${{v}}`, `echo "$(echo {{v}})"`, `trap {{v}} EXIT`, `make {{v}}`,
	} {
		p := Prompt{Template: "a\n!`" + command + "`", Name: "p.md", Args: map[string]string{"v": "x"}}
		if err := p.Check(nil); err == nil || !strings.HasPrefix(err.Error(), "p.md:2: !`") {
			t.Errorf("%s: %v, want a refusal", command, err)
		}
	}
	for _, command := range []string{
		`git log --grep {{v}} -- .`, `grep -rn {{v}} .`, `echo {{v}} && ls`, `find . -name {{v}}`, `ls {{v}}/ 2>&1`, `eval ls`,
		`test {{v}} = x || echo {{v}}`, `git show {{v}}:file | head -n 5`,
	} {
		p := Prompt{Template: "!`" + command + "`", Args: map[string]string{"v": "x"}}
		if err := p.Check(nil); err != nil {
			t.Errorf("%s is refused: %v", command, err)
		}
	}
}

func TestCommandArgumentsAreBounded(t *testing.T) {
	t.Parallel()
	p := Prompt{Template: "!`echo {{v}}`", Args: map[string]string{"v": strings.Repeat("x", argLimit+1)}}
	if _, err := p.Render(t.Context(), nil, noCommand(t)); err == nil || !strings.Contains(err.Error(), "too many for a command") {
		t.Errorf("error %v", err)
	}
}

// FuzzShell: a command of any form executes neither a value as program text nor a program named by a value. The commands are
// composed of harmless words.
func FuzzShell(f *testing.F) {
	words := []string{
		"{{v}}", " ", "'", `"`, "\\", "$", "(", ")", ";", "|", "&", "\n", "#", "{", "}", "echo ", "x=", "$x", "$(", "if ", "then ",
		"; fi", "a", " {{v}}", "=", "!", "case ", " in ", ";;", " esac", "for x in ", "; do ", "; done", "[ ", " ]", "~", "*", "-",
	}
	bin := f.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "HIT"), []byte("#!/bin/sh\n: >HIT\n"), 0o755); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{15, 3, 0, 3}, uint8(0))
	f.Add([]byte{15, 2, 0, 2, 8, 15, 0}, uint8(5))
	f.Add([]byte{12, 2, 11, 15, 0}, uint8(21))
	f.Add([]byte{15, 3, 18, 15, 0, 7, 3}, uint8(8))
	values := append(hostile(), "HIT")
	f.Fuzz(func(t *testing.T, shape []byte, pick uint8) {
		var command strings.Builder
		for _, b := range shape[:min(len(shape), 24)] {
			command.WriteString(words[int(b)%len(words)])
		}
		p := Prompt{Template: "!`" + command.String() + "`", Args: map[string]string{"v": values[int(pick)%len(values)]}}
		dir := t.TempDir()
		run := sh(t, dir)
		_, _ = p.Render(t.Context(), nil, func(ctx context.Context, line string, env []string) (string, error) {
			ctx, stop := context.WithTimeout(ctx, 5*time.Second)
			defer stop()
			return run(ctx, line, append(env, "PATH="+bin+":"+os.Getenv("PATH")))
		})
		if _, err := os.Stat(filepath.Join(dir, "HIT")); err == nil {
			t.Errorf("%q ran the value %q", command.String(), p.Args["v"])
		}
	})
}

// FuzzCommand: whatever the command around a key and whatever the value, the value is never part of the shell's command line.
func FuzzCommand(f *testing.F) {
	for _, v := range hostile() {
		f.Add(`echo "a`, `b" 'c`, v)
	}
	f.Fuzz(func(t *testing.T, before, after, value string) {
		command := before + "{{v}}" + after
		if strings.Contains(command, "`") || checkCommand(command) != nil {
			return
		}
		line := commandLine(command)
		for _, form := range []string{`"${RALPH_ARG_v}"`, `${RALPH_ARG_v}`, `'"${RALPH_ARG_v}"'`} {
			if line == before+form+after || strings.Contains(before+after, "{{") {
				return
			}
		}
		t.Errorf("%q becomes %q", command, line)
	})
}
