package pool_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

const (
	done = `; echo "<promise>COMPLETE</promise>"`
	// commits is an agent that commits one file named after its issue and says that it is done.
	commits = `cat >/dev/null; echo work >> "$RALPH_ISSUE_KEY.txt"; git add -A; git commit -qm "work on $RALPH_ISSUE_KEY"` + done
	// endless is an agent that commits, says that it has started and then runs until it is stopped.
	endless = `cat >/dev/null; echo work > work; git add work; git commit -qm "half the work"; echo more > more; echo started; exec sleep 1000`
	evil    = `mkdir -p .github/workflows; echo evil > .github/workflows/evil.yml; git add -A; `
)

// fixture is a repository with a backlog, and everything that a pool needs.
type fixture struct {
	t      *testing.T
	repo   string
	state  string
	host   string // shared by the clones of this host
	store  *store
	Config pool.Config

	mu      sync.Mutex
	events  []journal.Event     // guarded by mu
	onEvent func(journal.Event) // guarded by mu; called by the observer
}

func newFixture(t *testing.T, agent string) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{t: t, repo: filepath.Join(dir, "repo"), state: filepath.Join(dir, "state"), host: filepath.Join(dir, "host"), store: &store{}}
	f.git(dir, "init", "-q", "-b", "main", f.repo)
	f.write("README", "hello\n")
	f.write(".gitignore", ".ralph/\n")
	f.commit("init")
	if err := os.MkdirAll(filepath.Join(f.repo, ".ralph", "backlog"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.Config = f.config(agent)
	return f
}

// config returns the configuration of one ralph process: everything but the store is opened anew.
func (f *fixture) config(agent string) pool.Config {
	f.t.Helper()
	backlog, err := local.New(local.Config{Dir: filepath.Join(f.repo, ".ralph", "backlog"), LockDir: f.state})
	if err != nil {
		f.t.Fatal(err)
	}
	return pool.Config{
		Run: run.Config{
			Repo: f.open(""), Store: f.store, Tracker: backlog,
			Agent: agents.Command{}, Options: agents.Options{Command: []string{"sh", "-c", agent}},
			Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}), MaxIterations: 2, Hints: report.Hints{Verify: "check KEY", Merge: "merge KEY"},
		},
		MinFree: -1, Observe: f.observe,
	}
}

