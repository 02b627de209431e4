package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Real processes: shell scripts in the "none" sandbox.

func TestProcessThatExitsEndsTheIterationAtOnce(t *testing.T) {
	t.Parallel()
	c := hostConfig(t, &recorder{}, "echo '"+sayDone+"'")
	r := Run(t.Context(), c) // otherwise this would take the minute of the grace
	wantEnd(t, r, EndDone)
	wantEnding(t, r, 1, EndingExit)
}

func TestGrandchildWithOpenStdoutDoesNotHoldTheRun(t *testing.T) {
	t.Parallel()
	c := hostConfig(t, &recorder{}, "sleep 1000 & echo $! >child; echo '"+sayDone+"'")
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	wantEnding(t, r, 1, EndingExit)
	wantGone(t, c, "child")
}

func TestIdleAgentIsKilledWithItsWholeTree(t *testing.T) {
	t.Parallel()
	c := hostConfig(t, &recorder{}, "sleep 1000 & echo $! >child; wait")
	c.MaxIterations = 1
	c.Timers.Idle = 300 * time.Millisecond
	c.Import = func(context.Context) (Work, error) {
		wantGone(t, c, "child") // the import begins after the process tree has ended
		return Work{Tip: "t", Commits: 1, New: 1}, nil
	}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndMaxIterations)
	wantEnding(t, r, 1, EndingIdle)
	if r.Work.Commits != 1 {
		t.Errorf("work %+v: the commits come back after the kill", r.Work)
	}
}

func TestHangAfterTheSignalCountsAsFinished(t *testing.T) {
	t.Parallel()
	c := hostConfig(t, &recorder{}, "sleep 1000 & echo $! >child; echo '"+sayDone+"'; wait")
	c.Timers.Grace = 50 * time.Millisecond
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	wantEnding(t, r, 1, EndingGrace)
	wantGone(t, c, "child")
}

// wantGone checks that no process has the PID that a script wrote to the file.
func wantGone(t *testing.T, c Config, file string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(workdir(c), file))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z") {
		t.Errorf("process %d still runs: %s", pid, out)
	}
}

func TestSignalWithNonZeroExitIsAFailedIteration(t *testing.T) {
	t.Parallel()
	c := hostConfig(t, &recorder{}, "echo '"+sayDone+"'; echo boom >&2; exit 3", "echo '"+sayDone+"'")
	c.Import = importCommits(1, 0)
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	it := wantEnding(t, r, 1, EndingExit)
	if it.Failure == nil || it.ExitCode != 3 || it.Signal != DefaultSignal || it.Commits != 1 {
		t.Errorf("first iteration %+v: want a failure with status 3 and its commit kept", it)
	}
	if len(r.Iterations) != 2 || r.Work.Commits != 1 {
		t.Errorf("%d iterations, work %+v", len(r.Iterations), r.Work)
	}
}

func TestExitBySignalIsNeverSuccess(t *testing.T) {
	t.Parallel()
	c := hostConfig(t, &recorder{}, "echo '"+sayDone+"'; kill -KILL $$")
	c.MaxIterations = 1
	r := Run(t.Context(), c)
	wantEnd(t, r, EndMaxIterations)
	if it := wantEnding(t, r, 1, EndingExit); it.ExitCode != 137 || it.Failure == nil || it.Failure.Class != agents.Killed {
		t.Errorf("iteration %+v", it)
	}
}

func TestInterruptAsksTheAgentToEndAndTakesItsCommitsBack(t *testing.T) {
	t.Parallel()
	// The script is in its loop when the event arrives; the trap shows that it was asked to end, not killed.
	c := hostConfig(t, &recorder{}, "trap 'echo asked >asked; exit 0' TERM; echo tool ready; while :; do sleep 0.01; done")
	interrupt := make(chan struct{})
	c.Interrupt = interrupt
	c.Observe = func(e Event) {
		if e.Kind == EventAgent && e.Agent.Kind == agents.EventTool {
			close(interrupt)
		}
	}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndInterrupted)
	wantEnding(t, r, 1, EndingInterrupted)
	if _, err := os.Stat(filepath.Join(workdir(c), "asked")); err != nil {
		t.Error("the agent was not asked to end")
	}
	if r.Work.Commits != 1 {
		t.Errorf("work %+v", r.Work)
	}
}

