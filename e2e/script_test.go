package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ralph-pool/ralph/e2e/scripted"
)

// Each script runs like a separate host: $WORK/repo is the repository, $WORK/agent.yaml the script of the scripted agent.
//
// Additional commands of testscript:
//
//	repo [DIR]           make DIR (default repo) a git repository with everything in it committed
//	starts KEY N         the agent was started N times for the issue
//	commits BRANCH N     the branch of repo has N commits that main has not
//	status N CMD ARG…    run the command, want exit status N; its output is in stdout and stderr
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, gitEnv()...)
			env.Vars = append(env.Vars,
				"GORACE="+os.Getenv("GORACE"), "TERM=dumb",
				"HOME="+filepath.Join(env.WorkDir, ".home"), "XDG_STATE_HOME="+filepath.Join(env.WorkDir, ".state"),
				"RALPH_AGENT=command", "RALPH_SANDBOX=none",
				fmt.Sprintf("RALPH_AGENT_COMMAND=scripted-agent --script '%s/agent.yaml' --log '%s/starts'", env.WorkDir, env.WorkDir),
			)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"repo": scriptRepo, "starts": scriptStarts, "commits": scriptCommits, "status": scriptStatus,
		},
	})
}

func scriptRepo(ts *testscript.TestScript, neg bool, args []string) {
	dir := "repo"
	if len(args) > 0 {
		dir = args[0]
	}
	if neg || len(args) > 1 {
		ts.Fatalf("usage: repo [DIR]")
	}
	for _, git := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"commit", "--quiet", "--allow-empty", "--message", "start"},
	} {
		ts.Check(ts.Exec("git", append([]string{"-C", ts.MkAbs(dir)}, git...)...))
	}
}

func scriptStarts(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: starts KEY N")
	}
	log, err := scripted.ReadLog(ts.MkAbs(filepath.Join(ts.Getenv("WORK"), "starts")))
	ts.Check(err)
	n := 0
	for _, s := range log {
		if s.Key == args[0] {
			n++
		}
	}
	if strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s was started %d times, want %s", args[0], n, args[1])
	}
}

func scriptCommits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: commits BRANCH N")
	}
	cmd := exec.Command("git", "-C", filepath.Join(ts.Getenv("WORK"), "repo"), "rev-list", "--count", "main.."+args[0])
	cmd.Env = append(os.Environ(), gitEnv()...)
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != args[1]+"\n" {
		ts.Fatalf("%s has %s commits, want %s: %v", args[0], out, args[1], err)
	}
}

func scriptStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N CMD ARG…")
	}
	err := ts.Exec(args[1], args[2:]...) // its output goes to the log, and to the matches of stdout and stderr
	status := 0
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		status = exit.ExitCode()
	}
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("%s ended with status %d, want %s", args[1], status, args[0])
	}
}
