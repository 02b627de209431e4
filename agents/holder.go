package agents

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// Holder is implemented by agents that keep a login of their own on the host.
type Holder interface {
	// Secrets are the values that log in, as they are now: those of the environment, and access and refresh tokens of
	// the agent's files. What cannot be read has none. It is for keeping them out of what others see.
	Secrets(User) []string
}

var (
	_ Holder = Claude{}
	_ Holder = Codex{}
)

// Secrets are those of the environment and of ~/.claude/.credentials.json, the logins of MCP servers included.
func (Claude) Secrets(u User) []string {
	dir := cmp.Or(u.value("CLAUDE_CONFIG_DIR"), filepath.Join(u.Home, ".claude"))
	return append(u.secrets(), loginSecrets(filepath.Join(dir, ".credentials.json"))...)
}

// Secrets are those of the environment and of ~/.codex/auth.json.
func (Codex) Secrets(u User) []string {
	return append(u.secrets(), loginSecrets(filepath.Join(cmp.Or(u.value("CODEX_HOME"), filepath.Join(u.Home, ".codex")), "auth.json"))...)
}

// secrets are the credentials of the environment.
func (u User) secrets() []string {
	var out []string
	for _, setting := range u.Env {
		if name, value, _ := strings.Cut(setting, "="); slices.Contains(secretNames(), name) && value != "" {
			out = append(out, value)
		}
	}
	return out
}

// loginSecrets are the strings of a login file whose names say that they are secret.
func loginSecrets(path string) []string {
	var file any
	if readLogin(path, &file) != nil {
		return nil
	}
	return secretsIn("", file)
}

func secretsIn(name string, value any) (out []string) {
	switch v := value.(type) {
	case string:
		if tellsSecret(name) && v != "" {
			out = append(out, v)
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

func tellsSecret(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc([]string{"token", "secret", "key", "password"}, func(word string) bool { return strings.Contains(name, word) })
}