func (f *fixture) open(remote string) *worktree.Repo {
	f.t.Helper()
	repo, err := worktree.Open(f.t.Context(), f.repo, worktree.Options{
		StateDir: f.state, HostDir: f.host, Remote: remote, Sleep: func(context.Context, time.Duration) error { return nil },
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return repo
}

// withRemote gives the fixture a remote with main, and publishes branches there.
func (f *fixture) withRemote() (bare string) {
	f.t.Helper()
	bare = filepath.Join(f.t.TempDir(), "origin.git")
	f.git(f.repo, "init", "-q", "--bare", "-b", "main", bare)
	f.git(f.repo, "remote", "add", "origin", bare)
	f.git(f.repo, "push", "-q", "origin", "main")
	f.Config.Run.Repo, f.Config.Run.Publish, f.Config.Run.Protected = f.open("origin"), journal.PublishBranch, publish.ProtectedPaths()
	return bare
}

// store is a journal that signals when a run has reached a stage: its state is stored, and the stage has done nothing yet.
type store struct {
	journaltest.Memory

	mu      sync.Mutex
	seen    map[string]bool      // guarded by mu; run and stage
	onStage func(journal.Record) // guarded by mu
}

func (s *store) Save(ctx context.Context, r journal.Record) error {
	err := s.Memory.Save(ctx, r)
	s.mu.Lock()
	id, hook := r.ID+" "+string(r.Stage), s.onStage
	first := !s.seen[id]
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[id] = true
	s.mu.Unlock()
	if err == nil && first && hook != nil {
		hook(r)
	}
	return err
}

// onStage calls hook, on the run's own goroutine, the first time that a run reaches the stage.
func (f *fixture) onStage(stage journal.Stage, hook func(journal.Record)) {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	f.store.onStage = nil
	if hook != nil {
		f.store.onStage = func(r journal.Record) {
			if r.Stage == stage {
				hook(r)
			}
		}
	}
}

func (f *fixture) observe(e journal.Event) {
	f.mu.Lock()
	f.events = append(f.events, e)
	hook := f.onEvent
	f.mu.Unlock()
	if hook != nil {
		hook(e)
	}
}

// onStarted calls hook when the agent of a run has said that it started; see endless.
func (f *fixture) onStarted(hook func(key string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.onEvent = func(e journal.Event) {
		if e.Kind == journal.EventAgent && strings.TrimSpace(e.Text) == "started" {
			hook(e.Key)
		}
	}
}

func (f *fixture) pool() *pool.Pool {
	f.t.Helper()
	p, err := pool.New(f.Config)
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

func (f *fixture) sweep(ctx context.Context, keys ...string) pool.Summary {
	f.t.Helper()
	return f.sweepBy(ctx, f.pool(), keys...)
}

// sweepBy is sweep by an existing pool.
func (f *fixture) sweepBy(ctx context.Context, p *pool.Pool, keys ...string) pool.Summary {
	f.t.Helper()
	s, err := p.Sweep(ctx, keys...)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// save stores a record.
func (f *fixture) save(r journal.Record) {
	f.t.Helper()
	if err := f.Config.Run.Store.Save(f.t.Context(), r); err != nil {
		f.t.Fatal(err)
	}
}

// runs returns the records of an issue.
func (f *fixture) runs(key string) []journal.Record {
	f.t.Helper()
	runs, err := f.store.Find(context.WithoutCancel(f.t.Context()), journal.Query{Pool: f.Config.Run.Pool, Key: key})
	if err != nil {
		f.t.Fatal(err)
	}
	return runs
}

// one sweeps and returns the only run.
func (f *fixture) one(keys ...string) journal.Record {
	f.t.Helper()
	return f.only(f.sweep(f.t.Context(), keys...))
}

func (f *fixture) only(s pool.Summary) journal.Record {
	f.t.Helper()
	if len(s.Runs) != 1 {
		f.t.Fatalf("%d runs, want 1; skipped %+v, unavailable %v, broken %+v", len(s.Runs), s.Skipped, s.Unavailable, s.Broken)
	}
	return s.Runs[0]
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

// exists reports whether the checkout has the file.
func (f *fixture) exists(name string) bool {
	_, err := os.Stat(filepath.Join(f.repo, name))
	return err == nil
}

// commit commits everything in the checkout, as a person would.
func (f *fixture) commit(message string) {
	f.t.Helper()
	f.git(f.repo, "add", "-A")
	f.git(f.repo, "commit", "-qm", message)
}

// issue adds an issue that ralph may work; extra has more lines of front matter.
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

// labels returns the line of the issue with its labels.
func (f *fixture) labels(key string) string {
	f.t.Helper()
	for line := range strings.Lines(f.text(key)) {
		if strings.HasPrefix(line, "labels:") {
			return line
		}
	}
	return ""
}

func (f *fixture) git(dir string, args ...string) string {
	f.t.Helper()
	out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// clean fails the test if a claim is held, a worktree is left or a run is open.
func (f *fixture) clean() {
	f.t.Helper()
	claims, err := f.Config.Run.Repo.Claims(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	for key, c := range claims {
		if c.Err != nil || c.Holder.Run != "" || c.Record.Pending != nil {
			f.t.Errorf("claim of %s is left: %+v", key, c)
		}
	}
	if out := f.git(f.repo, "worktree", "list"); strings.Contains(out, "\n") {
		f.t.Errorf("worktrees are left:\n%s", out)
	}
	open, err := f.store.Find(context.Background(), journal.Query{Pool: f.Config.Run.Pool, Open: true})
	if err != nil || len(open) > 0 {
		f.t.Errorf("open runs are left: %+v %v", open, err)
	}
}

func lines(cmds ...string) []loop.Command {
	var out []loop.Command
	for _, c := range cmds {
		out = append(out, loop.Command{Line: c, Timeout: time.Minute})
	}
	return out
}

// outcomes returns the outcomes of a sweep by key.
func outcomes(s pool.Summary) map[string]journal.Outcome {
	out := map[string]journal.Outcome{}
	for _, r := range s.Runs {
		out[r.Key] = r.Verdict.Outcome
	}
	return out
}

// skips returns the codes of a sweep's skipped issues by key.
func skips(s pool.Summary) map[string]journal.SkipCode {
	out := map[string]journal.SkipCode{}
	for _, k := range s.Skipped {
		out[k.Issue.Key] = k.Skip.Code
	}
	return out
}

// pipe is a named pipe by which a command signals the test that it has begun.
type pipe struct {
	path string
	file *os.File
	t    *testing.T
}

func newPipe(t *testing.T) pipe {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0) // both ends, so that opening does not block
	if err != nil {
		t.Fatal(err)
	}
	return pipe{path, file, t}
}

// then calls do once something has been written.
func (p pipe) then(do func()) {
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if _, err := p.file.Read(make([]byte, 1)); err == nil {
			do()
		}
	})
	p.t.Cleanup(func() { _ = p.file.Close(); waiting.Wait() })
}