func TestCancelKillsAtOnceAndKeepsTheCause(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("claim is lost")
	c := hostConfig(t, &recorder{}, "trap '' TERM; echo $$ >child; echo tool ready; while :; do sleep 0.01; done")
	c.Observe = func(e Event) {
		if e.Kind == EventAgent {
			cancel(lost)
		}
	}
	r := Run(ctx, c)
	wantEnd(t, r, EndInterrupted)
	if !errors.Is(r.Err, lost) || r.Work.Commits != 1 {
		t.Errorf("error %v, work %+v", r.Err, r.Work)
	}
	wantGone(t, c, "child")
}

func TestAgentThatCannotStartEndsTheRun(t *testing.T) {
	t.Parallel()
	c := hostConfig(t, &recorder{})
	c.Agent, c.Import = missingAgent{}, importCommits(0)
	r := Run(t.Context(), c)
	wantEnd(t, r, EndUnavailable) // the same would happen to every other issue
	wantEnding(t, r, 1, EndingNotStarted)
	if !r.Iterations[0].UsedNothing {
		t.Error("a program that never started may have used something")
	}
	if r.Failure == nil || r.Failure.Class != agents.NotStarted || !strings.Contains(r.Failure.Message, "no-such-agent") {
		t.Errorf("failure %v, error %v", r.Failure, r.Err)
	}
}

type missingAgent struct{ scriptedAgent }

func (missingAgent) Invocation(agents.Request) (agents.Invocation, error) {
	return agents.Invocation{Argv: []string{"no-such-agent"}}, nil
}

// The result of a failed agent has the end of its standard error; that of a successful one does not.
func TestFailureHasStandardError(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"seq 60 >&2; exit 3":                      "11\n12\n",
		"echo oops >&2; printf '" + sayDone + "'": "",
	} {
		c := hostConfig(t, &recorder{}, script)
		c.MaxIterations = 1
		r := Run(t.Context(), c)
		if got := r.Iterations[0].Stderr; want == "" && got != "" || !strings.HasPrefix(got, want) || want != "" && !strings.HasSuffix(got, "\n60") {
			t.Errorf("%s: %q", script, got)
		}
	}
}

