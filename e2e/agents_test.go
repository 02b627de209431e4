package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/sandboxes"
)

// verdict is the expected result of a loop.
type verdict struct {
	end     loop.End
	class   agents.Class // class of the failure; "": none
	commits int
	tools   int // minimum number of tool calls
	asked   int // minimum number of requests to the model
}

// Each scenario runs with the real programs. `make test` runs scenarios that are variations of another one with only one
// program, alternating between the two; tests of package agents replay each program's recorded output for them. `make soak`
// runs all with both.
func TestRealAgents(t *testing.T) {
	alone := map[string]string{
		"write": "claude", "large": "codex", "withdrawn": "claude", "flakylimit": "codex",
		"overload": "codex", "badrequest": "claude", "nomodel": "codex", "no-such-one": "claude",
	}
	for name, want := range map[string]verdict{
		"commit":      {end: loop.EndDone, commits: 1, tools: 1},
		"write":       {end: loop.EndDone, commits: 1, tools: 1},
		"tools":       {end: loop.EndDone, commits: 1, tools: 5},
		"large":       {end: loop.EndDone, commits: 1, tools: 1},
		"toolfail":    {end: loop.EndMaxIterations, tools: 1},
		"withdrawn":   {end: loop.EndMaxIterations, commits: 1, tools: 1},
		"nochange":    {end: loop.EndNoChange, tools: 1},
		"needsinfo":   {end: loop.EndNeedsInfo},
		"flaky":       {end: loop.EndDone, commits: 1, tools: 1, asked: 3},
		"flakylimit":  {end: loop.EndDone, commits: 1, tools: 1, asked: 3},
		"ratelimit":   {end: loop.EndUnavailable, class: agents.RateLimit},
		"overload":    {end: loop.EndUnavailable, class: agents.Overload},
		"late":        {end: loop.EndUnavailable, class: agents.Overload, commits: 1, tools: 1},
		"auth":        {end: loop.EndUnavailable, class: agents.Auth},
		"badrequest":  {end: loop.EndAgent, class: agents.BadRequest},
		"nomodel":     {end: loop.EndAgent, class: agents.ModelNotFound},
		"truncate":    {end: loop.EndUnavailable, class: agents.Overload},
		"no-such-one": {end: loop.EndAgent, class: agents.BadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			eachCLI(t, func(t *testing.T, c realCLI) {
				r := newRig(t, c, name)
				r.holdAgainst(t, r.run(t, nil), want)
			}, alone[name])
		})
	}
}

func (r *rig) holdAgainst(t *testing.T, res loop.Result, want verdict) {
	t.Helper()
	if res.End != want.end {
		t.Errorf("end %s, want %s", res.End, want.end)
	}
	if (res.Failure == nil) != (want.class == "") || res.Failure != nil && res.Failure.Class != want.class {
		t.Errorf("failure %v, want %q", res.Failure, want.class)
	}
	if res.Work.Commits != want.commits {
		t.Errorf("%d commits, want %d", res.Work.Commits, want.commits)
	}
	if n := r.saw(agents.EventTool); n < want.tools {
		t.Errorf("%d tools seen, want %d or more", n, want.tools)
	}
	if n := r.conversations(); n < want.asked {
		t.Errorf("the model was asked %d times, want %d or more", n, want.asked)
	}
	if n := r.saw(agents.EventUnknown); n > 0 {
		t.Errorf("%d events are unknown to the decoder", n)
	}
	if want.class == "" && res.Usage.Output == 0 {
		t.Errorf("no tokens counted: %+v", res.Usage)
	}
}

func TestRealAgentDoesTheIssueOfThePrompt(t *testing.T) {
	eachCLI(t, func(t *testing.T, c realCLI) {
		r := newRig(t, c, "issue")
		r.holdAgainst(t, r.run(t, nil), verdict{end: loop.EndDone, commits: 1, tools: 1})
		if got := r.repo.git(t, "show", "HEAD:issue-fix-it.txt"); got != "worked on fix-it" {
			t.Errorf("file %q", got)
		}
	})
}

// A failed gate becomes the next iteration's feedback, which makes the agent create the forgotten commit.
func TestRealAgentActsOnFeedback(t *testing.T) {
	eachCLI(t, func(t *testing.T, c realCLI) {
		r := newRig(t, c, "forgetful")
		res := r.run(t, func(c *loop.Config) {
			c.MaxIterations, c.Resume = 3, loop.ResumeNever
			c.Gate = []loop.Command{{Line: "git cat-file -e HEAD:issue-fix-it.txt"}}
		})
		if res.End != loop.EndDone || len(res.Iterations) != 2 || res.Work.Commits != 1 || !res.GatePassed() {
			t.Errorf("end %s after %d iterations with %d commits, gate %+v", res.End, len(res.Iterations), res.Work.Commits, res.Gate)
		}
		if a, b := res.Iterations[0].Session, res.Iterations[len(res.Iterations)-1].Session; a == "" || a == b {
			t.Errorf("sessions %q and %q: each iteration has a fresh one", a, b)
		}
	})
}

// Feedback continues the session of the last iteration, without repeating the task and its cost. A lost or damaged session
// costs no iteration.
func TestRealAgentResumesOnFeedback(t *testing.T) {
	for name, harm := range map[string]string{
		"kept": "",
		"gone": `find "$HOME/.claude/projects" "$HOME/.codex/sessions" -name '*.jsonl' -delete 2>/dev/null`,
		"damaged": `find "$HOME/.claude/projects" "$HOME/.codex/sessions" -name '*.jsonl' 2>/dev/null |
			while read -r f; do echo '{' > "$f"; done`,
	} {
		t.Run(name, func(t *testing.T) {
			eachCLI(t, func(t *testing.T, c realCLI) {
				r := newRig(t, c, "forgetful")
				res := r.run(t, func(c *loop.Config) {
					c.MaxIterations = 2
					c.Prompt.Template = "Work on issue fix-it.\n" + strings.Repeat("The rules of this project are long. ", 100) + "\nFeedback: {{feedback}}\n"
					c.Gate = []loop.Command{{Line: "git cat-file -e HEAD:issue-fix-it.txt"}}
					take := c.Import
					c.Import = func(ctx context.Context) (loop.Work, error) {
						_, err := r.sandbox.Exec(ctx, sandboxes.Command{Argv: []string{"sh", "-c", harm}})
						work, terr := take(ctx)
						return work, errors.Join(err, terr)
					}
				})
				if res.End != loop.EndDone || len(res.Iterations) != 2 || res.Work.Commits != 1 {
					t.Fatalf("end %s after %d iterations with %d commits", res.End, len(res.Iterations), res.Work.Commits)
				}
				kept := harm == ""
				first, second := res.Iterations[0], res.Iterations[1]
				if (first.Session == second.Session) != kept || second.Resumed != kept || (len(res.Warnings) == 0) != kept {
					t.Errorf("sessions %s and %s, resumed %v, warnings %q", first.Session, second.Session, second.Resumed, res.Warnings)
				}
				if second.Usage.Tokens() > first.Usage.Tokens() {
					t.Errorf("used %+v after %+v, for as many requests", second.Usage, first.Usage)
				}
				asked := r.told()
				if n := len(asked); n != 2 || strings.Contains(asked[n-1], "The rules of this project") == kept {
					t.Errorf("the model was told %d times, at last %d bytes:\n%.600s", n, len(asked[n-1]), asked[n-1])
				}
			})
		})
	}
}

// told returns the prompts that the model received, without consecutive duplicates.
func (r *rig) told() (list []string) {
	for _, q := range r.model.Requests() {
		if q.Prompt != "" && (len(list) == 0 || list[len(list)-1] != q.Prompt) {
			list = append(list, q.Prompt)
		}
	}
	return list
}

// A tool that the agent's own permissions deny is denied in every iteration, so one iteration is enough.
func TestRealAgentWithoutPermission(t *testing.T) {
	eachCLI(t, func(t *testing.T, c realCLI) {
		if c.program != "claude" {
			t.Skip("codex runs commands in a sandbox of its own and denies none")
		}
		r := newRig(t, c, "commit")
		res := r.run(t, func(c *loop.Config) { c.Options.SkipPermissions, c.MaxIterations = false, 3 })
		if res.End != loop.EndDenied || len(res.Iterations) != 1 || res.Denied[0].Tool != "Bash" || r.saw(agents.EventDenied) == 0 {
			t.Errorf("end %s after %d iterations, denied %+v", res.End, len(res.Iterations), res.Denied)
		}
		if n := r.saw(agents.EventUnknown); n > 0 {
			t.Errorf("%d unknown events", n)
		}
	})
}

// conversations counts the requests for a message of the model.
func (r *rig) conversations() int {
	n := 0
	for _, q := range r.model.Requests() {
		if q.Prompt != "" {
			n++
		}
	}
	return n
}

