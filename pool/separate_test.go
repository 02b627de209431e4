package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/worktree"
)

// binding is a provider whose commands see the private repository in the place of the worktree's own, as behind a
// mount. It holds nothing else back.
type binding struct {
	*sandboxes.None
	opened func(sandboxes.Spec)
}

func newBinding(opened func(sandboxes.Spec)) binding {
	return binding{sandboxes.NewNone(sandboxes.NoneConfig{}), opened}
}

func (binding) Name() string { return "binding" }

func (binding) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Bind, Isolation: sandboxes.Namespaces}
}

func (b binding) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if b.opened != nil {
		b.opened(spec)
	}
	spec.Env = append(slices.Clip(spec.Env), "GIT_DIR="+spec.GitDir, "GIT_WORK_TREE="+spec.Worktree)
	return b.None.Open(ctx, spec)
}

func TestPrivateRepositoryOfARun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits+`; echo undone > undone.txt; touch "$GIT_DIR/hooks/post-commit"`)
	var spec sandboxes.Spec
	f.Config.Sandboxes = newBinding(func(s sandboxes.Spec) { spec = s })
	f.Config.Gate = lines(`git diff --quiet HEAD -- "$RALPH_ISSUE_KEY.txt" && test "$(git log --oneline main..HEAD | wc -l)" -eq 1`)
	f.issue("a")
	rec := f.only(f.sweep(context.Background()))
	if rec.Verdict.Outcome != pool.Succeeded || rec.Verdict.Commits != 1 || rec.Verdict.WIP == "" {
		t.Fatalf("verdict %+v", rec.Verdict)
	}
	if text := f.git(f.repo, "show", "ralph/a:a.txt"); text != "work" {
		t.Errorf("a.txt is %q", text)
	}
	if text := f.git(f.repo, "show", rec.Verdict.WIP+":undone.txt"); text != "undone" {
		t.Errorf("undone.txt is %q", text)
	}
	if want := filepath.Join(f.repo, ".git", "objects"); !slices.Equal(spec.Objects, []string{want}) {
		t.Errorf("objects %v, want %s", spec.Objects, want)
	}
	if _, err := os.Stat(spec.GitDir); !os.IsNotExist(err) {
		t.Errorf("private repository is left: %v", err)
	}
	f.clean()
}

// TestPrivateRepositoryMerged rebases onto a base that has moved, and gates again inside.
func TestPrivateRepositoryMerged(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Sandboxes = newBinding(nil)
	f.Config.Publish, f.Config.Parallel = pool.PublishMerge, 3
	f.Config.Gate = lines(`test -z "$(git status --porcelain)" && git merge-base --is-ancestor main HEAD`)
	for _, key := range []string{"a", "b", "c"} {
		f.issue(key)
	}
	for _, rec := range f.sweep(context.Background()).Runs {
		if rec.Verdict.Outcome != pool.Succeeded {
			t.Errorf("%s: %+v", rec.Key, rec.Verdict)
		}
	}
	if names := f.git(f.repo, "ls-tree", "--name-only", "main"); names != ".gitignore\nREADME\na.txt\nb.txt\nc.txt" {
		t.Errorf("main has %s", names)
	}
	f.clean()
}

// TestDeadRunWithPrivateRepository finds commits that are nowhere but in the private repository of a run whose ralph,
// and whose sandbox, are gone.
func TestDeadRunWithPrivateRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t, commits)
	f.Config.Sandboxes = newBinding(nil)
	f.issue("a")
	ctx := context.Background()
	base, err := f.Config.Repo.Base(ctx, "main")
	if err != nil {
		t.Fatal(err)
	}
	tree, err := f.Config.Repo.Add(ctx, worktree.Spec{Run: "dead", Key: "a", Branch: "ralph/a", Base: base})
	if err != nil {
		t.Fatal(err)
	}
	repo, err := tree.Private(ctx)
	if err != nil {
		t.Fatal(err)
	}
	f.git(f.repo, "--git-dir="+repo.Dir, "--work-tree="+tree.Dir(), "commit", "-q", "--allow-empty", "-m", "before the crash")
	rec := f.only(f.sweep(ctx))
	if rec.Verdict.Outcome != pool.Succeeded {
		t.Fatalf("verdict %+v", rec.Verdict)
	}
	if log := f.git(f.repo, "log", "--format=%s", "main..ralph/a"); log != "work on a\nbefore the crash" {
		t.Errorf("log: %s", log)
	}
	f.clean()
}

func TestJobWithPrivateRepository(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	j := pool.Job{
		Repo: f.Config.Repo, Agent: agents.Command{}, Sandboxes: newBinding(nil), Strategy: pool.StrategyBranch, Branch: "topic",
		Options: agents.Options{Command: []string{"sh", "-c", `echo x >> x; git add -A; git commit -qm "$RALPH_RUN"; echo "<promise>COMPLETE</promise>"`}},
		Prompt:  loop.Prompt{Inline: "do it"},
	}
	for n := 1; n <= 3; n++ {
		if n == 3 {
			j.Sandboxes = sandboxes.NewNone(sandboxes.NoneConfig{})
		}
		res, err := j.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if got := len(strings.Fields(f.git(f.repo, "rev-list", "main..topic"))); got != n || len(res.Commits) != n {
			t.Errorf("job %d: %d commits on the branch, result %+v", n, got, res.Commits)
		}
	}
}
