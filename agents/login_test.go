package agents_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
)

const credential = "sk-real-credential"

func claudeLogin(token string, ends time.Time) string {
	return fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q,"refreshToken":"rt","expiresAt":%d}}`, token, ends.UnixMilli())
}

func TestService(t *testing.T) {
	t.Parallel()
	later, before := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for name, tt := range map[string]struct {
		agent  agents.Agent
		env    []string
		file   string // below home
		text   string
		want   string // upstream, header and format
		login  string // suffix of Login
		err    string // error instead
		noHelp bool   // the error is ErrNoEndpoint
	}{
		"claude, key": {
			agent: agents.Claude{}, env: []string{"ANTHROPIC_API_KEY=" + credential}, login: "ANTHROPIC_API_KEY",
			want: "https://api.anthropic.com X-Api-Key %s",
		},
		"claude, the last of two keys": {
			agent: agents.Claude{}, env: []string{"ANTHROPIC_API_KEY=old", "ANTHROPIC_API_KEY= " + credential + "\n"}, login: "ANTHROPIC_API_KEY",
			want: "https://api.anthropic.com X-Api-Key %s",
		},
		"claude, subscription": {
			agent: agents.Claude{}, env: []string{"CLAUDE_CODE_OAUTH_TOKEN=" + credential}, login: "CLAUDE_CODE_OAUTH_TOKEN",
			want: "https://api.anthropic.com Authorization Bearer %s",
		},
		"claude, a gateway": {
			agent: agents.Claude{}, login: "ANTHROPIC_AUTH_TOKEN",
			env:  []string{"ANTHROPIC_AUTH_TOKEN=" + credential, "ANTHROPIC_API_KEY=other", "ANTHROPIC_BASE_URL=https://gateway.example.com/a"},
			want: "https://gateway.example.com/a Authorization Bearer %s",
		},
		"claude, logged in": {
			agent: agents.Claude{}, file: ".claude/.credentials.json", text: claudeLogin(credential, later), login: ".credentials.json",
			want: "https://api.anthropic.com Authorization Bearer %s",
		},
		"claude, login at its end": {
			agent: agents.Claude{}, file: ".claude/.credentials.json", text: claudeLogin(credential, before), err: "setup-token",
		},
		"claude, a broken login": {
			agent: agents.Claude{}, file: ".claude/.credentials.json", text: `{"claudeAiOauth":"` + credential, err: "not the login file",
		},
		"claude, logged in elsewhere": {
			agent: agents.Claude{}, env: []string{"CLAUDE_CONFIG_DIR=HOME/other"}, file: "other/.credentials.json", text: claudeLogin(credential, later),
			login: "other/.credentials.json", want: "https://api.anthropic.com Authorization Bearer %s",
		},
		"no service":             {agent: agents.Command{}, err: "model service is not known", noHelp: true},
		"claude, an empty login": {agent: agents.Claude{}, file: ".claude/.credentials.json", text: `{}`, err: "no login in"},
		"claude, none":           {agent: agents.Claude{}, err: "run claude once and log in"},
		"claude, another cloud": {
			agent: agents.Claude{}, env: []string{"CLAUDE_CODE_USE_BEDROCK=1", "ANTHROPIC_API_KEY=" + credential},
			err: "CLAUDE_CODE_USE_BEDROCK signs requests inside the agent", noHelp: true,
		},
		"codex, key": {
			agent: agents.Codex{}, env: []string{"OPENAI_API_KEY=" + credential}, login: "OPENAI_API_KEY",
			want: "https://api.openai.com/v1 Authorization Bearer %s",
		},
		"codex, its own key first": {
			agent: agents.Codex{}, env: []string{"OPENAI_API_KEY=other", "CODEX_API_KEY=" + credential}, login: "CODEX_API_KEY",
			want: "https://api.openai.com/v1 Authorization Bearer %s",
		},
		"codex, logged in by key": {
			agent: agents.Codex{}, file: ".codex/auth.json", text: `{"OPENAI_API_KEY":"` + credential + `"}`, login: "auth.json",
			want: "https://api.openai.com/v1 Authorization Bearer %s",
		},
		"codex, subscription": {
			agent: agents.Codex{}, file: ".codex/auth.json", login: "auth.json",
			text: `{"OPENAI_API_KEY":null,"tokens":{"access_token":"` + credential + `","account_id":"a-1"}}`,
			want: "https://chatgpt.com/backend-api/codex Authorization Bearer %s",
		},
		"codex, none":           {agent: agents.Codex{}, err: "run codex login"},
		"codex, an empty login": {agent: agents.Codex{}, file: ".codex/auth.json", text: `{"tokens":{}}`, err: "no login in"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			if tt.file != "" {
				writeLogin(t, filepath.Join(home, tt.file), tt.text)
			}
			env := strings.Split(strings.ReplaceAll(strings.Join(tt.env, "\x00"), "HOME", home), "\x00")
			s, err := agents.FindService(tt.agent, agents.User{Env: env, Home: home})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), credential) {
					t.Errorf("error %v, want %q in it", err, tt.err)
				}
				if errors.Is(err, agents.ErrNoEndpoint) != tt.noHelp {
					t.Errorf("error %v is the wrong one", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join([]string{s.Upstream, s.Header, s.Format}, " "); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if own := strings.Contains(tt.want, "gateway.example.com"); s.Named != own {
				t.Errorf("the user has named the address: %t, want %t", s.Named, own)
			}
			if got, err := s.Secret(t.Context()); got != credential || err != nil || !strings.HasSuffix(s.Login, tt.login) {
				t.Errorf("secret %q, %v, of %s", got, err, s.Login)
			}
			pointed, args := tt.agent.Describe().Endpoint.ProxySettings(s, "http://127.0.0.1:15381", "placeholder")
			if all := fmt.Sprint(pointed, args, s.Name, s.Routes, s.Login); strings.Contains(all, credential) {
				t.Errorf("the credential is in %s", all)
			}
			if err := agents.Check(tt.agent, agents.Options{Env: pointed, Args: args}); err != nil {
				t.Errorf("it refuses its own settings: %v", err)
			}
		})
	}
}

