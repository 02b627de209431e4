package workspace

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/internal/halt"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/worktree"
)

// Checkout describes a clean checkout of one commit, to run setup and gate in a new sandbox. No agent works there, except a
// reviewer.
type Checkout struct {
	Run    string // the run that it belongs to
	Name   string // distinguishes it from the run's other checkouts
	Key    string
	Base   worktree.Base // Commit is the commit to check out
	From   string        // the base's commit, which Base.Commit equals or builds on
	Checks journal.Checks
	Made   *Made    // host files to add; may be nil
	Env    []string // environment of every command

	Asked   context.Context // its end asks the checks to end; nil: it never ends
	Observe func(loop.Event)
	Stream  func(name string) (io.WriteCloser, error)
	Refused func(egress.Event)

	// Each runs every line of the gate, even after one has failed.
	Each bool

	// Touch lists in Checked.Touched the tracked files that setup and gate change.
	Touch bool

	// FillHome makes setup fill the home of later sandboxes on this base, if there is none yet.
	FillHome bool

	// OnPass is called when the gate has passed, while the sandbox is still open; may be nil.
	OnPass func(ctx context.Context, again GateRerun) error

	forReviewer bool // see Visit
}

// GateRerun runs the gate once more with an extra file, in the sandbox in which the gate has passed, and removes the file. Earlier
// commands may have changed anything there: the result shows how an honest gate reacts, at the cost of a warm run.
type GateRerun func(ctx context.Context, path string, content []byte) ([]loop.Check, error)

// Checked is the result of the checks on a clean checkout.
type Checked struct {
	Checks  []loop.Check
	Setup   bool               // Checks are those of setup, one of which failed
	Refused []sandboxes.Notice // notices of the sandbox, such as refused connections
	Touched []string           // tracked files that setup and gate have changed; hostile

	setupNotices []sandboxes.Notice // notices of a setup that has passed; Check removes them from Refused
}

// missingTarget matches errors of make, npm and pnpm and captures the target or script that does not exist; make without a
// makefile has none.
var missingTarget = pattern.Lazy("(?m)^(?:g?make: \\*\\*\\* (?:No rule to make target [`']([^']+)'\\. " +
	"+Stop\\.|No targets specified and no makefile found)" +
	`|npm (?:ERR!|error) Missing script: "([^"]+)"|.*ERR_PNPM_NO_SCRIPT.* Missing script: (\S+))`)

// lacksTarget reports whether a line of the gate names a target or a script that does not exist. It is false if only a program
// that the line runs names it: an agent may have to add that one.
func lacksTarget(c loop.Check) bool {
	m := missingTarget().FindStringSubmatch(c.Tail)
	words := strings.FieldsFunc(c.Command, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`;&|(){}<>"'`, r) })
	return !c.Passed() && m != nil && slices.Contains(words, cmp.Or(m[1]+m[2]+m[3], "make"))
}

// connectionError matches errors of programs whose connection was refused and that do not name the host.
var connectionError = pattern.Lazy(`(?i)\b403\b|\bENOTFOUND\b|\bEAI_AGAIN\b|\bECONN(REFUSED|RESET)\b|\bgetaddrinfo\b|(not|n't) resolve|no such host|` +
	`name or service not known|failure in name resolution|tunnel|proxy ?(error|connect)|network is unreachable|connection (was )?refused`)

// failedByRefusal reports whether a check failed because of a refused connection. A refused connection that its output does not
// mention may be only a program's check for updates.
func (c Checked) failedByRefusal(check loop.Check) bool {
	names := func(n sandboxes.Notice) bool { return n.Host != "" && strings.Contains(check.Tail, n.Host) }
	return !check.Passed() && len(c.Refused) > 0 && (connectionError().MatchString(check.Tail) || slices.ContainsFunc(c.Refused, names))
}

// allCouldRun reports whether every check could run, passed or not: none lacked a program, a target, time or a connection.
func (c Checked) allCouldRun() bool {
	if len(c.Checks) == 0 {
		return false
	}
	last := c.Checks[len(c.Checks)-1]
	return !c.Setup && !last.TimedOut && last.ExitCode != 126 && last.ExitCode != 127 && !lacksTarget(last) && !c.failedByRefusal(last)
}

// Check makes the checkout, runs the checks and removes the checkout.
func (c *Config) Check(ctx context.Context, o Checkout) (got Checked, err error) {
	notices, err := c.inCheckout(ctx, o, func(ctx context.Context, w *Workspace) error { return w.check(ctx, o, &got) })
	got.Refused = slices.DeleteFunc(notices, func(n sandboxes.Notice) bool { return slices.Contains(got.setupNotices, n) })
	return got, err
}

