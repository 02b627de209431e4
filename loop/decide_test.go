package loop

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/sandboxes"
)

func failWithOutput(_ context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	_, _ = cmd.Stdout.Write([]byte("expected 1,\n\x1b[31mgot 2\n"))
	return sandboxes.Exit{Code: 1}, nil
}

// inTurn is an agent of a fakeSandbox with another behaviour in each iteration; the last one repeats.
func inTurn(acts ...func(context.Context, sandboxes.Command) (sandboxes.Exit, error)) func(context.Context, sandboxes.Command) (sandboxes.Exit, error) {
	return func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
		a := acts[0]
		if len(acts) > 1 {
			acts = acts[1:]
		}
		return a(ctx, cmd)
	}
}

func printAndExit(code int, lines ...any) func(context.Context, sandboxes.Command) (sandboxes.Exit, error) {
	return func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
		_, err := printLines(false, lines...)(ctx, cmd)
		return sandboxes.Exit{Code: code}, err
	}
}

func TestNoChangeNeedsAPassingGate(t *testing.T) {
	t.Parallel()
	said := "say 1 <no-change>fixed in\x1b abc</no-change>"
	for _, tt := range []struct {
		name    string
		agent   func(context.Context, sandboxes.Command) (sandboxes.Exit, error)
		shell   func(context.Context, sandboxes.Command) (sandboxes.Exit, error)
		commits int
		end     End
	}{
		{"by itself", printLines(false, said), nil, 0, EndNoChange},
		{"with the signal", printLines(false, said+DefaultSignal), nil, 0, EndNoChange},
		{"gate fails", printLines(false, said), failWithOutput, 0, EndNoProgress},
		{"withdrawn", printLines(false, said, "say 2 wait"), nil, 0, EndNoProgress},
		{"withdrawn, then done without a commit", printLines(false, said, sayDone), nil, 0, EndNoProgress},
		{"never closed", printLines(false, "say 1 <no-change>x"), nil, 0, EndNoProgress},
		{"never opened", printLines(false, "say 1 x</no-change>"), nil, 0, EndNoProgress},
		{"in a failed iteration", printAndExit(3, said), nil, 0, EndAgent},
		{"signal only", printLines(false, sayDone), nil, 0, EndNoProgress},
		{"with commits it is simply done", printLines(false, said), nil, 1, EndDone},
	} {
		c := fakeConfig(fakeSandbox{agent: tt.agent, shell: tt.shell}, &recorder{})
		c.Gate = []Command{{Line: "make test"}}
		c.Import = importCommits(tt.commits)
		r := Run(t.Context(), c)
		t.Run(tt.name, func(t *testing.T) {
			wantEnd(t, r, tt.end)
			if want := map[bool]string{true: "fixed in abc"}[tt.end == EndNoChange]; r.Reason != want {
				t.Errorf("reason %q, want %q", r.Reason, want)
			}
		})
	}
}

func TestMissing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		said    string
		commits int
		shell   func(context.Context, sandboxes.Command) (sandboxes.Exit, error)
		want    Missing
	}{
		"signal":  {"say 1 all good", 0, nil, MissingSignal},
		"commits": {sayDone, 0, nil, MissingCommits},
		"gate":    {sayDone, 1, failWithOutput, MissingGate},
		"accept":  {sayDone, 1, nil, MissingAccept},
		"failure": {"fail other", 1, nil, ""},
	} {
		conf := fakeConfig(fakeSandbox{agent: printLines(false, c.said), shell: c.shell}, &recorder{})
		conf.Import, conf.MaxIterations = importCommits(c.commits), 1
		conf.Gate = []Command{{Line: "make test"}}
		if name == "accept" {
			conf.Accept = func(context.Context) string { return "a nested\nrepository" }
		}
		r := Run(t.Context(), conf)
		if r.End != EndMaxIterations || r.Missing != c.want || (r.Refusal == "a nested repository") != (name == "accept") || r.Limits.MaxIterations != 1 {
			t.Errorf("%s: %s, %q, %q, limits %+v", name, r.End, r.Missing, r.Refusal, r.Limits)
		}
	}
}

