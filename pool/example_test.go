package pool_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
)

// A service empties the backlog of a repository. The agent of this example is a line of shell; agents.Claude{} and
// agents.Codex{} take its place in real life.
func Example() {
	ctx := context.Background()
	dir, state := exampleRepository(), exampleState()
	defer os.RemoveAll(dir)
	defer os.RemoveAll(state)

	repo, err := worktree.Open(ctx, dir, worktree.Options{StateDir: state})
	if err != nil {
		panic(err)
	}
	journal, err := pool.OpenJournal(ctx, filepath.Join(state, "state.db"))
	if err != nil {
		panic(err)
	}
	defer journal.Close()
	backlog, err := local.New(local.Config{Dir: filepath.Join(dir, "backlog"), LockDir: state})
	if err != nil {
		panic(err)
	}

	workers, err := pool.New(pool.Config{
		Repo: repo, Journal: journal, Tracker: backlog, StateDir: state,
		Agent: agents.Command{},
		Options: agents.Options{Command: []string{"sh", "-c",
			`echo hello > hello.txt; git add .; git commit -qm "Say hello"; echo "<promise>COMPLETE</promise>"`}},
		Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}),
		Gate:      []loop.Command{{Line: "grep -q hello hello.txt"}},
	})
	if err != nil {
		panic(err)
	}
	summary, err := workers.Sweep(ctx)
	if err != nil {
		panic(err)
	}
	for _, run := range summary.Runs {
		fmt.Println(run.Key, run.Verdict.Outcome, run.Verdict.Commits, run.Branch)
	}
	// Output: say-hello succeeded 1 ralph/say-hello
}

// A Job is one prompt without a backlog; its commits are merged back into the branch that is checked out.
func ExampleJob() {
	ctx := context.Background()
	dir, state := exampleRepository(), exampleState()
	defer os.RemoveAll(dir)
	defer os.RemoveAll(state)

	repo, err := worktree.Open(ctx, dir, worktree.Options{StateDir: state})
	if err != nil {
		panic(err)
	}
	result, err := pool.Job{
		Repo:  repo,
		Agent: agents.Command{},
		Options: agents.Options{Command: []string{"sh", "-c",
			`cat > prompt.txt; git add .; git commit -qm "Note the prompt"; echo "<promise>COMPLETE</promise>"`}},
		Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}),
		Strategy:  pool.StrategyMerge,
		Prompt:    loop.Prompt{Inline: "Keep this."},
	}.Run(ctx)
	if err != nil {
		panic(err)
	}
	noted, err := os.ReadFile(filepath.Join(dir, "prompt.txt"))
	if err != nil {
		panic(err)
	}
	fmt.Println(result.End, len(result.Commits), result.Target, string(noted))
	// Output: done 1 main Keep this.
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