func writeLogin(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// A login file is read each time, because the agent on the host renews it.
func TestServiceFollowsTheLogin(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	path := filepath.Join(home, ".codex", "auth.json")
	writeLogin(t, path, `{"tokens":{"access_token":"first"}}`)
	s, err := agents.FindService(agents.Codex{}, agents.User{Home: home})
	if err != nil {
		t.Fatal(err)
	}
	writeLogin(t, path, `{"tokens":{"access_token":"second"}}`)
	if got, err := s.Secret(context.Background()); got != "second" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	// An API key is for another service than a subscription's token.
	writeLogin(t, path, `{"OPENAI_API_KEY":"`+credential+`"}`)
	if got, err := s.Secret(context.Background()); err == nil {
		t.Errorf("%q goes to %s", got, s.Upstream)
	}
}

func TestPoint(t *testing.T) {
	t.Parallel()
	user := agents.User{Env: []string{"CLAUDE_CODE_OAUTH_TOKEN=x"}}
	s, err := agents.FindService(agents.Claude{}, user)
	if err != nil {
		t.Fatal(err)
	}
	env, args := agents.Claude{}.Describe().Endpoint.ProxySettings(s, "http://127.0.0.1:15381", "placeholder")
	for _, want := range []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:15381", "CLAUDE_CODE_OAUTH_TOKEN=placeholder"} {
		if !slices.Contains(env, want) {
			t.Errorf("%q is not in %q", want, env)
		}
	}
	if len(args) > 0 {
		t.Errorf("arguments %q", args)
	}

	home := t.TempDir()
	writeLogin(t, filepath.Join(home, ".codex", "auth.json"), `{"tokens":{"access_token":"x","account_id":"a\"1"}}`)
	if s, err = agents.FindService(agents.Codex{}, agents.User{Home: home}); err != nil {
		t.Fatal(err)
	}
	env, args = agents.Codex{}.Describe().Endpoint.ProxySettings(s, "http://127.0.0.1:15381", "placeholder")
	if !slices.Equal(env, []string{"OPENAI_API_KEY=placeholder"}) {
		t.Errorf("environment %q", env)
	}
	want := `model_providers.ralph={name="OpenAI",base_url="http://127.0.0.1:15381",env_key="OPENAI_API_KEY",wire_api="responses",` +
		`http_headers={"chatgpt-account-id"="a\"1"}}`
	if !slices.Contains(args, want) {
		t.Errorf("%s is not in %q", want, args)
	}
}