// An agent without the permissions for its work would meet the same permissions in the next iteration.
func TestDeniedPermission(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines   []any
		commits int
		end     End
	}{
		"no commits":               {[]any{"deny Bash", "say 1 I may not"}, 0, EndDenied},
		"it says that it is done":  {[]any{"deny Bash", sayDone}, 0, EndDenied},
		"a failure too":            {[]any{"deny Bash", "fail other"}, 0, EndDenied},
		"no login either":          {[]any{"deny Bash", "fail auth"}, 0, EndUnavailable},
		"it could do without":      {[]any{"deny Bash", sayDone}, 1, EndDone},
		"it goes on without":       {[]any{"deny Bash", "say 1 hm"}, 1, EndMaxIterations},
		"it asks":                  {[]any{"deny Bash", "say 1 <needs-info>May I?</needs-info>"}, 0, EndNeedsInfo},
		"nothing needs to be done": {[]any{"deny Bash", "say 1 <no-change>x</no-change>"}, 0, EndNoChange},
	} {
		conf := fakeConfig(fakeSandbox{agent: printLines(false, c.lines...)}, &recorder{})
		conf.Import, conf.MaxIterations = importCommits(c.commits), 2
		r := Run(t.Context(), conf)
		if r.End != c.end || len(r.Iterations) > 1 && c.end != EndMaxIterations {
			t.Errorf("%s: %s after %d iterations, want %s", name, r.End, len(r.Iterations), c.end)
		}
		if len(r.Denied) != 1 || r.Denied[0].Tool != "Bash" || len(r.Iterations[0].Denied) != 1 {
			t.Errorf("%s: denied %+v", name, r.Denied)
		}
	}
}

func TestRunWithoutCommitsNeedsTheSignalAndTheGateOnly(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]End{sayDone: EndDone, "say 1 hm": EndMaxIterations} {
		c := fakeConfig(fakeSandbox{agent: printLines(false, said)}, &recorder{})
		c.WithoutCommits, c.Import, c.MaxIterations = true, importCommits(0), 1
		wantEnd(t, Run(t.Context(), c), want)
	}
}

func TestNeedsInfo(t *testing.T) {
	t.Parallel()
	for _, signal := range []string{"", DefaultSignal} {
		c := fakeConfig(fakeSandbox{agent: printLines(false, "say 1 <needs-info>Which\x1b[1m colour?</needs-info>"+signal)}, &recorder{})
		c.Import = importCommits(0)
		r := Run(t.Context(), c)
		wantEnd(t, r, EndNeedsInfo)
		if r.Question != "Which[1m colour?" || r.Signal != signal || len(r.Iterations) != 1 {
			t.Errorf("question %q, signal %q", r.Question, r.Signal)
		}
	}
	c := fakeConfig(fakeSandbox{agent: printLines(false, "say 1 <needs-info>Which?</needs-info>", sayDone)}, &recorder{})
	wantEnd(t, Run(t.Context(), c), EndDone)
}

func TestFeedbackReachesTheNextIteration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		agent   func(context.Context, sandboxes.Command) (sandboxes.Exit, error)
		shell   func(context.Context, sandboxes.Command) (sandboxes.Exit, error)
		commits int
		want    []string
	}{
		{"no signal", printLines(false, "say 1 hm"), nil, 1, []string{"without the completion signal `" + DefaultSignal}},
		{"no commits", printLines(false, sayDone), nil, 0, []string{"there are no commits", "<no-change>"}},
		{"gate", printLines(false, sayDone), failWithOutput, 1, []string{"`make test` failed with exit status 1", "~~~~~\nexpected 1,\n[31mgot 2\n~~~~~\n"}},
		{"failure", printAndExit(2), nil, 1, []string{"The last iteration failed", "exit 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var prompts []string
			c := fakeConfig(fakeSandbox{agent: tt.agent, shell: tt.shell}, &recorder{})
			c.Agent = scriptedAgent{prompts: &prompts}
			c.Prompt = prompt.Prompt{Template: "{{feedback}}\nGo."}
			c.Gate = []Command{{Line: "make test"}}
			c.Import, c.MaxIterations = importCommits(tt.commits), 2
			Run(t.Context(), c)
			if len(prompts) != 2 || prompts[0] != "Go." {
				t.Fatalf("prompts %q", prompts)
			}
			for _, want := range tt.want {
				if !strings.Contains(prompts[1], want) {
					t.Errorf("the prompt does not say %q:\n%s", want, prompts[1])
				}
			}
		})
	}
}

