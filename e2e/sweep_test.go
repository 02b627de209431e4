package e2e

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/e2e/scripted"
)

// scene is like a separate host for ralph processes: state, home, script and log of the scripted agent.
type scene struct {
	dir  string
	mark string // in the environment of ralph and of everything that it starts
}

func newScene(t testing.TB, script string) scene {
	t.Helper()
	dir := t.TempDir()
	s := scene{dir: dir, mark: "E2E_TEST_SCENE=" + dir}
	if err := os.WriteFile(s.path("agent.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scripted.Parse(strings.NewReader(script)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // leftovers of the test, whether it passed or not
		for _, p := range processesWith(t, s.mark) {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
	})
	return s
}

// path returns the path of a file in the scene.
func (s scene) path(name string) string { return filepath.Join(s.dir, name) }

// env returns the environment of ralph in the scene.
func (s scene) env(extra ...string) []string {
	env := []string{
		s.mark, "PATH=" + os.Getenv("PATH"), "GORACE=" + os.Getenv("GORACE"), "TMPDIR=" + os.TempDir(), "TERM=dumb",
		"HOME=" + s.path("home"), "XDG_STATE_HOME=" + s.path("state"), "XDG_CONFIG_HOME=" + s.path("config"),
		"RALPH_AGENT=command", "RALPH_SANDBOX=none",
		fmt.Sprintf("RALPH_AGENT_COMMAND=scripted-agent --script '%s' --log '%s'", s.path("agent.yaml"), s.path("starts")),
	}
	return append(append(env, gitEnv()...), extra...)
}

// ralph is a ralph process.
type ralph struct {
	*exec.Cmd
	out bytes.Buffer
}

// start starts ralph in the repository.
func (s scene) start(t testing.TB, r repository, env []string, args ...string) *ralph {
	t.Helper()
	return launch(t, r, s.env(env...), args...)
}

// launch starts ralph with exactly this environment. RALPH_TEST_PROGRAM names another program to test.
func launch(t testing.TB, r repository, env []string, args ...string) *ralph {
	t.Helper()
	program, err := exec.LookPath(cmp.Or(os.Getenv("RALPH_TEST_PROGRAM"), "ralph"))
	if err != nil {
		t.Fatal(err)
	}
	return launchAs(t, []string{program}, r, env, args...)
}

// launchAs starts ralph with a program and its first arguments.
func launchAs(t testing.TB, program []string, r repository, env []string, args ...string) *ralph {
	t.Helper()
	p := &ralph{Cmd: exec.Command(program[0], append(slices.Clone(program[1:]), args...)...)}
	p.Dir, p.Env, p.Stdout, p.Stderr = string(r), env, &p.out, &p.out
	// A separate process group, as from cron: a signal to ralph must not reach its agents.
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// end waits for ralph and returns its exit status, or minus the signal that ended it.
func (p *ralph) end(t testing.TB) int {
	t.Helper()
	err := p.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	t.Logf("%s: %s\n%s", strings.Join(p.Args[1:], " "), p.ProcessState, p.out.String())
	if ws := p.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		return -int(ws.Signal())
	}
	return p.ProcessState.ExitCode()
}

// sweep runs ralph work to its end and checks the exit status.
func (s scene) sweep(t testing.TB, r repository, want int, args ...string) {
	t.Helper()
	if got := s.start(t, r, nil, append([]string{"work"}, args...)...).end(t); got != want {
		t.Fatalf("ralph work: status %d, want %d", got, want)
	}
}

// starts counts the starts of the scripted agent by issue.
func (s scene) starts(t testing.TB) map[string]int {
	t.Helper()
	log, err := scripted.ReadLog(s.path("starts"))
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, start := range log {
		count[start.Key]++
	}
	return count
}

// clean fails the test if ralph has left anything except branches and its records: a process, a claim that still holds, or a
// worktree.
func (s scene) clean(t testing.TB, rs ...repository) {
	t.Helper()
	noneLeft(t, s.mark)
	for _, r := range rs {
		if trees := r.lines(t, "worktree", "list", "--porcelain"); strings.Count(strings.Join(trees, "\n")+"\n", "worktree ") > 1 {
			t.Errorf("%s: worktrees are left:\n%s", r, strings.Join(trees, "\n"))
		}
		if held := strings.Join(r.lines(t, "for-each-ref", "--format=%(contents)", "refs/ralph/claims"), "\n"); strings.Contains(held, `"expires"`) {
			t.Errorf("%s: claims are left:\n%s", r, held)
		}
		if out, err := r.try("fsck", "--strict", "--no-dangling"); err != nil {
			t.Errorf("%s: fsck: %v\n%s", r, err, out)
		}
	}
}

// backlog writes n issues that ralph may work, commits them and returns their keys.
func (r repository) backlog(t testing.TB, n int) []string {
	t.Helper()
	var keys []string
	for i := range n {
		key := fmt.Sprintf("issue-%02d", i+1)
		r.write(t, ".ralph/backlog/"+key+".md", fmt.Sprintf(
			"---\ntitle: Issue %d\nlabels: [no-human]\nstate: open\nauthor: ada\ncreated: 2026-01-01\n---\n\nDo number %d.\n", i+1, i+1))
		keys = append(keys, key)
	}
	r.commit(t, "a backlog")
	return keys
}

// commits returns the number of commits on the branch that are not on main.
func (r repository) commits(t testing.TB, branch string) int {
	t.Helper()
	return len(r.lines(t, "rev-list", "main.."+branch))
}

// doIt is a script that completes every issue in one iteration.
const doIt = `
issues:
  "*":
    - - write: {path: "done/{{key}}.txt", text: "{{title}}\n"}
      - commit: "Do {{key}}"
      - say: <promise>COMPLETE</promise>
`
