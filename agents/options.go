package agents

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// Check rejects options that the agent does not support. The error is one line that names the option and how to fix it.
func Check(a Agent, o Options) error {
	d := a.Describe()
	return agentError(a.Name(), cmp.Or(
		checkCommand(d, o.Command), checkModel(d, o.Model),
		checkChoice(d, "effort", o.Effort, d.Efforts), checkChoice(d, "permission mode", o.PermissionMode, d.Modes),
		checkArgs(o.Args, d.Owned), checkEnv(o.Env),
	))
}

// Check rejects options, a session or a prompt that the agent's program does not support.
func (r Request) Check(a Agent) error {
	var err error
	switch {
	case r.Session != "" && a.Describe().IsSessionID == nil:
		err = errors.New("sessions are not supported")
	case r.Session != "" && !a.Describe().CanResume(r.Session):
		err = fmt.Errorf("session %q is not a session id", Clip(r.Session, 60))
	case strings.TrimSpace(r.Prompt) == "":
		err = errors.New("the prompt is empty")
	default:
		return Check(a, r.Options)
	}
	return agentError(a.Name(), err)
}

func agentError(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("agent %s: %w", name, err)
}

// checkCommand accepts a command only for an agent without a program of its own.
func checkCommand(d Description, command []string) error {
	switch {
	case d.Program != "" && len(command) > 0:
		return fmt.Errorf("a command is not supported; the program is %s", d.Program)
	case d.Program == "" && (len(command) == 0 || command[0] == ""):
		return errors.New("no command; name the program and its arguments")
	case slices.ContainsFunc(command, hasNUL):
		return errors.New("command: an argument cannot contain a NUL byte")
	}
	return nil
}

// checkModel rejects invalid model names, above all those that a CLI would take for a flag.
func checkModel(d Description, model string) error {
	switch {
	case model != "" && !d.Models:
		return unsupported(d, "a model")
	case len(model) > 256 || strings.HasPrefix(model, "-") || strings.ContainsFunc(model, isSpaceOrControl):
		return fmt.Errorf("model %q: a model's name has no leading dash, no blanks and at most 256 characters", Clip(model, 60))
	}
	return nil
}

// unsupported returns the error for an option that the agent does not have. The user's own command may have it.
func unsupported(d Description, option string) error {
	if d.Program == "" {
		return fmt.Errorf("%s is not supported; put it into the command", option)
	}
	return fmt.Errorf("%s is not supported; leave it out", option)
}

func checkChoice(d Description, option, value string, valid []string) error {
	switch {
	case value == "" || slices.Contains(valid, value):
		return nil
	case len(valid) == 0:
		return unsupported(d, option)
	}
	return fmt.Errorf("%s %q: use one of %s%s", option, Clip(value, 60), strings.Join(valid, ", "), suggestion(value, valid))
}

// checkArgs rejects extra arguments that cannot be passed, and flags that ralph sets itself.
func checkArgs(args []string, owned map[string]string) error {
	for _, arg := range args {
		flag, _, _ := strings.Cut(arg, "=")
		instead, ours := owned[flag]
		switch {
		case hasNUL(arg):
			return fmt.Errorf("argument %q: an argument cannot contain a NUL byte", Clip(arg, 60))
		case ours && instead == "":
			return fmt.Errorf("argument %s: ralph sets this flag itself; leave it out", flag)
		case ours:
			return fmt.Errorf("argument %s: use the option %s instead", flag, instead)
		}
	}
	return nil
}

// checkEnv rejects settings that are not NAME=value. The error has only the name, since the value may be a secret.
func checkEnv(env []string) error {
	for _, setting := range env {
		name, _, ok := strings.Cut(setting, "=")
		if !ok || name == "" || strings.ContainsFunc(name, isSpaceOrControl) || hasNUL(setting) {
			return fmt.Errorf("environment %q: use NAME=value", Clip(name, 60))
		}
	}
	return nil
}

// Environ returns the environment of an Invocation: the agent's own settings, overridden by Options.Env, overridden by Vars, each
// name once. An issue's title in Vars comes from outsiders: Environ removes NUL bytes and cuts settings at 64 KiB, because either
// would keep the process from starting.
func (r Request) Environ(agentEnv ...string) []string {
	var joined []string
	at := map[string]int{}
	for _, setting := range slices.Concat(agentEnv, r.Options.Env, validVars(r.Vars)) {
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

const maxSession = 128 // maximum bytes of a session ID

var uuid = pattern.Lazy(`^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// UUID reports whether an ID has the form 8-4-4-4-12 of hexadecimal digits.
func UUID(id string) bool { return uuid().MatchString(id) }

// validVars returns variables that are valid in the environment of a process.
func validVars(vars []string) []string {
	const maxVar = 64 << 10
	valid := make([]string, 0, len(vars))
	for _, v := range vars {
		v = strings.ToValidUTF8(strings.ReplaceAll(v, "\x00", ""), "\uFFFD")
		if len(v) > maxVar {
			v = strings.ToValidUTF8(v[:maxVar], "")
		}
		if i := strings.IndexByte(v, '='); i > 0 {
			valid = append(valid, v)
		}
	}
	return valid
}

func isSpaceOrControl(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

func hasNUL(s string) bool { return strings.ContainsRune(s, 0) }
