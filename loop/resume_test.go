package loop

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/sandboxes"
)

// sessionAgent is an agent with sessions, whose IDs begin with "s".
type sessionAgent struct {
	scriptedAgent
	requests *[]agents.Request
}

func (sessionAgent) Describe() agents.Description {
	return agents.Description{Program: "sh", Models: true, IsSessionID: func(id string) bool { return strings.HasPrefix(id, "s") }}
}

func (m sessionAgent) Invocation(r agents.Request) (agents.Invocation, error) {
	*m.requests = append(*m.requests, r)
	return m.scriptedAgent.Invocation(r)
}

// resumeConfig returns a run whose nth agent process prints the nth element of says. The gate fails before process number passes.
func resumeConfig(passes int, says ...[]any) (Config, *[]agents.Request) {
	asked, n := &[]agents.Request{}, 0
	c := fakeConfig(fakeSandbox{
		agent: func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
			n++
			lines := says[min(n, len(says))-1]
			return printLines(false, lines...)(ctx, cmd)
		},
		shell: func(context.Context, sandboxes.Command) (sandboxes.Exit, error) {
			if n < passes {
				return sandboxes.Exit{Code: 1}, nil
			}
			return sandboxes.Exit{}, nil
		},
	}, &recorder{})
	c.Agent, c.Prompt = sessionAgent{requests: asked}, prompt.Prompt{Template: "The whole task.\n{{feedback}}\n"}
	c.Gate, c.MaxIterations = []Command{{Line: "make test"}}, 4
	return c, asked
}

func outputLines(lines ...any) []any { return lines }

// sessionsOf returns the sessions that the agent was asked to resume, one per process.
func sessionsOf(asked []agents.Request) (list []string) {
	for _, r := range asked {
		list = append(list, r.Session)
	}
	return list
}

func TestResume(t *testing.T) {
	t.Parallel()
	success := outputLines("session s1", "use 100", sayDone)
	tests := map[string]struct {
		passes int
		says   [][]any
		change func(*Config)
		want   []string // sessions, one for each process
		number int      // number of iterations
		warns  string
	}{
		"after a gate that fails":   {passes: 3, says: [][]any{success}, want: []string{"", "s1", "s1"}, number: 3},
		"never":                     {passes: 2, says: [][]any{success}, change: func(c *Config) { c.Resume = ResumeNever }, want: []string{"", ""}, number: 2},
		"without a place for it":    {passes: 2, says: [][]any{success}, change: func(c *Config) { c.Prompt = prompt.Prompt{Inline: "x"} }, want: []string{"", ""}, number: 2},
		"no session":                {passes: 2, says: [][]any{outputLines("use 100", sayDone)}, want: []string{"", ""}, number: 2},
		"an id that is none":        {passes: 2, says: [][]any{outputLines("session --yolo", "use 100", sayDone)}, want: []string{"", ""}, number: 2},
		"a context of unknown size": {passes: 2, says: [][]any{outputLines("session s1", sayDone)}, want: []string{"", ""}, number: 2},
		"a context that is large":   {passes: 2, says: [][]any{outputLines("session s1", "use 100001", sayDone)}, want: []string{"", ""}, number: 2},
		"a failure":                 {passes: 2, says: [][]any{outputLines("session s1", "use 100", "fail other"), success}, want: []string{"", ""}, number: 2},
		"without the signal":        {passes: 1, says: [][]any{outputLines("session s1", "use 100", "say x more to do"), success}, want: []string{"", "s1"}, number: 2},
		"another agent": {passes: 1, says: [][]any{success, outputLines("fail rate-limit"), success}, want: []string{"", "s1", ""}, number: 3, change: func(c *Config) {
			c.Accept = rejectOnce("not yet")
			c.Next = func(Iteration) (agents.Link, bool) {
				return agents.Link{Agent: c.Agent, Options: agents.Options{Model: "other"}}, true
			}
		}},
		"a session that is lost": {
			passes: 3, says: [][]any{success, outputLines("fail other"), outputLines("session s2", "use 100", sayDone)},
			want: []string{"", "s1", ""}, number: 2, warns: "was not resumed (reported)",
		},
		"a request that is refused": {
			passes: 3, says: [][]any{success, outputLines("fail bad-request"), outputLines("session s2", "use 100", sayDone)},
			want: []string{"", "s1", ""}, number: 2, warns: "was not resumed (reported)",
		},
		"a request that is refused later": {
			passes: 3, says: [][]any{success, outputLines("use 120", "fail bad-request"), outputLines("session s2", "use 100", sayDone)},
			want: []string{"", "s1", ""}, number: 3,
		},
		"lost once is never again": {
			passes: 4, says: [][]any{success, outputLines("fail other"), success},
			want: []string{"", "s1", "", ""}, number: 3, warns: "was not resumed (reported)",
		},
		"another session": {
			passes: 3, says: [][]any{success, outputLines("session s2", "use 100", sayDone)},
			want: []string{"", "s1", ""}, number: 3, warns: "a session other than the requested one",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, asked := resumeConfig(test.passes, test.says...)
			if test.change != nil {
				test.change(&c)
			}
			r := Run(t.Context(), c)
			wantEnd(t, r, EndDone)
			if got := sessionsOf(*asked); !slices.Equal(got, test.want) {
				t.Errorf("sessions %q, want %q", got, test.want)
			}
			if len(r.Iterations) != test.number {
				t.Errorf("%d iterations, want %d", len(r.Iterations), test.number)
			}
			if got := strings.Join(r.Warnings, "; "); !strings.Contains(got, test.warns) || test.warns == "" && strings.Contains(got, "session") {
				t.Errorf("warnings %q, want %q", got, test.warns)
			}
			for i, it := range r.Iterations {
				if it.Number != i+1 {
					t.Errorf("iteration %d has number %d", i+1, it.Number)
				}
			}
		})
	}
}

