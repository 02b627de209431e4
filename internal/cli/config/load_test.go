package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

func TestPrecedence(t *testing.T) {
	t.Parallel()
	user, repo := "parallel: 1\nlabels: [user]\n", "labels: [repo]\n\nparallel: 2\n"
	for _, c := range []struct {
		name     string
		setup    setup
		parallel int
		label    string
		from     string // origin of parallel, relative to the machine's folder
	}{
		{"defaults", setup{}, 4, "no-human", "default"},
		{"user", setup{user: user}, 1, "user", "/home/.config/ralph/config.yaml:1"},
		{"repository over user", setup{user: user, repo: repo}, 2, "repo", "/repo/.ralph/config.yaml:3"},
		{"variable over files", setup{user: user, repo: repo, env: []string{"RALPH_PARALLEL=3", "RALPH_LABELS=env"}}, 3, "env", "RALPH_PARALLEL"},
		{
			"flag over all",
			setup{user: user, repo: repo, env: []string{"RALPH_PARALLEL=3", "RALPH_LABELS=env"}, args: []string{"--parallel=5", "--label=flag"}},
			5, "flag", "flag --parallel",
		},
		{"empty variable", setup{repo: repo, env: []string{"RALPH_PARALLEL="}}, 2, "repo", "/repo/.ralph/config.yaml:3"},
		{"empty value", setup{user: user, repo: "parallel:\nlabels: ~\n"}, 1, "user", "/home/.config/ralph/config.yaml:1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, root, err := c.setup.load(t)
			if err != nil {
				t.Fatal(err)
			}
			if l.Config.Parallel != c.parallel || l.Config.Labels[0] != c.label || len(l.Config.Labels) != 1 {
				t.Errorf("parallel %d, labels %v", l.Config.Parallel, l.Config.Labels)
			}
			if got := strings.Replace(l.Origin("parallel").String(), root, "", 1); got != c.from {
				t.Errorf("from %q, want %q", got, c.from)
			}
		})
	}
}

func TestXDGConfigHomeIsTheUsersFile(t *testing.T) {
	t.Parallel()
	if got := UserFile([]string{"HOME=/h", "XDG_CONFIG_HOME=/x"}); got != "/x/ralph/config.yaml" {
		t.Error(got)
	}
	if got := UserFile([]string{"HOME=/h", "XDG_CONFIG_HOME=relative"}); got != "/h/.config/ralph/config.yaml" {
		t.Error(got)
	}
	if got := UserFile(nil); got != "" {
		t.Error(got)
	}
}

// TestValues reads each kind of value from each source.
func TestValues(t *testing.T) {
	t.Parallel()
	pick := func(c Config) any {
		return []any{c.Gate, c.ExcludeLabels, c.AgentCommand, c.IdleTimeout, c.BudgetUSD, c.SkipPermissions, c.BudgetTokens}
	}
	want := []any{
		[]string{"go test -run a,b ./...", "make lint"}, []string{"a b", "c"}, []string{"my agent", "--x"},
		90 * time.Second, 2.5, true, int64(3_000_000_000),
	}
	for name, s := range map[string]setup{
		"file": {repo: "gate:\n  - go test -run a,b ./...\n  - make lint\nexclude-labels: [a b, c]\nagent: command\n" +
			"agent-command: \"'my agent' --x\"\nidle-timeout: 90s\nbudget-usd: 2.5\nskip-permissions: true\nbudget-tokens: 3000000000\n"},
		"environment": {env: []string{
			"RALPH_GATE=go test -run a,b ./...\n make lint\n", "RALPH_EXCLUDE_LABELS=a b, c", "RALPH_AGENT_COMMAND='my agent' --x",
			"RALPH_IDLE_TIMEOUT=1m30s", "RALPH_BUDGET_USD=2.5", "RALPH_SKIP_PERMISSIONS=true", "RALPH_BUDGET_TOKENS=3000000000",
		}},
		"flags": {args: []string{
			"--gate", "go test -run a,b ./...", "--gate", "make lint", "--exclude-label=a b", "--exclude-label=c",
			"--agent-command", "'my agent' --x", "--idle-timeout=90s", "--budget-usd=2.5", "--skip-permissions", "--budget-tokens=3000000000",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, _, err := s.load(t)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, pick(l.Config)); diff != "" {
				t.Error(diff)
			}
			if l.Config.Agent != "command" {
				t.Errorf("agent %q: agent-command alone means the agent command", l.Config.Agent)
			}
		})
	}
}