func TestConceal(t *testing.T) {
	t.Parallel()
	got := agents.Conceal([]string{
		"PATH=/bin", "ANTHROPIC_API_KEY=x", "ANTHROPIC_AUTH_TOKEN=x", "CLAUDE_CODE_OAUTH_TOKEN=x", "OPENAI_API_KEY=x",
		"CODEX_API_KEY=x", "ANTHROPIC_BASE_URL=x", "OPENAI_BASE_URL=x", "ANTHROPIC_CUSTOM_HEADERS=x", "CODEX_ACCESS_TOKEN=x", "MINE=x",
	}, nil)
	if !slices.Equal(got, []string{"PATH=/bin", "MINE=x"}) {
		t.Errorf("left are %q", got)
	}
}

func TestSecretsOfALogin(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	writeLogin(t, filepath.Join(home, ".claude", ".credentials.json"), `{"claudeAiOauth":{"accessToken":"a","refreshToken":"b","expiresAt":1,
		"scopes":["user:inference"],"subscriptionType":"max"},"mcpOAuth":{"x|1":{"serverName":"x","accessToken":"c","clientSecret":"d"}}}`)
	writeLogin(t, filepath.Join(home, ".codex", "auth.json"), `{"OPENAI_API_KEY":null,"tokens":{"id_token":"e","access_token":"f",
		"refresh_token":"g","account_id":"not"},"last_refresh":"not"}`)
	user := agents.User{Home: home, Env: []string{"PATH=/bin", "ANTHROPIC_API_KEY=h", "OPENAI_API_KEY=i", "CODEX_API_KEY="}}
	for _, tt := range []struct {
		agents []agents.Agent
		want   string
	}{
		{[]agents.Agent{agents.Claude{}}, "a b c d h"},
		{[]agents.Agent{agents.Codex{}}, "e f g i"},
		{agents.Builtin(), "a b c d e f g h i"},
	} {
		got := agents.Secrets(user, tt.agents...)
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%q: %q, want %s", tt.agents, got, tt.want)
		}
	}
	if got := agents.Secrets(agents.User{Home: t.TempDir()}, agents.Claude{}); len(got) > 0 {
		t.Errorf("without a login: %q", got)
	}
	// The login may be in another folder, and broken.
	writeLogin(t, filepath.Join(home, "other", "auth.json"), `{"tokens":{"access_token":"z`)
	if got := agents.Secrets(agents.User{Home: home, Env: []string{"CODEX_HOME=" + filepath.Join(home, "other")}}, agents.Codex{}); len(got) > 0 {
		t.Errorf("of a broken login: %q", got)
	}
}

// A route with a star matches what is below a path, and not other paths that begin like it.
func TestRoutesAreExact(t *testing.T) {
	t.Parallel()
	for _, a := range agents.Builtin() {
		if e := a.Describe().Endpoint; e != nil {
			for _, r := range e.Routes {
				if strings.HasSuffix(r.Path, "*") && !strings.HasSuffix(r.Path, "/*") {
					t.Errorf("%s: %s", a.Name(), r.Path)
				}
			}
		}
	}
}
