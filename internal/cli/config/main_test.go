package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/cli/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// setup is a set of sources on disk.
type setup struct {
	repo, user string // text of the files; empty: no file
	env        []string
	args       []string
	trusted    func() (trust.Values, error) // nil: the user trusts the repository's file
}

// load calls Load, and also returns the folder that stands for the machine.
func (s setup) load(t *testing.T) (*Loaded, string, error) {
	t.Helper()
	root := t.TempDir()
	write := func(name, text string) {
		if text == "" {
			return
		}
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("repo/.ralph/config.yaml", s.repo)
	write("home/.config/ralph/config.yaml", s.user)
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Bind(flags, 0)
	if err := flags.Parse(s.args); err != nil {
		return nil, root, err
	}
	sources := Sources{
		Flags: flags, Environ: append([]string{"HOME=" + root + "/home"}, s.env...), Dir: root + "/cwd", Repo: root + "/repo",
		Choices: map[string][]string{
			"tracker": {"auto", "local", "github", "gitlab"}, "agent": {"claude-code", "codex", "command"},
			"sandbox": {"auto", "native", "docker", "sbx", "landlock", "later", "none", "podman"},
			"effort":  {"low", "high"}, "permission-mode": {"plan", "read-only"},
		},
		Commanded: []string{"command"}, Trusted: s.trusted,
	}
	if sources.Trusted == nil {
		sources.Trusted = func() (trust.Values, error) { return Guarded(sources) }
	}
	loaded, err := Load(sources)
	return loaded, root, err
}
