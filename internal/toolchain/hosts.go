package toolchain

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
)

// ask is how a tool is asked where it fetches from. The answer is addresses or host names, with commas, bars or spaces
// between them.
type ask struct {
	argv []string
	// name is the variable by which the answer reaches the tool in a sandbox, which has none of the user's settings.
	name string
	// fallback says that the ask before has no answer then: the tool's built-in one is asked for.
	fallback bool
}

func npmRegistry() ask {
	return ask{argv: []string{"npm", "config", "get", "registry"}, name: "npm_config_registry"}
}

func pipAsks(name string) []ask {
	return []ask{
		{argv: []string{"python3", "-m", "pip", "config", "get", "global.index-url"}, name: name},
		{argv: []string{"python3", "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url, PyPI.file_storage_domain)"}, fallback: true},
	}
}

// Source is where the tools of a project fetch from.
type Source struct {
	Hosts []string // HOST or HOST:PORT
	// Env are the user's own settings, NAME=VALUE: in a sandbox the tools do not see them.
	Env []string
	// Secret are names of settings that hold a password, and are not part of Env.
	Secret []string
}

// patience is how long a tool may take to print a setting.
const patience = 20 * time.Second

// Source asks the tools. A tool that is not there, or cannot say, adds nothing.
func (p Proposal) Source(ctx context.Context, env []string) (s Source) {
	answered := false
	for _, q := range p.asks {
		if q.fallback && answered {
			continue
		}
		answer := valueOf(env, q.name)
		own := answer != ""
		if !own {
			answer = run(ctx, env, q.argv)
		}
		hosts, secret := hostsIn(answer)
		answered = answer != ""
		for _, h := range hosts {
			if !slices.Contains(s.Hosts, h) {
				s.Hosts = append(s.Hosts, h)
			}
		}
		switch {
		case q.name == "" || answer == "":
		case secret:
			s.Secret = append(s.Secret, q.name)
		case own || answer != run(ctx, bare(env), q.argv): // the user's own choice
			s.Env = append(s.Env, q.name+"="+answer)
		}
	}
	return s
}

// valueOf is the last value of a variable; empty: it is not set.
func valueOf(env []string, name string) (value string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok && name != "" {
			value = v
		}
	}
	return value
}

// bare is an environment without the user's home and settings, in which tools answer with what they were built with.
func bare(env []string) []string {
	out := []string{"HOME=/nonexistent", "GOENV=off", "npm_config_userconfig=/nonexistent/user", "npm_config_globalconfig=/nonexistent/global"}
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); name == "PATH" || name == "LANG" {
			out = append(out, e)
		}
	}
	return out
}

// run returns what a tool prints; nothing when it is not there or fails. It runs in /: tools obey settings, some of them programs,
// in the folders above theirs, and whoever shares a temporary folder can put some there.
func run(ctx context.Context, env, argv []string) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out := proc.NewTail(4 << 10)
	exit, err := proc.Run(ctx, proc.Spec{
		Argv: argv, Dir: "/", Stdout: out, Grace: time.Second,
		Env: append(slices.Clone(env), "GOTOOLCHAIN=local", "NO_UPDATE_NOTIFIER=1", "PIP_DISABLE_PIP_VERSION_CHECK=1"),
	})
	if err != nil || exit.Code != 0 {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// hostsIn finds the hosts in a setting, and whether it holds a password.
func hostsIn(text string) (hosts []string, secret bool) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",| \t\n", r) }) {
		secret = secret || strings.Contains(word, "@") // also where the address is none to us
		if !strings.Contains(word, "://") {
			word, _, _ = strings.Cut(word, "+") // a checksum database has its key after its name
			word = "https://" + word
		}
		u, err := url.Parse(word)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || !strings.Contains(u.Hostname(), ".") && !strings.Contains(u.Hostname(), ":") &&
			u.Hostname() != "localhost" {
			continue // such as direct, off, or a key after a name
		}
		host := u.Hostname()
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if port := u.Port(); port != "" {
			host += ":" + port
		} else if strings.HasPrefix(host, "[") {
			host = u.Hostname()
		}
		hosts = append(hosts, host)
	}
	return hosts, secret
}