func TestFailureClasses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		class      agents.Class
		end        End
		iterations int
	}{
		{agents.RateLimit, EndUnavailable, 1},
		{agents.Overload, EndUnavailable, 1},
		{agents.Auth, EndUnavailable, 1},
		{agents.NotStarted, EndUnavailable, 1},
		{agents.BadRequest, EndAgent, 1},
		{agents.ModelNotFound, EndAgent, 1},
		{agents.MaxTurns, EndAgent, 2},
		{agents.OtherFailure, EndAgent, 2},
		{agents.Killed, EndAgent, 2},
	} {
		c := fakeConfig(fakeSandbox{agent: printLines(false, "fail "+string(tt.class))}, &recorder{})
		c.Import = importCommits(0)
		r := Run(t.Context(), c)
		t.Run(string(tt.class), func(t *testing.T) {
			wantEnd(t, r, tt.end)
			if len(r.Iterations) != tt.iterations || r.Failure == nil || r.Failure.Class != tt.class {
				t.Errorf("%d iterations, failure %v", len(r.Iterations), r.Failure)
			}
			if repeated := tt.iterations == 2; r.Repeated != repeated {
				t.Errorf("repeated: %t", r.Repeated)
			}
		})
	}
}

// If the program disappears after agents have run, that says nothing about other issues.
func TestProgramThatIsGoneLaterIsTheRunsOwn(t *testing.T) {
	t.Parallel()
	missing := printLines(false, "fail "+string(agents.NotStarted))
	c := fakeConfig(fakeSandbox{agent: missing}, &recorder{})
	c.Import = importCommits(1)
	wantEnd(t, Run(t.Context(), c), EndAgent)
	c = fakeConfig(fakeSandbox{agent: inTurn(printLines(false, "say 1 hm"), missing)}, &recorder{})
	c.Import = importCommits(0)
	wantEnd(t, Run(t.Context(), c), EndAgent)
}

func TestReportedErrorStandsWhenTheAgentIsKilledAfterIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for class, end := range map[agents.Class]End{agents.RateLimit: EndUnavailable, agents.BadRequest: EndAgent} {
			c := fakeConfig(fakeSandbox{agent: printLines(true, "fail "+string(class))}, &recorder{})
			r := Run(t.Context(), c)
			wantEnd(t, r, end)
			wantEnding(t, r, 1, EndingIdle)
		}
		c := fakeConfig(fakeSandbox{agent: printLines(true, "tool x")}, &recorder{})
		c.MaxIterations = 1
		if r := Run(t.Context(), c); r.Failure == nil || !strings.Contains(r.Failure.Message, "10m0s without output") {
			t.Errorf("failure %v, want ralph's own reason for the kill", r.Failure)
		}
	})
}

func TestFailuresOfDifferentKindsOrWithCommitsGoOn(t *testing.T) {
	t.Parallel()
	c := fakeConfig(fakeSandbox{agent: inTurn(printLines(false, "fail other"), printLines(false, "fail max-turns"), printLines(false, "fail other"), printLines(false, sayDone))}, &recorder{})
	c.Import, c.NoProgress = importCommits(0, 0, 0, 1), -1
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	if len(r.Iterations) != 4 || r.Failure != nil {
		t.Errorf("%d iterations, failure %v", len(r.Iterations), r.Failure)
	}
	c = fakeConfig(fakeSandbox{agent: inTurn(printAndExit(1), printAndExit(1), printLines(false, sayDone))}, &recorder{})
	wantEnd(t, Run(t.Context(), c), EndDone)
}