func TestRawOutputStreamsToFiles(t *testing.T) {
	t.Parallel()
	d := &recorder{}
	c := hostConfig(t, d, "cat >prompt; echo tool one; echo oops >&2; printf '"+sayDone+"'")
	c.Setup, c.Gate = []Command{{Line: "echo prepared"}}, []Command{{Line: "echo fine; echo also >&2"}}
	wantEnd(t, Run(t.Context(), c), EndDone)
	for name, want := range map[string]string{
		"agent-1.jsonl": "tool one\n" + sayDone, "agent-1.stderr": "oops\n",
		"setup-1.log": "prepared\n", "gate-1-1.log": "fine\nalso\n",
	} {
		if got := d.file(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got, _ := os.ReadFile(filepath.Join(workdir(c), "prompt")); string(got) != "do it" {
		t.Errorf("the agent read %q on stdin", got)
	}
}

func TestBrokenLogIsAWarningNotAFailure(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		stream func(string) (io.WriteCloser, error)
	}{
		{"cannot open", func(string) (io.WriteCloser, error) { return nil, errors.New("disk full") }},
		{"cannot write", func(string) (io.WriteCloser, error) { return fullDisk{}, nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := hostConfig(t, &recorder{}, "for i in 1 2 3; do echo tool $i; done; echo '"+sayDone+"'")
			c.Stream = tt.stream
			r := Run(t.Context(), c)
			wantEnd(t, r, EndDone)
			if len(r.Warnings) == 0 || !strings.Contains(r.Warnings[0], "disk full") {
				t.Errorf("warnings %q", r.Warnings)
			}
		})
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("disk full") }
func (fullDisk) Close() error              { return nil }

func TestRealGitCommitsAndGateAndFeedback(t *testing.T) {
	t.Parallel()
	d := &recorder{}
	var prompts []string
	c := hostConfig(t, d)
	dir := workdir(c)
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.org"}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("git %q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q", "-b", "main")
	git("commit", "-q", "--allow-empty", "-m", "start")
	base := git("rev-parse", "HEAD")
	c.Agent = scriptedAgent{prompts: &prompts, scripts: []string{
		"echo half >f && git add f && git commit -q -m half && echo use 10 && echo '" + sayDone + "'",
		"echo whole >f && git commit -q -a -m whole && echo use 5 && echo '" + sayDone + "'",
	}}
	c.Prompt = prompt.Prompt{Template: "{{feedback}}\nGo.\n"}
	c.Gate = []Command{{Line: "test -f f"}, {Line: "grep whole f || { echo 'not whole ~~~~~~'; exit 7; }"}}
	seen := 0
	c.Import = func(context.Context) (Work, error) {
		n, err := strconv.Atoi(git("rev-list", "--count", base+"..HEAD"))
		w := Work{Tip: git("rev-parse", "HEAD"), Commits: n, New: n - seen}
		seen = n
		return w, err
	}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	if len(r.Iterations) != 2 || r.Work.Commits != 2 || r.Iterations[0].Commits != 1 || r.Usage.Input != 15 {
		t.Errorf("result %+v", r)
	}
	if !r.GatePassed() || len(r.Gate) != 2 || r.Work.Tip != git("rev-parse", "main") {
		t.Errorf("gate %+v, work %+v", r.Gate, r.Work)
	}
	if prompts[0] != "Go.\n" {
		t.Errorf("first prompt %q", prompts[0])
	}
	for _, want := range []string{"grep whole f", "exit status 7", "~~~~~~~\nnot whole ~~~~~~\n~~~~~~~\n"} {
		if !strings.Contains(prompts[1], want) {
			t.Errorf("second prompt does not say %q:\n%s", want, prompts[1])
		}
	}
}

func TestLargeStreamStaysBounded(t *testing.T) {
	t.Parallel()
	c := hostConfig(t, &recorder{}, floodScript(20)+"; echo '"+sayDone+"'")
	c.Stream = nil
	var most uint64
	seen := 0
	c.Observe = func(e Event) {
		if e.Agent == nil {
			return
		}
		if size := len(e.Agent.Detail) + len(e.Agent.Text); size > eventText {
			t.Errorf("an event of %d bytes", size)
		}
		if seen++; seen%500 == 0 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	if seen < 2000 {
		t.Errorf("only %d events", seen)
	}
	if most > 16<<20 { // of a stream of 20 MiB, while other tests of the package run
		t.Errorf("%d MiB live while 20 MiB streamed", most>>20)
	}
}

// floodScript returns a script that prints mib MiB of tool output in lines of 8 KiB.
func floodScript(mib int) string {
	return fmt.Sprintf("l=$(head -c 8186 /dev/zero | tr '\\0' x); yes \"tool $l\" | head -n %d", mib*128)
}

func BenchmarkStream(b *testing.B) {
	const mib = 300
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	sb, err := none.Open(b.Context(), sandboxes.Spec{Run: "bench-stream", Worktree: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(mib << 20)
	b.ReportAllocs()
	for b.Loop() {
		r := Run(b.Context(), Config{
			Agent: scriptedAgent{scripts: []string{floodScript(mib) + "; echo '" + sayDone + "'"}}, Sandbox: sb,
			Prompt: prompt.Prompt{Inline: "x"}, Import: importCommits(1),
		})
		if r.End != EndDone {
			b.Fatal(r.End, r.Err)
		}
	}
}
