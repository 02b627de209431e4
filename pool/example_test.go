package pool_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/job"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
)

// A service empties the backlog of a repository. The agent of this example is a line of shell; a real service uses
// agents.Claude{} or agents.Codex{}.
func Example() {
	ctx := context.Background()
	config, closeStore := exampleConfig(ctx)
	defer closeStore()
	backlog, err := local.New(local.Config{Dir: filepath.Join(config.Repo.Dir(), "backlog"), LockDir: config.Repo.StateDir()})
	if err != nil {
		panic(err)
	}
	config.Tracker = backlog
	config.Gate = []loop.Command{{Line: "grep -q hello hello.txt"}}
	config.Options = agents.Options{Command: []string{"sh", "-c",
		`echo hello > hello.txt; git add .; git commit -qm "Say hello"; echo "<promise>COMPLETE</promise>"`}}

	workers, err := pool.New(pool.Config{Run: config, Parallel: 2})
	if err != nil {
		panic(err)
	}
	summary, err := workers.Sweep(ctx)
	if err != nil {
		panic(err)
	}
	for _, r := range summary.Runs {
		fmt.Println(r.Key, r.Verdict.Outcome, r.Commits, r.Branch)
	}
	// Output: say-hello succeeded 1 ralph/say-hello
}

// A job is one prompt without a backlog; its commits are merged back into the branch that is checked out.
func Example_job() {
	ctx := context.Background()
	config, closeStore := exampleConfig(ctx)
	defer closeStore()
	config.Prompt = prompt.Prompt{Inline: "Keep this."}
	config.Options = agents.Options{Command: []string{"sh", "-c",
		`cat > prompt.txt; git add .; git commit -qm "Store the prompt"; echo "<promise>COMPLETE</promise>"`}}

	result, err := job.Job{Run: config, Strategy: job.StrategyMerge}.Do(ctx)
	if err != nil {
		panic(err)
	}
	stored, err := os.ReadFile(filepath.Join(config.Repo.Dir(), "prompt.txt"))
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Record.Verdict.Outcome, len(result.Commits), result.Record.Base, string(stored))
	// Output: succeeded 1 main Keep this.
}

// exampleConfig returns what every run needs: a repository, a journal, an agent, a sandbox provider and a state folder.
func exampleConfig(ctx context.Context) (config run.Config, closeStore func()) {
	dir, state := exampleRepository(), exampleState()
	repo, err := worktree.Open(ctx, dir, worktree.Options{StateDir: state})
	if err != nil {
		panic(err)
	}
	store, err := sqlite.Open(ctx, filepath.Join(state, "state.db"), nil)
	if err != nil {
		panic(err)
	}
	config = run.Config{
		Repo: repo, Store: store,
		Agent: agents.Command{}, Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}),
	}
	return config, func() {
		if err := store.Close(); err != nil {
			panic(err)
		}
		_ = os.RemoveAll(dir)
		_ = os.RemoveAll(state)
	}
}

// exampleRepository makes a repository with one issue.
func exampleRepository() string {
	dir, err := os.MkdirTemp("", "ralph-example-")
	if err != nil {
		panic(err)
	}
	issue := "---\ntitle: Say hello\nlabels: [no-human]\n---\nThere has to be a file that says hello.\n"
	for _, err := range []error{
		exec.Command("git", "init", "-q", "-b", "main", dir).Run(),
		exec.Command("git", "-C", dir, "commit", "-q", "--allow-empty", "-m", "Begin").Run(),
		os.Mkdir(filepath.Join(dir, "backlog"), 0o755),
		os.WriteFile(filepath.Join(dir, "backlog", "say-hello.md"), []byte(issue), 0o644),
	} {
		if err != nil {
			panic(err)
		}
	}
	return dir
}

func exampleState() string {
	dir, err := os.MkdirTemp("", "ralph-state-")
	if err != nil {
		panic(err)
	}
	return dir
}