func TestAgentThatExitsZeroButReportedAnErrorHasFailed(t *testing.T) {
	t.Parallel()
	c := fakeConfig(fakeSandbox{agent: inTurn(printLines(false, sayDone, "fail other"), printLines(false, sayDone))}, &recorder{})
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	if len(r.Iterations) != 2 || r.Iterations[0].Failure == nil {
		t.Errorf("iterations %+v", r.Iterations)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		change     func(*Config)
		commits    []int
		end        End
		iterations int
		gateRan    bool
	}{
		{"default of ten iterations", func(*Config) {}, []int{1}, EndMaxIterations, 10, true},
		{"max iterations", func(c *Config) { c.MaxIterations = 2 }, []int{1}, EndMaxIterations, 2, true},
		{"no gate without commits", func(c *Config) { c.MaxIterations = 2 }, []int{0}, EndMaxIterations, 2, false},
		{"three without progress", func(*Config) {}, []int{1, 0}, EndNoProgress, 4, true},
		{"progress resets the count", func(*Config) {}, []int{0, 0, 1, 0, 0, 0}, EndNoProgress, 6, true},
		{"never without progress", func(c *Config) { c.NoProgress = -1 }, []int{0}, EndMaxIterations, 10, false},
		{"tokens", func(c *Config) { c.Budget.Tokens = 25 }, []int{1}, EndBudget, 3, false},
	} {
		c := fakeConfig(fakeSandbox{agent: printLines(false, "use 10", "say 1 hm")}, &recorder{})
		c.Import = importCommits(tt.commits...)
		c.Gate = []Command{{Line: "make test"}}
		tt.change(&c)
		r := Run(t.Context(), c)
		t.Run(tt.name, func(t *testing.T) {
			wantEnd(t, r, tt.end)
			if tt.end == EndNoProgress && r.IterationsWithoutCommit != 3 {
				t.Errorf("%d iterations without progress", r.IterationsWithoutCommit)
			}
			if len(r.Iterations) != tt.iterations || r.GateRan != tt.gateRan || r.GatePassed() != tt.gateRan {
				t.Errorf("%d iterations, gate ran %t and passed %t", len(r.Iterations), r.GateRan, r.GatePassed())
			}
		})
	}
}

func TestLastIterationThatFinishesBeatsEveryLimit(t *testing.T) {
	t.Parallel()
	c := fakeConfig(fakeSandbox{agent: printLines(false, "use 10", sayDone)}, &recorder{})
	c.MaxIterations, c.Budget.Tokens = 1, 10
	wantEnd(t, Run(t.Context(), c), EndDone)
}

func TestFailingGateToTheEnd(t *testing.T) {
	t.Parallel()
	ran := 0
	c := fakeConfig(fakeSandbox{agent: printLines(false, sayDone), shell: func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
		ran++
		return failWithOutput(ctx, cmd)
	}}, &recorder{})
	c.MaxIterations = 3
	c.Gate = []Command{{Line: "make test"}}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndMaxIterations)
	if ran != 3 || !r.GateRan || r.GatePassed() || r.Signal != DefaultSignal {
		t.Errorf("gate ran %d times: %+v", ran, r)
	}
	if last := r.Gate[len(r.Gate)-1]; r.Missing != MissingGate || last.Command != "make test" || last.ExitCode != 1 {
		t.Errorf("missing %s, gate %+v", r.Missing, r.Gate)
	}
}