// rejectOnce returns an Accept that rejects the first work.
func rejectOnce(text string) func(context.Context) string {
	first := true
	return func(context.Context) string {
		if first {
			first = false
			return text
		}
		return ""
	}
}

// A resumed session gets ralph's feedback, without the task; after a lost session the agent gets the whole prompt.
func TestResumedPrompt(t *testing.T) {
	t.Parallel()
	c, asked := resumeConfig(4, outputLines("session s1", "use 100", sayDone), outputLines("session s1", "use 100", sayDone), outputLines("fail other"), outputLines("use 1", sayDone))
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	if !r.Iterations[1].Resumed || r.Iterations[0].Resumed || r.Iterations[2].Resumed {
		t.Errorf("iterations %+v, want the second to be resumed", r.Iterations)
	}
	for i, whole := range []bool{true, false, false, true} {
		text := (*asked)[i].Prompt
		if strings.Contains(text, "The whole task.") != whole {
			t.Errorf("prompt %d, whole %v:\n%s", i+1, whole, text)
		}
		if i > 0 && !strings.Contains(text, "`make test` failed with exit status 1") {
			t.Errorf("prompt %d does not tell what failed:\n%s", i+1, text)
		}
		if !whole && !strings.Contains(text, DefaultSignal) {
			t.Errorf("prompt %d does not name the signal:\n%s", i+1, text)
		}
	}
}

// An agent that reports the usage of its whole session is not charged twice for the beginning.
func TestResumedUsage(t *testing.T) {
	t.Parallel()
	c, _ := resumeConfig(3, outputLines("session s1", "total", "use 100", sayDone), outputLines("session s1", "total", "use 130", sayDone), outputLines("session s1", "total", "use 150", sayDone))
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	if r.Usage.Input != 150 || r.Iterations[1].Usage.Input != 30 || r.Iterations[2].Usage.Input != 20 {
		t.Errorf("used %+v in %+v, want 100, 30 and 20", r.Usage, r.Iterations)
	}
	c, _ = resumeConfig(2, outputLines("session s1", "total", "use 100", sayDone), outputLines("session s2", "total", "use 130", sayDone))
	if r = Run(t.Context(), c); r.Usage.Input != 230 {
		t.Errorf("used %+v, want that of two sessions", r.Usage)
	}
}

// A run does not know the sessions of an earlier one, for example of one that was killed.
func TestRunResumesNoEarlierRun(t *testing.T) {
	t.Parallel()
	c, asked := resumeConfig(1, outputLines("session s1", "use 100", sayDone))
	c.Feedback = "It was interrupted."
	Run(t.Context(), c)
	Run(t.Context(), c)
	if got := sessionsOf(*asked); !slices.Equal(got, []string{"", ""}) {
		t.Errorf("sessions %q", got)
	}
}
