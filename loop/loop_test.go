package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/loop/prompt"
	"github.com/ralph-pool/ralph/sandboxes"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scriptedAgent is an agent that runs one shell script per iteration; the last one repeats.
type scriptedAgent struct {
	scripts []string
	prompts *[]string
	envs    *[]string
}

func (scriptedAgent) Name() string { return "scripted" }
func (scriptedAgent) Describe() agents.Description {
	return agents.Description{Program: "sh", Models: true}
}

func (s scriptedAgent) Invocation(r agents.Request) (agents.Invocation, error) {
	n := 1
	for _, v := range r.Vars {
		if text, ok := strings.CutPrefix(v, "RALPH_ITERATION="); ok {
			n, _ = strconv.Atoi(text)
		}
	}
	if s.prompts != nil {
		*s.prompts = append(*s.prompts, r.Prompt)
	}
	if s.envs != nil {
		*s.envs = r.Vars
	}
	script := "agent"
	if len(s.scripts) > 0 {
		script = s.scripts[min(n, len(s.scripts))-1]
	}
	return agents.Invocation{Argv: []string{"sh", "-c", script, "agent"}, Stdin: r.Prompt, Env: r.Vars}, nil
}

func (s scriptedAgent) NewDecoder() agents.Decoder { return &lineDecoder{} }

// lineDecoder is a decoder for lines: `say ID TEXT` a part of a message, `use N` tokens, `cost USD`, `fail CLASS [UNIX]` a reported error,
// `deny TOOL`, `tool TEXT`, `session ID`, and `total`: the tokens are those of the whole session.
type lineDecoder struct {
	report agents.Report
}

func (d *lineDecoder) Line(line []byte) []agents.Event {
	verb, rest, _ := strings.Cut(string(line), " ")
	switch verb {
	case "say":
		id, text, _ := strings.Cut(rest, " ")
		return []agents.Event{{Kind: agents.EventMessage, Message: id, Text: text}}
	case "tool":
		return []agents.Event{{Kind: agents.EventTool, Name: "tool", Detail: rest}}
	case "use":
		n, _ := strconv.ParseInt(rest, 10, 64)
		d.report.Usage.Input += n
		return nil
	case "cost":
		usd, _ := strconv.ParseFloat(rest, 64)
		d.report.Usage.CostUSD += usd
		return nil
	case "model":
		d.report.Model = rest
		return nil
	case "session":
		d.report.Session = rest
		return nil
	case "total":
		d.report.SessionTotal = true
		return nil
	case "deny":
		d.report.Denied = append(d.report.Denied, agents.Denial{Tool: rest})
		return []agents.Event{{Kind: agents.EventDenied, Name: rest}}
	case "fail":
		class, end, _ := strings.Cut(rest, " ")
		unix, _ := strconv.ParseInt(end, 10, 64)
		d.report.Failure = &agents.Failure{Class: agents.Class(class), Message: "reported", ResetAt: agents.ResetTime(unix)}
		return nil
	}
	d.report.Unknown++
	return []agents.Event{{Kind: agents.EventUnknown, Text: string(line)}}
}

func (d *lineDecoder) Finish(e agents.Ending) agents.Report {
	switch {
	case d.report.Failure != nil:
	case e.StartErr != nil:
		d.report.Failure = &agents.Failure{Class: agents.NotStarted, Message: e.StartErr.Error()}
	case e.Signal != "":
		d.report.Failure = &agents.Failure{Class: agents.Killed, Message: e.Signal}
	case e.ExitCode != 0:
		d.report.Failure = &agents.Failure{Class: agents.OtherFailure, Message: "exit " + strconv.Itoa(e.ExitCode) + ": " + e.StderrTail}
	}
	return d.report
}

// fakeSandbox is a sandbox whose commands are Go functions.
type fakeSandbox struct {
	agent func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error)
	shell func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) // nil: every command passes
}

func (s fakeSandbox) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	switch {
	case len(cmd.Argv) == 4 && cmd.Argv[3] == "agent":
		return s.agent(ctx, cmd)
	case s.shell != nil:
		return s.shell(ctx, cmd)
	}
	return sandboxes.Exit{}, nil
}