func TestEarlierWorkCounts(t *testing.T) {
	t.Parallel()
	c := fakeConfig(fakeSandbox{agent: printLines(false, sayDone)}, &recorder{})
	c.EarlierWork = Work{Tip: "old", Commits: 2}
	c.Import = func(context.Context) (Work, error) { return Work{Tip: "old", Commits: 2}, nil }
	wantEnd(t, Run(t.Context(), c), EndDone)
}

func TestSetupFailureEndsTheRunBeforeTheAgent(t *testing.T) {
	t.Parallel()
	d := &recorder{}
	c := fakeConfig(fakeSandbox{shell: failWithOutput}, d)
	c.Setup = []Command{{Line: "npm ci"}, {Line: "never"}}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndSetup)
	if len(r.Setup) != 1 || r.Setup[0].Command != "npm ci" || r.Setup[0].ExitCode != 1 || !strings.Contains(r.Setup[0].Tail, "got 2") {
		t.Errorf("setup %+v", r.Setup)
	}
	if events := d.eventsOf(EventSetup); len(r.Iterations) != 0 || len(events) != 2 || events[1].Check == nil || events[1].Check.ExitCode != 1 {
		t.Errorf("iterations %v, events %+v", r.Iterations, events)
	}
}

func TestBrokenSandbox(t *testing.T) {
	t.Parallel()
	gone := errors.New("container is gone")
	breaks := func(context.Context, sandboxes.Command) (sandboxes.Exit, error) { return sandboxes.Exit{}, gone }
	for name, s := range map[string]fakeSandbox{
		"agent": {agent: breaks},
		"gate":  {agent: printLines(false, sayDone), shell: breaks},
	} {
		c := fakeConfig(s, &recorder{})
		c.Gate = []Command{{Line: "make test"}}
		r := Run(t.Context(), c)
		wantEnd(t, r, EndSandbox)
		if !errors.Is(r.Err, gone) || r.Work.Commits != 1 {
			t.Errorf("%s: error %v, work %+v", name, r.Err, r.Work)
		}
	}
}

