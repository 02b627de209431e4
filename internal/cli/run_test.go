package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// readFrom calls asked at each Read.
type readFrom struct {
	io.Reader
	asked func()
}

func (r readFrom) Read(p []byte) (int, error) {
	r.asked()
	return r.Reader.Read(p)
}

// Ctrl-C ends the wait for a prompt on standard input.
func TestInterruptWhileThePromptIsRead(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	in, keyboard := io.Pipe()
	interrupt := make(chan struct{})
	got := m.run(t, func(h *compose.Host) {
		h.Stdin, h.Interrupt = readFrom{in, func() { close(interrupt) }}, interrupt
	}, "run", "--prompt-file=-", "--sandbox=none", "--agent-command=true")
	if got.status != 130 {
		t.Errorf("got %+v", got)
	}
	if err := keyboard.Close(); err != nil { // ends the reader, which otherwise lasts as long as the process
		t.Error(err)
	}
}

// The last 50 lines of a failed agent's standard error are shown, without control sequences.
func TestRunShowsStandardError(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "f", "x")
	m.commit(t)
	script := m.program(t, "agent", "seq 60 >&2; printf 'no \\033[31mquota' >&2; exit 3\n")
	got := m.run(t, nil, "run", "--prompt=hi", "--sandbox=none", "--skip-permissions", "--agent=command", "--agent-command="+filepath.Join(script, "agent"))
	_, end, found := strings.Cut(got.stderr, "the end of its standard error:\n")
	lines := strings.Split(end, "\n")
	if !found || got.status == exit.OK || len(lines) < 50 || lines[0] != "12" || lines[48] != "60" || !strings.HasPrefix(lines[49], "no ") || strings.Contains(end, "\x1b") {
		t.Errorf("status %d, it shows %q", got.status, got.stderr)
	}
}

// The agents of attempts do not replace the agent of a single prompt.
func TestRunTakesItsAgentAndNotThatOfAttempts(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "f", "x")
	m.commit(t)
	got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "RALPH_ATTEMPTS=codex") }, "run", "--prompt=hi", "--sandbox=none", "--skip-permissions", "--agent-command=echo '<promise>COMPLETE</promise>'")
	if got.status != exit.OK {
		t.Errorf("got %+v", got)
	}
}

// The files of the setting copy are copied into a prompt's worktree, but not into the checkout, which has them.
func TestRunCopies(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".gitignore", ".env\n")
	m.commit(t)
	m.write(t, ".env", "SECRET=x\n")
	for _, strategy := range []string{"head", "merge-to-head"} {
		got := m.run(t, func(h *compose.Host) { h.Env = append(h.Env, "RALPH_COPY=.env") }, "run", "--prompt=hi", "--sandbox=none", "--skip-permissions",
			"--branch-strategy="+strategy, "--agent-command=cat .env")
		if got.status != exit.OK {
			t.Errorf("%s: got %+v", strategy, got)
		}
	}
	got := m.run(t, nil, "run", "--prompt=hi", "--sandbox=none", "--skip-permissions", "--copy=.env", "--branch-strategy=head", "--agent-command=true")
	if got.status != exit.Usage || !strings.Contains(got.stderr, "--copy needs a worktree") {
		t.Errorf("the flag without a worktree: got %+v", got)
	}
}

// Each result of the gate says where it ran, so that no line looks like a repetition.
func TestRunSaysWhereTheGateRan(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "f", "x")
	m.commit(t)
	agent := filepath.Join(m.program(t, "agent", "echo more >>f; git -c user.name=a -c user.email=a@example.org commit -qam more; echo '<promise>COMPLETE</promise>'\n"), "agent")
	got := m.run(t, nil, "run", "--prompt=hi", "--sandbox=none", "--skip-permissions", "--branch-strategy=merge-to-head", "--agent-command="+agent, "--gate=true")
	var told []string
	for line := range strings.Lines(got.stderr) {
		if strings.HasPrefix(line, "gate") {
			told = append(told, strings.TrimSpace(line))
		}
	}
	if want := "gate: true: exit status 0|gate on a clean checkout: true: exit status 0"; got.status != exit.OK || strings.Join(told, "|") != want {
		t.Errorf("%q, got %+v", told, got)
	}
}

