package agents

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Check refuses options that the agent does not support, in one line that names the option and how to fix it.
func Check(a Agent, o Options) error {
	c, d := check{a.Name()}, a.Describe()
	if err := c.command(d, o.Command); err != nil {
		return err
	}
	if err := c.model(d, o.Model); err != nil {
		return err
	}
	if err := c.choice(d, "effort", o.Effort, d.Efforts); err != nil {
		return err
	}
	if err := c.choice(d, "permission mode", o.PermissionMode, d.Modes); err != nil {
		return err
	}
	if err := c.args(o.Args, d.Owned); err != nil {
		return err
	}
	return c.env(o.Env)
}

// check is the checks of one agent's options.
type check struct{ agent string }

func (c check) fail(format string, args ...any) error {
	return fmt.Errorf("agent %s: %s", c.agent, fmt.Sprintf(format, args...))
}

// command accepts a program only where the agent has none.
func (c check) command(d Description, command []string) error {
	switch {
	case d.Program != "" && len(command) > 0:
		return c.fail("a command is not supported; the program is %s", d.Program)
	case d.Program == "" && (len(command) == 0 || command[0] == ""):
		return c.fail("no command; name the program and its arguments")
	case slices.ContainsFunc(command, hasNUL):
		return c.fail("command: an argument cannot contain a NUL byte")
	}
	return nil
}

// model refuses what cannot be the name of a model, above all what a CLI would take for a flag.
func (c check) model(d Description, model string) error {
	switch {
	case model != "" && !d.Models:
		return c.unsupported(d, "a model")
	case len(model) > 256 || strings.HasPrefix(model, "-") || strings.ContainsFunc(model, odd):
		return c.fail("model %q: a model's name has no leading dash, no blanks and at most 256 characters", Clip(model, 60))
	}
	return nil
}

// unsupported refuses an option that the agent does not have. The user's own command may have it.
func (c check) unsupported(d Description, option string) error {
	if d.Program == "" {
		return c.fail("%s is not supported; put it into the command", option)
	}
	return c.fail("%s is not supported; leave it out", option)
}

func (c check) choice(d Description, option, value string, valid []string) error {
	switch {
	case value == "" || slices.Contains(valid, value):
		return nil
	case len(valid) == 0:
		return c.unsupported(d, option)
	}
	return c.fail("%s %q: use one of %s%s", option, Clip(value, 60), strings.Join(valid, ", "), suggestion(value, valid))
}

// args refuses extra arguments that cannot be passed, and flags that ralph sets itself.
func (c check) args(args []string, owned map[string]string) error {
	for _, arg := range args {
		if hasNUL(arg) {
			return c.fail("argument %q: an argument cannot contain a NUL byte", Clip(arg, 60))
		}
		flag, _, _ := strings.Cut(arg, "=")
		instead, ours := owned[flag]
		switch {
		case !ours:
		case instead == "":
			return c.fail("argument %s: ralph sets this flag itself; leave it out", flag)
		default:
			return c.fail("argument %s: use the option %s instead", flag, instead)
		}
	}
	return nil
}

// env refuses settings that are not NAME=value.
func (c check) env(env []string) error {
	for _, setting := range env {
		name, _, ok := strings.Cut(setting, "=")
		if !ok || name == "" || strings.ContainsFunc(name, odd) || hasNUL(setting) {
			// The value may be a secret: only the name is shown.
			return c.fail("environment %q: use NAME=value", Clip(name, 60))
		}
	}
	return nil
}

// Check refuses options, a session or a prompt that the agent's program cannot take.
func (r Request) Check(a Agent) error {
	c := check{a.Name()}
	switch {
	case r.Session != "" && a.Describe().Session == nil:
		return c.fail("sessions are not supported")
	case r.Session != "" && !a.Describe().Resumes(r.Session):
		return c.fail("session %q is not a session id", Clip(r.Session, 60))
	case strings.TrimSpace(r.Prompt) == "":
		return c.fail("the prompt is empty")
	}
	return Check(a, r.Options)
}

// Environ is the environment of an Invocation: the agent's own settings, over them Options.Env, over these Vars, each name
// once. An issue's title comes from outsiders: in Vars, NUL bytes and what exceeds 64 KiB in one setting, which would keep
// the process from starting, are left out.
func (r Request) Environ(own ...string) []string {
	var joined []string
	at := map[string]int{}
	for _, setting := range slices.Concat(own, r.Options.Env, facts(r.Vars)) {
		name, _, _ := strings.Cut(setting, "=")
		if i, ok := at[name]; ok {
			joined[i] = setting
			continue
		}
		at[name] = len(joined)
		joined = append(joined, setting)
	}
	return joined
}

const maxSession = 128 // bytes of a session id

// UUID reports the form 8-4-4-4-12 of hexadecimal digits.
func UUID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i, c := range []byte(id) {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return false
			}
		}
	}
	return true
}

// facts makes variables fit for a process.
func facts(vars []string) []string {
	const most = 64 << 10
	fit := make([]string, 0, len(vars))
	for _, v := range vars {
		v = strings.ToValidUTF8(strings.ReplaceAll(v, "\x00", ""), "\uFFFD")
		if len(v) > most {
			v = strings.ToValidUTF8(v[:most], "")
		}
		if i := strings.IndexByte(v, '='); i > 0 {
			fit = append(fit, v)
		}
	}
	return fit
}

func odd(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }
