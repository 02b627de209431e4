package compose

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/tracker"
)

// TestTokensAreRedacted checks that the log does not contain the forge's token, whatever its source.
func TestTokensAreRedacted(t *testing.T) {
	t.Parallel()
	const token = "a-token-that-has-no-shape"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]config.Config{
		"file":        {TokenFile: file},
		"command":     {TokenCommand: []string{"cat", file}},
		"environment": {TokenEnv: []string{"FORGE"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &App{Host: Host{Env: []string{"FORGE=" + token, "PATH=" + os.Getenv("PATH")}}}
			p := &Parts{Config: c, Secrets: redact.New(), Loaded: &config.Loaded{}}
			source, _, err := a.login(p, tracker.Descriptor{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := source.Token(t.Context())
			if err != nil || got.Secret != token {
				t.Fatal(err)
			}
			var log bytes.Buffer
			if _, err := p.Secrets.Log(&log).Write([]byte("it is " + token)); err != nil || strings.Contains(log.String(), token) {
				t.Errorf("log %q, %v", log.String(), err)
			}
		})
	}
}

// TestOpenSecretFilesAreNamed checks the warning about a secret in a file that every user of the host may read.
func TestOpenSecretFilesAreNamed(t *testing.T) {
	t.Parallel()
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o640: "",
		0o644: "ralph: warning: token-file: every user of this host may read FILE; restrict it with: chmod 600 FILE\n",
	} {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		a := New(Host{Stdout: &bytes.Buffer{}, Stderr: &errs})
		for range 2 { // a service opens a project many times
			if _, _, err := a.login(&Parts{Config: config.Config{TokenFile: file}, Secrets: redact.New(), Loaded: &config.Loaded{}}, tracker.Descriptor{}); err != nil {
				t.Error(err)
			}
		}
		if got := strings.ReplaceAll(errs.String(), file, "FILE"); got != want {
			t.Errorf("%o: got %q, want %q", mode, got, want)
		}
	}
}

// TestLoginsAreRedacted checks that the logins of all agents are redacted: any agent may find the logins of the others.
func TestLoginsAreRedacted(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".codex", "auth.json"), []byte(`{"tokens":{"refresh_token":"of-codex"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &App{Host: Host{Env: []string{"MY_PASSWORD=of-the-host1", "POSTGRES_PASSWORD=postgres", "DB_PASSWORD=password", "PIN_TOKEN=12345678", "APP_CREDENTIALS=" + home}}}
	got := a.Secrets([]string{"X_TOKEN=passed-on2"}, agents.User{Home: home, Env: []string{"ANTHROPIC_API_KEY=of-claude"}})
	for _, want := range []string{"of-the-host1", "passed-on2", "of-codex", "of-claude"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not among %q", want, got)
		}
	}
	for _, word := range []string{"postgres", "password", "12345678", home} {
		if slices.Contains(got, word) {
			t.Errorf("%s is taken for a secret", word)
		}
	}
}