// A stronger source with a program overrides the agent of a weaker one, and the other way round.
func TestProgramChoosesTheAgent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    setup
		want string
	}{
		"flag over file":     {setup{repo: "agent: codex\n", args: []string{"--agent-command", "x"}}, "command"},
		"variable over file": {setup{user: "agent: codex\n", env: []string{"RALPH_AGENT_COMMAND=x"}}, "command"},
		"both in one":        {setup{env: []string{"RALPH_AGENT=command", "RALPH_AGENT_COMMAND=x"}}, "command"},
		"emptied":            {setup{repo: "agent-command: x\n", args: []string{"--agent", "codex", "--agent-command="}}, "codex"},
		"another by flag":    {setup{repo: "agent-command: x\n", args: []string{"--agent", "codex"}}, "codex"},
		"another by file":    {setup{user: "agent-command: x\n", repo: "agent: codex\n"}, "codex"},
		"back to the first":  {setup{user: "agent-command: x\n", repo: "agent: codex\n", args: []string{"--agent-command", "y"}}, "command"},
		"the same by flag":   {setup{repo: "agent-command: x\n", args: []string{"--agent", "command"}}, "command"},
	} {
		l, _, err := c.s.load(t)
		if err != nil || l.Config.Agent != c.want || (len(l.Config.AgentCommand) > 0) != (c.want == "command") {
			t.Errorf("%s: %v, %+v", name, err, l)
		}
	}
}

func TestListsReplaceAndEmpty(t *testing.T) {
	t.Parallel()
	repo := "copy: a.txt\ngate: make test\nsetup: |\n  npm ci\n  npm run build\n" // a single value is a list of one item
	l, _, err := setup{repo: repo}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"make test"}, {"npm ci\nnpm run build"}}, [][]string{l.Config.Gate, l.Config.Setup}); diff != "" {
		t.Error(diff)
	}
	l, _, err = setup{repo: repo, args: []string{"--copy="}}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Config.Copy) != 0 {
		t.Errorf("--copy= leaves %q", l.Config.Copy)
	}
}

func TestEnvironmentNamesKeepTheirCase(t *testing.T) {
	t.Parallel()
	l, _, err := setup{repo: "agent-env: [ANTHROPIC_API_KEY, Mixed_Case=Value=1]\n"}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ANTHROPIC_API_KEY", "Mixed_Case=Value=1"}, l.Config.AgentEnv); diff != "" {
		t.Error(diff)
	}
	for _, e := range l.Entries() {
		if e.Key == "agent-env" && Show(e.Value) != "ANTHROPIC_API_KEY, Mixed_Case=(hidden)" {
			t.Errorf("shown as %v", e.Value)
		}
	}
}

// TestPaths checks that the base of a relative path depends on its source.
func TestPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		setup setup
		want  string
	}{
		{"default", setup{}, "/repo/.ralph/backlog"},
		{"file", setup{repo: "local:\n  dir: issues\n"}, "/repo/issues"},
		{"flow", setup{repo: "local: {dir: issues}\n"}, "/repo/issues"},
		{"user file", setup{user: "local:\n  dir: ../issues\n"}, "/issues"},
		{"home", setup{repo: "local:\n  dir: ~/issues\n"}, "/home/issues"},
		{"variable", setup{env: []string{"RALPH_LOCAL_DIR=issues"}}, "/cwd/issues"},
		{"flag", setup{args: []string{"--local-dir=./issues"}}, "/cwd/issues"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, root, err := c.setup.load(t)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.Config.LocalDir; got != root+c.want {
				t.Errorf("got %s, want %s%s", got, root, c.want)
			}
		})
	}
}