// After commits on a branch, the output says how to look at them and how to merge them.
func TestRunSaysWhatToTypeForItsBranch(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "f", "x")
	m.commit(t)
	agent := filepath.Join(m.program(t, "agent", "echo more >>f; git -c user.name=a -c user.email=a@example.org commit -qam more; echo '<promise>COMPLETE</promise>'\n"), "agent")
	key := regexp.MustCompile("To look: ralph diff ([a-z0-9-]+)")
	for gate, merge := range map[string]string{"true": "; to merge: git merge a/true\n", "false": "\n"} {
		got := m.run(t, nil, "run", "--prompt=hi", "--sandbox=none", "--skip-permissions", "--branch-strategy=branch", "--branch=a/"+gate,
			"--agent-command="+agent, "--gate="+gate, "--max-iterations=1")
		found := key.FindStringSubmatch(got.stderr)
		if found == nil || !strings.Contains(got.stderr, found[0]+merge) {
			t.Errorf("gate %s: %+v", gate, got)
			continue
		}
		if shown := m.run(t, nil, "diff", found[1]); shown.status != exit.OK || !strings.Contains(shown.stdout, "+xmore") {
			t.Errorf("ralph diff %s: %+v", found[1], shown)
		}
	}
}

// An invalid agent is refused before the prompt is read from standard input.
func TestRunRefusesAnAgentBeforeItReadsThePrompt(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	asked := false
	got := m.run(t, func(h *compose.Host) {
		h.Stdin = readFrom{strings.NewReader("hi"), func() { asked = true }}
	}, "run", "--prompt-file=-", "--sandbox=none", "--agent-command=true", "--fallback=no-such")
	if got.status != exit.Usage || asked {
		t.Errorf("got %+v, the prompt was read: %v", got, asked)
	}
}

// Wrong usage is refused before the agent's program is looked for, and leaves no run behind.
func TestRunRefusesWrongUsageFirst(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "f", "x")
	m.commit(t)
	for want, args := range map[string][]string{
		"--prompt-file: open ROOT/repo/nofile":                        {"--prompt-file=nofile"},
		`--branch-strategy: "foo" is not one of `:                     {"--prompt=x", "--branch-strategy=foo"},
		`"a b" is not a valid branch name`:                            {"--prompt=x", "--branch-strategy=branch", "--branch=a b"},
		"--branch-strategy branch needs a branch name: --branch NAME": {"--prompt=x", "--branch-strategy=branch"},
	} {
		got := m.run(t, nil, append([]string{"run", "--sandbox=none", "--agent-command=no-such-program"}, args...)...)
		if got.status != exit.Usage || !strings.Contains(got.stderr, want) {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := m.run(t, nil, "status"); strings.Contains(got.stdout, "failed") {
		t.Errorf("a run is left: %+v", got)
	}
	m.git(t, "checkout", "-q", "--detach")
	for _, args := range [][]string{
		{"run", "--prompt=x", "--sandbox=none", "--branch-strategy=merge-to-head", "--agent-command=true"}, {"sandbox", "exec", "--sandbox=none", "--", "true"},
	} {
		if got := m.run(t, nil, args...); got.status != exit.Usage || !strings.Contains(got.stderr, "no branch is checked out") {
			t.Errorf("detached, %v: %+v", args, got)
		}
	}
}

// A run whose agent lacked a permission says which, and how to grant it.
func TestRunSaysWhatWasDenied(t *testing.T) {
	t.Parallel()
	stream, err := os.ReadFile("../../agents/testdata/streams/claude/permission-denied.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	m := newMachine(t)
	m.write(t, "f", "x")
	m.commit(t)
	if err := os.WriteFile(filepath.Join(m.root, "stream"), stream, 0o600); err != nil {
		t.Fatal(err)
	}
	bin := m.program(t, "claude", "cat >/dev/null; cat "+m.root+"/stream\n")
	got := m.run(t, func(h *compose.Host) {
		h.Env = []string{"HOME=" + m.home, "PATH=" + bin + ":" + os.Getenv("PATH"), "ANTHROPIC_API_KEY=x"}
	}, "run", "--prompt=hi", "--sandbox=none", "--commit-author=A <a@b.c>", "--agent=claude-code")
	if !strings.Contains(got.stderr, "warning: the agent was not allowed to use ") || !strings.Contains(got.stderr, "allow it with --skip-permissions") {
		t.Errorf("%+v", got)
	}
}

// A git that was killed in the gate leaves no lock in the worktree of a branch: the next run's git would fail.
func TestGateLeavesNoLocks(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, "a.txt", "a\n")
	m.commit(t)
	program := m.program(t, "agent", "cat >/dev/null; echo x >>x.txt; git add .; git -c user.name=a -c user.email=a@b commit -qm x; echo '<promise>COMPLETE</promise>'\n")
	for range 2 {
		got := m.run(t, nil, "run", "--sandbox=none", "--commit-author=A <a@b.c>", "--prompt=hi", "--branch-strategy=branch", "--branch=topic", "--skip-permissions",
			"--agent-command="+program+"/agent", "--gate="+`touch "$(git rev-parse --git-dir)/index.lock"`)
		if got.status != 0 {
			t.Fatalf("%+v", got)
		}
		locks, err := filepath.Glob(filepath.Join(m.repo, ".git", "worktrees", "*", "index.lock"))
		if err != nil || len(locks) > 0 {
			t.Errorf("%v, %v", locks, err)
		}
	}
}