// printLines is an agent of a fakeSandbox that prints lines, each after a pause, and then ends or, with hang, does not.
func printLines(hang bool, lines ...any) func(context.Context, sandboxes.Command) (sandboxes.Exit, error) {
	return func(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
		for _, l := range lines {
			switch l := l.(type) {
			case time.Duration:
				if err := pause(ctx, l); err != nil {
					return sandboxes.Exit{}, err
				}
			case string:
				_, _ = io.WriteString(cmd.Stdout, l+"\n")
			case []byte:
				_, _ = cmd.Stderr.Write(l)
			}
		}
		if hang {
			<-ctx.Done()
			return sandboxes.Exit{}, context.Cause(ctx)
		}
		return sandboxes.Exit{}, nil
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// recorder records the events and files of a run.
type recorder struct {
	mu     sync.Mutex
	events []Event
	files  map[string]*strings.Builder
}

func (d *recorder) observe(e Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

func (d *recorder) eventsOf(kind EventKind) []Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	var found []Event
	for _, e := range d.events {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

func (d *recorder) stream(name string) (io.WriteCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		d.files = make(map[string]*strings.Builder)
	}
	d.files[name] = &strings.Builder{}
	return nopCloser{d.files[name]}, nil
}

func (d *recorder) file(name string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files[name] == nil {
		return "(no such file)"
	}
	return d.files[name].String()
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// importCommits returns an Import that finds these numbers of new commits, one per iteration; the last one repeats.
func importCommits(newCommits ...int) func(context.Context) (Work, error) {
	var w Work
	return func(ctx context.Context) (Work, error) {
		if ctx.Err() != nil {
			return Work{}, context.Cause(ctx)
		}
		w.New = 0
		if len(newCommits) > 0 {
			w.New = newCommits[0]
			if len(newCommits) > 1 {
				newCommits = newCommits[1:]
			}
		}
		w.Commits += w.New
		w.Tip = fmt.Sprintf("tip%d", w.Commits)
		return w, nil
	}
}

// fakeConfig returns the configuration of a run in a fakeSandbox.
func fakeConfig(s fakeSandbox, d *recorder) Config {
	return Config{
		Agent: scriptedAgent{}, Sandbox: s, Prompt: prompt.Prompt{Inline: "do it"},
		Import: importCommits(1), Observe: d.observe, Stream: d.stream,
	}
}

// hostConfig returns the configuration of a run with real processes on the host.
func hostConfig(t *testing.T, d *recorder, scripts ...string) Config {
	t.Helper()
	none := sandboxes.NewNone(sandboxes.NoneConfig{Env: []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=c", "GIT_COMMITTER_EMAIL=c@example.org",
	}})
	sb, err := none.Open(t.Context(), sandboxes.Spec{Run: "run-" + strings.ReplaceAll(t.Name(), "/", "-"), Worktree: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sb.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return Config{
		Agent: scriptedAgent{scripts: scripts}, Sandbox: sb, Prompt: prompt.Prompt{Inline: "do it"},
		Import: importCommits(1), Observe: d.observe, Stream: d.stream,
	}
}

// workdir returns the worktree of a hostConfig.
func workdir(c Config) string { return c.Sandbox.(sandboxes.Sandbox).Workdir() }

// sayDone prints the default signal in a message of its own.
const sayDone = "say last " + DefaultSignal

func wantEnd(t *testing.T, r Result, end End) {
	t.Helper()
	if r.End != end {
		show, _ := json.MarshalIndent(r, "", " ")
		t.Fatalf("end is %s (%v), want %s\n%s", r.End, r.Err, end, show)
	}
	switch end {
	case EndPrompt, EndSandbox, EndKilled, EndImport, EndOutput, EndInterrupted:
		if r.Err == nil {
			t.Errorf("end %s without a cause", r.End)
		}
	default:
		if r.Err != nil {
			t.Errorf("end %s with error %v", r.End, r.Err)
		}
	}
	if r.Err != nil && strings.Contains(r.Err.Error(), "\n") {
		t.Errorf("error is not one line: %q", r.Err)
	}
}

func wantEnding(t *testing.T, r Result, n int, ending Ending) Iteration {
	t.Helper()
	if len(r.Iterations) < n {
		t.Fatalf("%d iterations, want at least %d (%s: %v)", len(r.Iterations), n, r.End, r.Err)
	}
	it := r.Iterations[n-1]
	if it.Ending != ending {
		t.Errorf("iteration %d ended by %s, want %s (failure %v)", n, it.Ending, ending, it.Failure)
	}
	return it
}
