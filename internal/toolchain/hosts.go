package toolchain

import (
	"context"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Source describes where the tools of a project fetch from.
type Source struct {
	Hosts   []string // HOST or HOST:PORT
	Folders []string // absolute paths on this host
	// Env are the user's own settings, as NAME=VALUE, which tools in a sandbox cannot read otherwise.
	Env []string
	// Secret are names of settings that contain a password. They are not in Env.
	Secret []string
}

// patience limits the time in which a tool prints a setting.
const patience = 20 * time.Second

// Source asks the tools for their settings. A tool that is missing or gives no answer adds nothing.
func (p Proposal) Source(ctx context.Context, env []string) (s Source) {
	answered := false
	for _, q := range p.asks {
		if q.Fallback && answered {
			continue
		}
		answer := valueOf(env, q.Name)
		own := answer != ""
		if !own {
			answer = run(ctx, slices.Concat(env, p.asked), q.Argv)
		}
		if q.Only && !slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(answer)) {
			continue
		}
		if q.Folders {
			answer = strings.Join(strings.Fields(answer), " ")
			s.Folders = append(s.Folders, foldersIn(answer)...)
		}
		hosts, secret := hostsIn(answer)
		answered = answer != ""
		for _, h := range hosts {
			if !slices.Contains(s.Hosts, h) {
				s.Hosts = append(s.Hosts, h)
			}
		}
		switch {
		case q.Name == "" || answer == "":
		case secret:
			s.Secret = append(s.Secret, q.Name)
		case own || answer != run(ctx, slices.Concat(p.withoutUserSettings(env), p.asked), q.Argv): // not the default, so the user chose it
			s.Env = append(s.Env, q.Name+"="+answer)
		}
		if q.Only {
			break
		}
	}
	return s
}

// foldersIn returns the absolute paths in a setting.
func foldersIn(text string) (folders []string) {
	for word := range strings.FieldsSeq(text) {
		if path := strings.TrimPrefix(word, "file://"); filepath.IsAbs(path) {
			folders = append(folders, filepath.Clean(path))
		}
	}
	return folders
}

// valueOf returns the last value of a variable, or "" if it is not set.
func valueOf(env []string, name string) (value string) {
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, name+"="); ok && name != "" {
			value = v
		}
	}
	return value
}

// withoutUserSettings returns an environment without the user's home and settings, in which tools print their defaults.
func (p Proposal) withoutUserSettings(env []string) []string {
	out := append([]string{"HOME=/nonexistent"}, p.bare...)
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); name == "PATH" || name == "LANG" {
			out = append(out, e)
		}
	}
	return out
}

// run returns the output of a tool, or "" if it is missing or fails. It runs in /: tools read settings, some of which name
// programs, in the folders above their own, and other users could put some into a shared temporary folder.
func run(ctx context.Context, env, argv []string) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out := proc.NewTail(4 << 10)
	exit, err := proc.Run(ctx, proc.Spec{Argv: argv, Dir: "/", Env: env, Stdout: out, Grace: time.Second})
	if err != nil || exit.Code != 0 {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// hostsIn returns the hosts in a setting, and whether it contains a password.
func hostsIn(text string) (hosts []string, secret bool) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",| \t\n", r) }) {
		secret = secret || strings.Contains(word, "@") // even if the rest is not an address
		if !strings.Contains(word, "://") {
			if strings.HasPrefix(word, "/") || strings.HasPrefix(word, ".") || strings.HasPrefix(word, "~") {
				continue // a folder
			}
			word, _, _ = strings.Cut(word, "+") // a checksum database has its key after its name
			word = "https://" + word
		}
		u, err := url.Parse(word)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || !strings.Contains(u.Hostname(), ".") && !strings.Contains(u.Hostname(), ":") &&
			u.Hostname() != "localhost" {
			continue // not a host, such as direct, off, or a key
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
