package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Login describes how an agent logs in to its model service.
type Login struct {
	// Keys are the variables that may hold a credential, in the order in which the program looks for them.
	Keys []Key
	// SecretVars are further variables with secrets.
	SecretVars []string
	// UnsupportedVars are variables that make the program log in to services where ralph cannot add the credential.
	UnsupportedVars []string
	// Dir and File locate the program's own login: File below Dir in the user's home, or below the folder in DirEnv.
	Dir, DirEnv, File string
	// Read reads the credential from that file.
	Read func(path string) (Token, error)
	Hint string // how the user logs in
}

// Key is a variable that holds a credential.
type Key struct {
	Env string
	// Header and Format are for the HTTP request; empty: "Authorization", "Bearer %s".
	Header, Format string
}

// Token is the credential in an agent's own login file.
type Token struct {
	Secret   string
	Kind     string // kind of login; another kind needs another Upstream
	Upstream string // service for this kind; empty: the agent's usual one
	Account  string // account that the agent has to name in its requests
	Env      string // variable for the placeholder
}

// Endpoint is a model service that the agent can reach through a proxy on loopback. Ralph adds the credential to each request
// behind the proxy; the agent gets a placeholder. Such an agent needs no other host.
type Endpoint struct {
	Name        string // such as "anthropic"
	Upstream    string // URL of the real service
	UpstreamEnv string // variable with which users replace Upstream
	// Routes are the requests that the agent makes; with the credential others would be possible.
	Routes []Route
	Models ModelNames
	// ProxySettings returns the settings for Options.Env and the arguments for Options.Args that direct the agent to this URL.
	ProxySettings func(s Service, url, placeholder string) (env, args []string)
}

// Route is a method and a path; "*" at the end of the path matches any rest.
type Route struct{ Method, Path string }

// Service is a model service with a user's credential for it.
type Service struct {
	Name, Upstream string
	Header, Format string // for the credential, as in Key
	// Secret returns the credential. It reads a login file each time, because the owner renews it. Errors do not show the secret.
	Secret func(ctx context.Context) (string, error)
	Routes []Route
	// Login is the source of the credential, for people: the name of a variable or file.
	Login string
	// Named is set if the user set Upstream in the environment: it may be on this host or a private network, and use http.
	Named bool

	// Env and Account are for ProxySettings: the variable for the placeholder, and Token.Account.
	Env, Account string
}

// ErrNoEndpoint is wrapped by FindService's error if no endpoint can replace the service.
var ErrNoEndpoint = errors.New("the credential cannot be kept outside the sandbox")

// FindService returns the service that the agent would use for this user, with the credential that the agent would find.
// The error wraps ErrNoEndpoint, or explains how to log in.
func FindService(a Agent, u User) (Service, error) {
	d := a.Describe()
	if d.Endpoint == nil {
		return Service{}, fmt.Errorf("agent %s: %w: its model service is not known", a.Name(), ErrNoEndpoint)
	}
	for _, name := range d.Login.UnsupportedVars {
		if u.variable(name) != "" {
			return Service{}, fmt.Errorf("agent %s: %w: %s signs requests inside the agent", a.Name(), ErrNoEndpoint, name)
		}
	}
	s := Service{
		Name: d.Endpoint.Name, Upstream: cmp.Or(u.variable(d.Endpoint.UpstreamEnv), d.Endpoint.Upstream),
		Header: "Authorization", Format: "Bearer %s", Routes: d.Endpoint.Routes, Named: u.variable(d.Endpoint.UpstreamEnv) != "",
	}
	for _, key := range d.Login.Keys {
		if value := u.variable(key.Env); value != "" {
			s.Login, s.Env = key.Env, key.Env
			s.Header, s.Format = cmp.Or(key.Header, s.Header), cmp.Or(key.Format, s.Format)
			s.Secret = func(context.Context) (string, error) { return value, nil }
			return s, nil
		}
	}
	if d.Login.Read == nil {
		return Service{}, fmt.Errorf("agent %s: no login; %s", a.Name(), d.Login.Hint)
	}
	s.Login = d.Login.Path(u)
	first, err := d.Login.Read(s.Login)
	if err != nil {
		return Service{}, fmt.Errorf("agent %s: %w; %s", a.Name(), err, d.Login.Hint)
	}
	s.Upstream, s.Env, s.Account = cmp.Or(first.Upstream, s.Upstream), first.Env, first.Account
	s.Named = s.Named && first.Upstream == ""
	s.Secret = func(context.Context) (string, error) {
		now, err := d.Login.Read(s.Login)
		if err == nil && now.Kind != first.Kind {
			return "", errors.New("the kind of login has changed; start again")
		}
		return now.Secret, err
	}
	return s, nil
}