// A session continues in the same program by its id.
func TestRealAgentResumes(t *testing.T) {
	eachCLI(t, func(t *testing.T, c realCLI) {
		r := newRig(t, c, "resume")
		first := r.once(t, agents.Request{Prompt: "Begin, please.", Options: r.options()})
		if first.Failure != nil || first.Session == "" {
			t.Fatalf("first: %+v", first)
		}
		second := r.once(t, agents.Request{Prompt: "Now go on.", Options: r.options(), Session: first.Session})
		if second.Failure != nil || second.Session != first.Session {
			t.Errorf("resumed: %+v, want session %s", second, first.Session)
		}
		if n := len(r.repo.lines(t, "rev-list", r.base+"..HEAD")); n != 1 {
			t.Errorf("%d commits, want the one of the second turn", n)
		}
		rs := r.model.Requests()
		if last := rs[len(rs)-1]; !bytes.Contains(last.Body, []byte("Begin, please.")) {
			t.Error("the resumed session does not know its first turn")
		}
	})
}

// once runs one process of the agent.
func (r *rig) once(t *testing.T, q agents.Request) agents.Report {
	t.Helper()
	inv, err := r.agent.Invocation(q)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	exit, err := r.sandbox.Exec(t.Context(), sandboxes.Command{
		Argv: inv.Argv, Env: inv.Env, Stdin: strings.NewReader(inv.Stdin), Stdout: &out, Stderr: &errs,
	})
	if err != nil {
		t.Fatal(err)
	}
	d := r.agent.NewDecoder()
	for line := range bytes.Lines(out.Bytes()) {
		d.Line(bytes.TrimSuffix(line, []byte("\n")))
	}
	return d.Finish(agents.Ending{ExitCode: exit.Code, Signal: exit.Signal, StderrTail: errs.String()})
}

// A stalled model triggers the idle timeout, and no process of the agent is left.
func TestRealAgentHangs(t *testing.T) {
	eachCLI(t, func(t *testing.T, c realCLI) {
		// On a busy machine the program's own start may take longer than a short idle timeout.
		for idle := 4 * time.Second; ; idle *= 2 {
			r := newRig(t, c, "hang")
			res := r.run(t, func(c *loop.Config) { c.Timers.Idle = idle })
			if len(res.Iterations) != 1 || res.Iterations[0].Ending != "idle-timeout" || res.Iterations[0].Failure == nil {
				t.Fatalf("iterations %+v, want one that ends by idle-timeout", res.Iterations)
			}
			if r.conversations() > 0 {
				return
			}
			if idle > time.Minute {
				t.Fatal("the model was never asked: something else hung")
			}
		}
	})
}

// A signal to the agent's process alone kills it while its tool runs. The iteration fails, and neither the agent nor its
// tool is left.
func TestRealAgentKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			eachCLI(t, func(t *testing.T, c realCLI) {
				r := newRig(t, c, "sleep")
				done := make(chan loop.Result, 1)
				go func() { done <- r.run(t, nil) }()
				awaitFile(t, filepath.Join(string(r.repo), "started"))
				if err := syscall.Kill(r.leader(t), sig); err != nil {
					t.Error(err)
				}
				res := <-done
				if len(res.Iterations) != 1 || res.Iterations[0].Failure == nil || res.Iterations[0].Ending != "exit" {
					t.Fatalf("iterations %+v, want one that failed", res.Iterations)
				}
				if sig != syscall.SIGINT && res.Iterations[0].Failure.Class != agents.Killed {
					t.Errorf("failure %v, want that it was killed", res.Iterations[0].Failure)
				}
				if res.End == loop.EndDone || res.End == loop.EndUnavailable {
					t.Errorf("end %s", res.End)
				}
			})
		})
	}
}

// leader returns the agent's own process: the marked one that this process has started.
func (r *rig) leader(t *testing.T) int {
	t.Helper()
	all := processesWith(t, r.mark)
	for _, p := range all {
		if p.parent == os.Getpid() {
			return p.pid
		}
	}
	t.Fatalf("no process of the agent is a child of this one: %s", describe(all))
	return 0
}

// An interrupt ends the agent and its tool, and keeps the commits made before.
func TestRealAgentInterrupted(t *testing.T) {
	eachCLI(t, func(t *testing.T, c realCLI) {
		r := newRig(t, c, "sleep")
		stop := make(chan struct{})
		done := make(chan loop.Result, 1)
		go func() { done <- r.run(t, func(c *loop.Config) { c.Interrupt = stop }) }()
		awaitFile(t, filepath.Join(string(r.repo), "started"))
		close(stop)
		if res := <-done; res.End != loop.EndInterrupted {
			t.Errorf("end %s", res.End)
		}
	})
}