func TestImportFailureEndsTheRun(t *testing.T) {
	t.Parallel()
	full := errors.New("disk full")
	c := fakeConfig(fakeSandbox{agent: printLines(false, sayDone)}, &recorder{})
	c.Import = func(context.Context) (Work, error) { return Work{}, full }
	r := Run(t.Context(), c)
	wantEnd(t, r, EndImport)
	if !errors.Is(r.Err, full) || len(r.Iterations) != 1 {
		t.Errorf("error %v, iterations %v", r.Err, r.Iterations)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	d := &recorder{}
	c := fakeConfig(fakeSandbox{agent: printLines(false, "tool x", "say 1 ", sayDone)}, d)
	c.Gate = []Command{{Line: "make test"}}
	wantEnd(t, Run(t.Context(), c), EndDone)
	var kinds []string
	for _, e := range d.events {
		kinds = append(kinds, string(e.Kind))
	}
	if got, want := strings.Join(kinds, " "), "iteration agent signal agent said commits iteration-ended gate gate"; got != want {
		t.Errorf("events %q, want %q", got, want)
	}
}

func TestMissingPartsAreRefused(t *testing.T) {
	t.Parallel()
	r := Run(t.Context(), Config{})
	wantEnd(t, r, EndPrompt)
	for _, part := range []string{"Agent", "Sandbox", "Import", "prompt"} {
		if !strings.Contains(r.Err.Error(), part) {
			t.Errorf("%s is not reported: %v", part, r.Err)
		}
	}
	bad := Config{Agent: agents.Command{}, Signals: []string{""}, MaxIterations: -1, Gate: []Command{{}}, Timers: Timers{Idle: -1}}
	var joined interface{ Unwrap() []error }
	if err := bad.Validate(); !errors.As(err, &joined) || len(joined.Unwrap()) != 6 {
		t.Errorf("errors %v, want six", err)
	}
	for want, c := range map[string]Command{"its timeout is -1s": {Line: "true", Timeout: -1e9}, "NUL byte": {Line: "a\x00b"}} {
		c := Config{Sandbox: fakeSandbox{}, Import: func(context.Context) (Work, error) { return Work{}, nil }, Agent: agents.Command{},
			Options: agents.Options{Command: []string{"true"}}, Prompt: prompt.Prompt{Inline: "x"}, Setup: []Command{c}}
		if r := Run(t.Context(), c); r.End != EndPrompt || r.Err == nil || !strings.Contains(r.Err.Error(), want) {
			t.Errorf("%s: %s, %v", want, r.End, r.Err)
		}
	}
}

// TestNextAgent: the next agent continues after an unavailable one, and gets the same feedback. The iterations of the first count
// towards no limit.
func TestNextAgent(t *testing.T) {
	t.Parallel()
	turns := 0
	said := [][]any{{"say 1 not yet"}, {"fail rate-limit"}, {"fail not-started"}, {sayDone}}
	box := fakeSandbox{agent: func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
		turns++
		return printLines(false, said[turns-1]...)(ctx, cmd)
	}}
	d := &recorder{}
	c := fakeConfig(box, d)
	var prompts []string
	c.Agent = scriptedAgent{prompts: &prompts}
	c.Prompt = prompt.Prompt{Template: "{{feedback}}"}
	c.WithoutCommits, c.Import, c.MaxIterations, c.NoProgress = true, importCommits(0), 2, 2
	var failures []agents.Class
	c.Next = func(it Iteration) (agents.Link, bool) {
		failures = append(failures, it.Failure.Class)
		return agents.Link{Agent: scriptedAgent{prompts: &prompts}, Options: agents.Options{Model: "m" + strconv.Itoa(len(failures))}}, true
	}
	c.Options.Model = "m0"
	r := Run(t.Context(), c)
	wantEnd(t, r, EndDone)
	if !slices.Equal(failures, []agents.Class{agents.RateLimit, agents.NotStarted}) {
		t.Errorf("met %q", failures)
	}
	var models []string
	for _, it := range r.Iterations {
		models = append(models, it.Agent+" "+it.Model)
		if it.Ended.IsZero() {
			t.Errorf("iteration %d has no end", it.Number)
		}
	}
	if want := []string{"scripted m0", "scripted m0", "scripted m1", "scripted m2"}; !slices.Equal(models, want) {
		t.Errorf("iterations by %q, not %q", models, want)
	}
	if last := prompts[3]; !strings.Contains(last, "Another agent worked on this") || strings.Count(last, "Another agent") != 1 || !strings.Contains(last, "without the completion signal") {
		t.Errorf("the last agent is told %q", last)
	}
}

// A run ends as unavailable once no agent is left.
func TestNoNextAgent(t *testing.T) {
	t.Parallel()
	c := fakeConfig(fakeSandbox{agent: printLines(false, "fail overload")}, &recorder{})
	left := 2
	c.Next = func(Iteration) (agents.Link, bool) {
		left--
		return agents.Link{Agent: c.Agent}, left >= 0
	}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndUnavailable)
	if len(r.Iterations) != 3 || len(r.Warnings) != 2 {
		t.Errorf("%d iterations, warnings %q", len(r.Iterations), r.Warnings)
	}
}

// A gate whose result no work changes ends the run, also in its last iteration.
func TestGateThatNoWorkChanges(t *testing.T) {
	t.Parallel()
	c := fakeConfig(fakeSandbox{agent: printLines(false, sayDone), shell: failWithOutput}, &recorder{})
	c.Import, c.Gate, c.MaxIterations = importCommits(1, 2, 3), []Command{{Line: "make x"}}, 3
	var made []int
	c.Unchanged = func(commits int, gate []Check) bool {
		made = append(made, commits)
		return len(made) == 3 && gate[0].ExitCode == 1
	}
	r := Run(t.Context(), c)
	wantEnd(t, r, EndUnchanged)
	if !slices.Equal(made, []int{1, 2, 3}) {
		t.Errorf("commits %d", made)
	}
}