// AddressOf returns the address that the user has set for the agent's model service in the environment, without a password, and the
// variable's name; both are empty if none is set. The address is empty if the value is none.
func AddressOf(a Agent, u User) (address, variable string) {
	e := a.Describe().Endpoint
	if e == nil || u.variable(e.UpstreamEnv) == "" {
		return "", ""
	}
	at, err := url.Parse(u.variable(e.UpstreamEnv))
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return "", e.UpstreamEnv
	}
	at.User, at.RawQuery = nil, ""
	return at.String(), e.UpstreamEnv
}

// Path returns the agent's own login file; empty for an agent without one.
func (l Login) Path(u User) string {
	if l.File == "" {
		return ""
	}
	return filepath.Join(cmp.Or(u.variable(l.DirEnv), filepath.Join(u.Home, l.Dir)), l.File)
}

// secretVariables returns all variables that may hold secrets.
func (l Login) secretVariables() []string {
	names := slices.Clone(l.SecretVars)
	for _, key := range l.Keys {
		names = append(names, key.Env)
	}
	return names
}

// User is the person whose credentials an agent may use.
type User struct {
	Env  []string // NAME=value; the last entry with a name counts
	Home string   // home folder, for the agents' own logins
}

func (u User) variable(name string) string {
	if name == "" {
		return ""
	}
	for _, setting := range slices.Backward(u.Env) {
		if v, ok := strings.CutPrefix(setting, name+"="); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// Conceal returns the environment without the credentials of the built-in agents and those in the chain, and without the addresses
// that ProxySettings sets.
func Conceal(env []string, c Chain) []string {
	all := Builtin()
	for _, l := range c {
		all = append(all, l.Agent)
	}
	var hidden []string
	for _, a := range all {
		d := a.Describe()
		hidden = append(hidden, d.Login.secretVariables()...)
		if d.Endpoint != nil {
			hidden = append(hidden, d.Endpoint.UpstreamEnv)
		}
	}
	return slices.DeleteFunc(slices.Clone(env), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return slices.Contains(hidden, name)
	})
}

// Secrets returns the current login secrets of the agents: those in the environment, and those in the agents' login files,
// including refresh tokens. It ignores unreadable files.
func Secrets(u User, list ...Agent) []string {
	var out []string
	for _, a := range list {
		l := a.Describe().Login
		for _, name := range l.secretVariables() {
			if value := u.variable(name); value != "" {
				out = append(out, value)
			}
		}
		var file any
		if l.File != "" && ReadLogin(l.Path(u), &file) == nil {
			out = append(out, secretsIn("", file)...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// secretsIn returns the strings of a login file whose names indicate secrets.
func secretsIn(name string, value any) (out []string) {
	switch v := value.(type) {
	case string:
		name = strings.ToLower(name)
		for _, word := range []string{"token", "secret", "key", "password"} {
			if v != "" && strings.Contains(name, word) {
				return []string{v}
			}
		}
	case []any:
		for _, item := range v {
			out = append(out, secretsIn(name, item)...)
		}
	case map[string]any:
		for key, item := range v {
			out = append(out, secretsIn(key, item)...)
		}
	}
	return out
}

// ReadLogin decodes a JSON file in which an agent stores its login. Its errors contain nothing of the content.
func ReadLogin(path string, into any) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no login in %s", path)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return err
	}
	if json.Unmarshal(text, into) != nil {
		return fmt.Errorf("read %s: it is not the login file that was expected", path)
	}
	return nil
}