// A program with a slash in its name is resolved like a path, so that no worktree decides which file it is.
func TestProgramsAreAtTheirPaths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		setup setup
		want  string
	}{
		{"name", setup{repo: "agent-command: agent ./x\n"}, "agent ./x"},
		{"file", setup{repo: "agent-command: ./agent ./x\n"}, "ROOT/repo/agent ./x"},
		{"list", setup{repo: "agent-command: [bin/agent, ./x]\n"}, "ROOT/repo/bin/agent ./x"},
		{"home", setup{user: "agent-command: ~/bin/agent\n"}, "ROOT/home/bin/agent"},
		{"variable", setup{env: []string{"RALPH_AGENT_COMMAND=../agent"}}, "ROOT/agent"},
		{"flag", setup{args: []string{"--agent-command=./agent -v"}}, "ROOT/cwd/agent -v"},
		{"whole path", setup{args: []string{"--agent-command=/bin/agent"}}, "/bin/agent"},
	} {
		l, root, err := c.setup.load(t)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.ReplaceAll(strings.Join(l.Config.AgentCommand, " "), root, "ROOT"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// A file that ends in .yml is not read, and a warning names the right name.
func TestMisnamedFilesAreWarnings(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	var want []string
	for _, dir := range []string{"home/.config/ralph", "repo/.ralph"} {
		dir = filepath.Join(root, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "config.yml"), []byte("parallel: 3\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		want = append(want, dir+"/config.yml is ignored; rename it to config.yaml")
	}
	l, err := Load(Sources{Environ: []string{"HOME=" + root + "/home"}, Dir: root, Repo: root + "/repo"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, l.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestUnknownVariablesAreWarnings(t *testing.T) {
	t.Parallel()
	l, _, err := setup{env: []string{
		"RALPH_PARALEL=3", "RALPH_ISSUE_KEY=x", "RALPH_MARK=y", "RALPH_ITERATION=1", "RALPH_BRANCH=b", "RALPH_QQQQQQ=", "OTHER=1",
	}}.load(t)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"unknown variable RALPH_PARALEL; did you mean RALPH_PARALLEL?", "unknown variable RALPH_QQQQQQ"}
	if diff := cmp.Diff(want, l.Warnings); diff != "" {
		t.Error(diff)
	}
}

// TestNotAFile checks that anything but a regular file is refused without reading it.
func TestNotAFile(t *testing.T) {
	t.Parallel()
	repo := t.TempDir()
	if err := os.MkdirAll(filepath.Join(repo, File), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Load(Sources{Repo: repo})
	if err == nil || err.Error() != filepath.Join(repo, File)+": is not a regular file" {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(filepath.Join(repo, File)); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(t.TempDir(), "netrc")
	if err := errors.Join(os.WriteFile(secret, []byte("password x\n"), 0o600), os.Symlink(secret, filepath.Join(repo, File))); err != nil {
		t.Fatal(err)
	}
	if _, err = Load(Sources{Repo: repo}); err == nil || err.Error() != filepath.Join(repo, File)+": is a link out of the repository" {
		t.Errorf("got %v", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(repo, File)), os.WriteFile(filepath.Join(repo, "mine.yaml"), nil, 0o600), os.Symlink("../mine.yaml", filepath.Join(repo, File))); err != nil {
		t.Fatal(err)
	}
	if _, err = Load(Sources{Repo: repo}); err != nil {
		t.Errorf("a link within: %v", err)
	}
	if err := os.Remove(filepath.Join(repo, File)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repo, File), []byte(strings.Repeat("#", maxFile+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = Load(Sources{Repo: repo}); err == nil || !strings.HasSuffix(err.Error(), "is larger than 64 KiB") {
		t.Errorf("got %v", err)
	}
}

func TestBindPanicsOnAKeyThatIsNone(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	Bind(pflag.NewFlagSet("", pflag.ContinueOnError), 0, "paralel")
}

func TestProblemsAreAnError(t *testing.T) {
	t.Parallel()
	_, _, err := setup{repo: "parallel: x\n", env: []string{"RALPH_LIMIT=y"}}.load(t)
	var p Problems
	if !errors.As(err, &p) || len(p) != 2 {
		t.Errorf("got %#v: all problems of all sources are wanted at once", err)
	}
}

// Paths in the user's own file may contain variables, and an unset one is an error. A repository's may not.
func TestVariablesInPaths(t *testing.T) {
	t.Parallel()
	home, repo := t.TempDir(), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(home, ".config", "ralph", "config.yaml")
	write(own, "ca-file: $CERTS/ca.pem\n")
	write(filepath.Join(repo, File), "prompt-file: $SECRET/${SECRET}.md\n")
	environ := []string{"HOME=" + home, "CERTS=/etc/certs", "SECRET=hunter2"}
	loaded, err := Load(Sources{Environ: environ, Dir: repo, Repo: repo})
	if err != nil || loaded.Config.CAFile != "/etc/certs/ca.pem" || loaded.Config.PromptFile != filepath.Join(repo, "$SECRET/${SECRET}.md") {
		t.Errorf("%+v, %v", loaded, err)
	}
	write(own, "ca-file: $NOWHERE/ca.pem\n")
	if _, err := Load(Sources{Environ: environ, Dir: repo, Repo: repo}); err == nil || !strings.Contains(err.Error(), "config.yaml:1: the variable NOWHERE is not set") {
		t.Errorf("%v", err)
	}
	list := filepath.Join(home, "serve.yaml")
	write(list, "projects:\n  - repo: ${SRC}/shop\n")
	if s, err := ReadService(list, append(environ, "SRC=/src"), nil); err != nil || s.Projects[0].Repo != "/src/shop" {
		t.Errorf("%+v, %v", s, err)
	}
}
