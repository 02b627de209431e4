package pool_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
)

func TestMain(m *testing.M) {
	for k, v := range map[string]string{
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.invalid",
		"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.invalid",
	} {
		if err := os.Setenv(k, v); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// commits is an agent that commits one file named after its issue and says that it is done.
const commits = `cat >/dev/null; echo work >> "$RALPH_ISSUE_KEY.txt"; git add -A; git commit -qm "work on $RALPH_ISSUE_KEY"
echo "<promise>COMPLETE</promise>"`

// fixture is one repository with a backlog, and what a pool needs.
type fixture struct {
	t      *testing.T
	repo   string
	state  string
	Config pool.Config

	mu     sync.Mutex
	events []pool.Event
	onStep func(pool.Event)
}

func newFixture(t *testing.T, agent string) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{t: t, repo: filepath.Join(dir, "repo"), state: filepath.Join(dir, "state")}
	f.git(dir, "init", "-q", "-b", "main", f.repo)
	f.write("README", "hello\n")
	f.write(".gitignore", ".ralph/\n")
	f.git(f.repo, "add", "-A")
	f.git(f.repo, "commit", "-qm", "init")
	if err := os.MkdirAll(filepath.Join(f.repo, ".ralph", "backlog"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.Config = f.config(agent)
	return f
}

// config makes what one ralph process would have: everything opened anew.
func (f *fixture) config(agent string) pool.Config {
	f.t.Helper()
	ctx := context.Background()
	repo, err := worktree.Open(ctx, f.repo, worktree.Options{StateDir: f.state})
	if err != nil {
		f.t.Fatal(err)
	}
	journal, err := pool.OpenJournal(ctx, filepath.Join(f.state, "state.db"))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = journal.Close() })
	backlog, err := local.New(local.Config{Dir: filepath.Join(f.repo, ".ralph", "backlog"), LockDir: f.state})
	if err != nil {
		f.t.Fatal(err)
	}
	return pool.Config{
		Repo: repo, Journal: journal, Tracker: backlog, StateDir: f.state,
		Agent: agents.Command{}, Options: agents.Options{Command: []string{"sh", "-c", agent}},
		Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}), MaxIterations: 2, Observe: f.observe,
	}
}

func (f *fixture) observe(e pool.Event) {
	f.mu.Lock()
	f.events = append(f.events, e)
	hook := f.onStep
	f.mu.Unlock()
	if hook != nil && e.Kind == pool.EventStep {
		hook(e)
	}
}

func (f *fixture) sweep(ctx context.Context, keys ...string) pool.Summary {
	f.t.Helper()
	p, err := pool.New(f.Config)
	if err != nil {
		f.t.Fatal(err)
	}
	s, err := p.Sweep(ctx, keys...)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

func (f *fixture) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.repo, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
}

// issue adds an issue that ralph may work; extra are further lines of front matter.
func (f *fixture) issue(key string, extra ...string) {
	f.t.Helper()
	labels := "labels: [no-human]\n"
	if strings.Contains(strings.Join(extra, "\n"), "labels:") {
		labels = ""
	}
	f.write(filepath.Join(".ralph", "backlog", key+".md"),
		fmt.Sprintf("---\ntitle: Do %s\n%s%s\n---\nPlease do %s.\n", key, labels, strings.Join(extra, "\n"), key))
}

func (f *fixture) text(key string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.repo, ".ralph", "backlog", key+".md"))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b)
}

func (f *fixture) git(dir string, args ...string) string {
	f.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// clean fails the test if a claim is held or a worktree is left.
func (f *fixture) clean() {
	f.t.Helper()
	held, _, err := f.Config.Repo.Claims(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	for key := range held {
		f.t.Errorf("claim of %s is left", key)
	}
	if out := f.git(f.repo, "worktree", "list"); strings.Contains(out, "\n") {
		f.t.Errorf("worktrees are left:\n%s", out)
	}
	if open, err := f.Config.Journal.Open(context.Background()); err != nil || len(open) > 0 {
		f.t.Errorf("open runs are left: %v %v", open, err)
	}
}

func lines(cmds ...string) []loop.Command {
	var out []loop.Command
	for _, c := range cmds {
		out = append(out, loop.Command{Line: c, Timeout: time.Minute})
	}
	return out
}

func (f *fixture) only(s pool.Summary) pool.Record {
	f.t.Helper()
	if len(s.Runs) != 1 {
		f.t.Fatalf("%d runs, want 1; skipped %+v, unavailable %v", len(s.Runs), s.Skipped, s.Unavailable)
	}
	return s.Runs[0]
}