// inCheckout makes the checkout, opens its sandbox, and removes both when use has returned.
func (c *Config) inCheckout(ctx context.Context, o Checkout, use func(context.Context, *Workspace) error) (notices []sandboxes.Notice, err error) {
	id := o.Run + "-" + o.Name
	if err := c.reapLeft(ctx, id); err != nil {
		return nil, err
	}
	defer c.Begin(id)()
	tree, err := c.Repo.Add(ctx, worktree.Spec{
		Run: id, ParentRun: o.Run, Key: o.Key, Base: o.Base, FilterBase: o.From, Detached: true, Private: c.Private(), Layers: c.Layers(),
	})
	what := "verify"
	if o.forReviewer {
		what = o.Name
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	w := c.New(id, tree, o.Env, o.Refused)
	w.Asked = cmp.Or(o.Asked, w.Asked)
	if o.forReviewer {
		w.agents, w.readOnly, w.Meter = agents.Chain{c.Reviewer}, true, c.meterBeside(o.Run)
	} else {
		w.noAgent = true
		w.shareMeter(o.Run)
	}
	defer w.Forget()
	full := func() {}
	if o.FillHome && len(o.Checks.Setup) > 0 {
		ctx, full = w.fillHome(ctx, o.Base.Commit)
	}
	defer full()
	defer func() {
		after, cancel := halt.Hurried(ctx)
		defer cancel()
		notices = append(notices, w.CloseSandbox(after)...)
		err = errors.Join(err, w.removeCheckout(after))
		w.filling.End(after, false)
	}()
	if len(o.Checks.Copy) > 0 {
		if err := tree.CopyIn(ctx, o.Checks.Copy); err != nil {
			return nil, err
		}
	}
	if err := o.Made.CopyTo(ctx, tree); err != nil {
		return nil, err
	}
	if w.filling == nil && len(o.Checks.Setup) > 0 {
		w.AddSetupFiles(ctx)
	}
	if err := w.Open(ctx); err != nil {
		return nil, err
	}
	return nil, use(ctx, w)
}

// check runs the checks in the checkout, whose sandbox is open.
func (w *Workspace) check(ctx context.Context, o Checkout, got *Checked) (err error) {
	c := w.c
	config := loop.Config{
		Sandbox:   w,
		Timers:    c.Timers,
		Interrupt: w.Asked.Done(),
		Observe:   o.Observe,
		Stream:    o.Stream,
	}
	setup := func() (passed bool, err error) {
		got.Checks, err = loop.RunCommands(ctx, config, loop.EventSetup, o.Checks.Setup)
		got.Setup = err != nil || !loop.AllPassed(got.Checks)
		return !got.Setup, err
	}
	if len(o.Checks.Setup) > 0 && !w.SetUp() {
		if passed, err := setup(); !passed {
			return err
		}
	}
	if w.filling != nil { // the gate runs code of the repository, which must not write to the home of later sandboxes
		moved, err := w.keepSetup(ctx, o)
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		if w.keptSetup == nil || moved && !w.SetUp() { // it was too large to keep, or somebody has removed it
			if passed, err := setup(); !passed {
				return err
			}
		}
	}
	got.setupNotices = w.refusals()
	if o.Each {
		got.Checks, err = runEachLine(ctx, config, o.Checks.Gate)
	} else {
		got.Checks, err = loop.RunCommands(ctx, config, loop.EventGate, o.Checks.Gate)
	}
	if err == nil && o.Touch {
		got.Touched, err = w.touchedFiles(ctx, o)
	}
	if o.Each {
		return err
	}
	if err == nil && o.OnPass != nil && loop.AllPassed(got.Checks) {
		config.Observe, config.Stream = nil, nil // these runs are no result
		err = o.OnPass(ctx, newAgain(config, o.Checks.Gate))
	}
	return err
}

// keepSetup keeps what setup has made, and opens another sandbox with it. moved reports that the files of setup were moved out
// of the worktree.
func (w *Workspace) keepSetup(ctx context.Context, o Checkout) (moved bool, err error) {
	commit := w.Tree.Start()
	if w.filling.Alone {
		touched, err := w.touchedFiles(ctx, o)
		if err != nil {
			return false, err
		}
		moved = len(touched) == 0
	}
	_ = w.CloseSandbox(ctx) // notices of setup say nothing about the gate
	half := false
	if moved {
		if moved, err = w.filling.KeepMade(ctx, w.Dir, commit); err != nil {
			w.c.Log.Warn("setup will run in every worktree", "reason", err)
		}
		half = moved && err != nil
	}
	w.filling.End(ctx, !half)
	if w.filling = nil; moved {
		w.addKeptSetup(ctx, true)
	}
	return moved, w.Open(ctx)
}

// runEachLine runs all lines of a gate.
func runEachLine(ctx context.Context, config loop.Config, gate []loop.Command) (all []loop.Check, err error) {
	stream := config.Stream
	for i, line := range gate {
		if stream != nil {
			config.Stream = func(string) (io.WriteCloser, error) { return stream(loop.GateLog(0, i)) }
		}
		checks, err := loop.RunCommands(ctx, config, loop.EventGate, []loop.Command{line})
		if all = append(all, checks...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// newAgain writes the file by a command in the sandbox: links in an agent's commit could lead a write by the host anywhere.
func newAgain(config loop.Config, gate []loop.Command) GateRerun {
	sh := func(ctx context.Context, script, path string, in io.Reader) error {
		tail := proc.NewTail(1 << 10)
		exit, err := config.Sandbox.Exec(ctx, sandboxes.Command{Argv: []string{"sh", "-c", script, "sh", path}, Stdin: in, Stdout: tail, Stderr: tail})
		if err == nil && !exit.OK() {
			err = fmt.Errorf("exit status %d: %s", exit.Code, lastLine(tail.String()))
		}
		return err
	}
	return func(ctx context.Context, path string, content []byte) ([]loop.Check, error) {
		if err := sh(ctx, `mkdir -p -- "$(dirname -- "$1")" && cat > "$1"`, "./"+path, bytes.NewReader(content)); err != nil {
			return nil, fmt.Errorf("add %s to the checkout: %w", path, err)
		}
		checks, err := loop.RunCommands(ctx, config, loop.EventGate, gate)
		if err == nil {
			err = sh(ctx, `rm -f -- "$1"`, "./"+path, nil)
		}
		return checks, err
	}
}
