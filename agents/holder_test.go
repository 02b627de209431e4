package agents_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
)

func TestSecretsOfALogin(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	writeLogin(t, filepath.Join(home, ".claude", ".credentials.json"), `{"claudeAiOauth":{"accessToken":"a","refreshToken":"b","expiresAt":1,
		"scopes":["user:inference"],"subscriptionType":"max"},"mcpOAuth":{"x|1":{"serverName":"x","accessToken":"c","clientSecret":"d"}}}`)
	writeLogin(t, filepath.Join(home, ".codex", "auth.json"), `{"OPENAI_API_KEY":null,"tokens":{"id_token":"e","access_token":"f",
		"refresh_token":"g","account_id":"not"},"last_refresh":"not"}`)
	user := agents.User{Home: home, Env: []string{"PATH=/bin", "ANTHROPIC_API_KEY=h", "OPENAI_API_KEY=i", "CODEX_API_KEY="}}
	for _, tt := range []struct {
		agent agents.Holder
		want  string
	}{{agents.Claude{}, "a b c d h i"}, {agents.Codex{}, "e f g h i"}} {
		got := tt.agent.Secrets(user)
		slices.Sort(got)
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%T: %q, want %s", tt.agent, got, tt.want)
		}
	}
	if got := (agents.Claude{}).Secrets(agents.User{Home: t.TempDir()}); len(got) > 0 {
		t.Errorf("without a login: %q", got)
	}
	// The login may be elsewhere, and broken.
	writeLogin(t, filepath.Join(home, "other", "auth.json"), `{"tokens":{"access_token":"z`)
	if got := (agents.Codex{}).Secrets(agents.User{Home: home, Env: []string{"CODEX_HOME=" + filepath.Join(home, "other")}}); len(got) > 0 {
		t.Errorf("of a broken login: %q", got)
	}
}
