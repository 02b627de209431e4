package agents

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// flaw is an option an agent refuses, in the form every agent uses.
func flaw(agent, format string, args ...any) error {
	return fmt.Errorf("agent %s: %s", agent, fmt.Sprintf(format, args...))
}

// checkModel refuses what can be no model's name, above all what a CLI would take for a flag.
func checkModel(agent, model string) error {
	if len(model) > 256 || strings.HasPrefix(model, "-") || strings.ContainsFunc(model, odd) {
		return flaw(agent, "--model %q: a model's name has no leading dash, no blanks and at most 256 characters", clip(model, 60))
	}
	return nil
}

// checkChoice refuses a value that is neither empty nor one of the valid ones.
func checkChoice(agent, option, value string, valid []string) error {
	if value == "" || slices.Contains(valid, value) {
		return nil
	}
	return flaw(agent, "%s %q: use one of %s%s", option, clip(value, 60), strings.Join(valid, ", "), suggestion(value, valid))
}

// checkUnused refuses an option that the agent has no use for.
func checkUnused(agent, option, value, mend string) error {
	if value == "" {
		return nil
	}
	return flaw(agent, "%s is not supported; %s", option, mend)
}

// checkArgs refuses extra arguments that cannot be passed, and flags that are ralph's own. Owned maps a flag to the
// option to use instead; "" means that there is none.
func checkArgs(agent string, args []string, owned map[string]string) error {
	for _, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return flaw(agent, "--agent-args %q: an argument cannot contain a NUL byte", clip(arg, 60))
		}
		flag, _, _ := strings.Cut(arg, "=")
		instead, ours := owned[flag]
		switch {
		case !ours:
		case instead == "":
			return flaw(agent, "--agent-args %s: ralph sets this flag itself; leave it out", flag)
		default:
			return flaw(agent, "--agent-args %s: use %s instead", flag, instead)
		}
	}
	return nil
}

// checkEnv refuses settings that are not NAME=value.
func checkEnv(agent string, env []string) error {
	for _, setting := range env {
		name, _, ok := strings.Cut(setting, "=")
		if !ok || name == "" || strings.ContainsFunc(name, odd) || strings.ContainsRune(setting, 0) {
			// The value may be a secret: only the name is shown.
			return flaw(agent, "--agent-env %q: use NAME or NAME=value", clip(name, 60))
		}
	}
	return nil
}

// validSession reports whether a session id can be one: it comes out of an agent's stream and goes into an argv.
func validSession(id string) bool {
	if id == "" || len(id) > 128 || id[0] == '-' || id[0] == '.' {
		return false
	}
	for _, c := range []byte(id) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.') {
			return false
		}
	}
	return true
}

// checkRequest refuses a session or prompt that no CLI could take.
func checkRequest(agent string, r Request) error {
	switch {
	case r.Session != "" && !validSession(r.Session):
		return flaw(agent, "session %q is not a session id", clip(r.Session, 60))
	case r.Fork && r.Session == "":
		return flaw(agent, "there is no session to fork; name one or start afresh")
	case strings.TrimSpace(r.Prompt) == "":
		return flaw(agent, "the prompt is empty; set --prompt or --prompt-file")
	}
	return nil
}

// environ joins settings, one entry a name, the last list winning.
func environ(lists ...[]string) []string {
	var joined []string
	at := map[string]int{}
	for _, list := range lists {
		for _, setting := range list {
			name, _, _ := strings.Cut(setting, "=")
			if i, ok := at[name]; ok {
				joined[i] = setting
				continue
			}
			at[name] = len(joined)
			joined = append(joined, setting)
		}
	}
	return joined
}

// facts makes a run's variables fit for a process: they carry text of outsiders (an issue's title), a NUL byte would
// keep the process from starting, and so would 128 KiB in one setting.
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
