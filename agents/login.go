package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Login is how an agent logs in to its model service.
type Login struct {
	// Keys are the variables that hold a credential, in the order in which the program looks for them.
	Keys []Key
	// Hidden are further variables that hold secrets.
	Hidden []string
	// Elsewhere are variables that make the program log in where ralph cannot do it for the program.
	Elsewhere []string
	// Dir and File are where the program keeps its own login: File below Dir in the user's home, or below the folder
	// that the variable DirEnv names.
	Dir, DirEnv, File string
	// Read gets the credential out of that file.
	Read func(path string) (Token, error)
	Hint string // what the user does to log in
}

// Key is a variable that holds a credential.
type Key struct {
	Env string
	// Header and Format carry the credential; empty: "Authorization", "Bearer %s".
	Header, Format string
}

// Token is the credential in an agent's own login file.
type Token struct {
	Secret   string
	Kind     string // a login that changes its kind needs another Upstream
	Upstream string // of this kind; empty: the agent's usual one
	Account  string // which the agent has to name in its requests
	Env      string // the variable for the placeholder
}

// Endpoint is a model service that the agent can reach through an endpoint on loopback. Ralph puts the credential into
// each request behind it; the agent holds a placeholder. Such an agent needs no other host.
type Endpoint struct {
	Name        string // such as "anthropic"
	Upstream    string // URL of the real service
	UpstreamEnv string // the variable with which users replace it
	// Routes are the requests that the agent makes; the credential would open more.
	Routes []Route
	// Point returns the settings for Options.Env and the arguments for Options.Args that make the agent use the
	// endpoint at this URL.
	Point func(s Service, url, placeholder string) (env, args []string)
}

// Route is a method and a path; "*" at the end of the path stands for any rest.
type Route struct{ Method, Path string }

// Service is a model service with a user's credential for it.
type Service struct {
	Name, Upstream string
	Header, Format string // carry the credential: "Authorization", "Bearer %s"
	// Secret returns the credential. A login file is read each time, because its owner renews it. The secret is never
	// part of an error.
	Secret func(ctx context.Context) (string, error)
	Routes []Route
	// Login is where the credential is, for people: a variable's name, or a file's.
	Login string
	// Named says that the user has named Upstream in the environment: it may be on this host or a private network, and http.
	Named bool

	// Env and Account are for Point: the variable for the placeholder, and Token.Account.
	Env, Account string
}

// ErrNoEndpoint is wrapped by FindService where no endpoint can stand in for the service.
var ErrNoEndpoint = errors.New("the credential cannot be kept outside the sandbox")

// FindService returns the service that the agent would use for this user, with the credential that the agent would find.
// The error wraps ErrNoEndpoint, or says how to log in.
func FindService(a Agent, u User) (Service, error) {
	d := a.Describe()
	if d.Endpoint == nil {
		return Service{}, fmt.Errorf("agent %s: %w: its model service is not known", a.Name(), ErrNoEndpoint)
	}
	for _, name := range d.Login.Elsewhere {
		if u.value(name) != "" {
			return Service{}, fmt.Errorf("agent %s: %w: %s signs requests inside the agent", a.Name(), ErrNoEndpoint, name)
		}
	}
	s := Service{
		Name: d.Endpoint.Name, Upstream: cmp.Or(u.value(d.Endpoint.UpstreamEnv), d.Endpoint.Upstream),
		Header: "Authorization", Format: "Bearer %s", Routes: d.Endpoint.Routes, Named: u.value(d.Endpoint.UpstreamEnv) != "",
	}
	for _, key := range d.Login.Keys {
		if value := u.value(key.Env); value != "" {
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
			return "", errors.New("the login is of another kind now; start again")
		}
		return now.Secret, err
	}
	return s, nil
}

// Path is the agent's own login file; empty for an agent that has none.
func (l Login) Path(u User) string {
	if l.File == "" {
		return ""
	}
	return filepath.Join(cmp.Or(u.value(l.DirEnv), filepath.Join(u.Home, l.Dir)), l.File)
}

// variables are all variables that hold secrets.
func (l Login) variables() []string {
	names := slices.Clone(l.Hidden)
	for _, key := range l.Keys {
		names = append(names, key.Env)
	}
	return names
}

// User is whose credentials an agent may use.
type User struct {
	Env  []string // NAME=value; of entries with the same name the last one counts
	Home string   // where the agent's own login is
}

func (u User) value(name string) string {
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

// Conceal returns the environment without the credentials of the agents that ralph knows and of those given, and without
// the addresses that Point sets.
func Conceal(env []string, c Chain) []string {
	all := Builtin()
	for _, l := range c {
		all = append(all, l.Agent)
	}
	var hidden []string
	for _, a := range all {
		d := a.Describe()
		hidden = append(hidden, d.Login.variables()...)
		if d.Endpoint != nil {
			hidden = append(hidden, d.Endpoint.UpstreamEnv)
		}
	}
	return slices.DeleteFunc(slices.Clone(env), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return slices.Contains(hidden, name)
	})
}

// Secrets are the values that log in to the agents, as they are now: those of the environment, and those in the agents'
// login files, refresh tokens included. A file that cannot be read has none.
func Secrets(u User, list ...Agent) []string {
	var out []string
	for _, a := range list {
		l := a.Describe().Login
		for _, name := range l.variables() {
			if value := u.value(name); value != "" {
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

// secretsIn are the strings of a login file whose names say that they are secret.
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

// ReadLogin reads a JSON file in which an agent keeps its login. Its errors show nothing of the content.
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
