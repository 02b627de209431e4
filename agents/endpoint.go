package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Endpointer is implemented by agents that work without their credential: they are pointed at an endpoint on loopback,
// behind which somebody else puts the credential into each request. All that the agent holds is a placeholder.
//
// Such an agent needs no other host. What it looks for besides (updates, telemetry, feature flags) is switched off, or
// refused without harm.
type Endpointer interface {
	Agent
	// Service is the model service that the agent would use for this user, and the credential for it. The error is
	// ErrNoEndpoint's where the credential can only be used by the agent itself, and else says how to log in.
	Service(User) (Service, error)
	// Point is what makes the agent use the service by the endpoint at this URL: settings for Options.Env and arguments
	// for Options.Args.
	Point(s Service, url, placeholder string) (env, args []string)
}

// ErrNoEndpoint is wrapped by Service where no endpoint can stand in for the service.
var ErrNoEndpoint = errors.New("the credential cannot be kept outside the sandbox")

// User is whose credentials an agent may use.
type User struct {
	Env  []string // NAME=value; of entries with the same name the last one counts
	Home string   // where the agent's own login is
}

func (u User) value(name string) string {
	for _, setting := range slices.Backward(u.Env) {
		if v, ok := strings.CutPrefix(setting, name+"="); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// first returns the first of the names that is set, and its value.
func (u User) first(names ...string) (name, value string) {
	for _, name := range names {
		if v := u.value(name); v != "" {
			return name, v
		}
	}
	return "", ""
}

// Service is a model service and how one logs in to it.
type Service struct {
	Name     string // for the endpoint, such as "anthropic"
	Upstream string // URL of the real service
	// Header and Format carry the credential: "Authorization", "Bearer %s".
	Header, Format string
	// Secret returns the credential; one that is in a file is read each time, because its owner renews it there. It
	// is not part of an error.
	Secret func(ctx context.Context) (string, error)
	// Routes are the methods and paths the agent needs, "*" at the end standing for any rest. The credential opens more.
	Routes []Route
	// Login is what the credential is, for people: a variable's name, or a file's.
	Login string

	placeholder string // the variable for the placeholder; the agent's own knowledge
	account     string // the account that the credential belongs to, where the agent has to say it
}

// Route is a request an agent makes of its service.
type Route struct{ Method, Path string }

// secretNames are the variables, of all agents, that hold credentials.
func secretNames() []string {
	return []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
		"ANTHROPIC_CUSTOM_HEADERS", "OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN",
	}
}

// Conceal returns the environment without the credentials of any agent's service, and without the addresses that Point
// sets anew.
func Conceal(env []string) []string {
	hidden := append(secretNames(), "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL")
	return slices.DeleteFunc(slices.Clone(env), func(setting string) bool {
		name, _, _ := strings.Cut(setting, "=")
		return slices.Contains(hidden, name)
	})
}

// held is a credential that does not change during a run.
func held(secret string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) { return secret, nil }
}

// maxLogin bounds a file with a login.
const maxLogin = 1 << 20

// readLogin reads a JSON file in which an agent keeps its login. Its errors show nothing of what is in it.
func readLogin(path string, into any) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxLogin))
	if err != nil {
		return err
	}
	if json.Unmarshal(text, into) != nil {
		return fmt.Errorf("read %s: it is not the login file that was expected", path)
	}
	return nil
}
