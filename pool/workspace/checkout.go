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
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/egress"
	"github.com/ralph-pool/ralph/worktree"
)

// Checkout is a clean checkout of one commit, to run setup and gate there in a fresh sandbox. No agent is ever in it, but for a guest.
type Checkout struct {
	Run    string // that it serves
	Name   string // tells it from the run's other checkouts
	Key    string
	Base   worktree.Base // Commit is what is checked out
	From   string        // the base's commit, which that one is or builds on
	Checks journal.Checks
	Made   *Made    // what comes into it besides the commit
	Facts  []string // what every command finds in its environment

	Interrupt <-chan struct{}
	Observe   func(loop.Event)
	Stream    func(name string) (io.WriteCloser, error)
	Refused   func(egress.Event)

	// Each has every line of the gate run, whatever those before it said.
	Each bool

	// Touch lists the tracked files that setup and gate change, in Checked.Touched.
	Touch bool

	// FillHome makes the home in which setup runs the one for later sandboxes on this base, if there is none yet.
	FillHome bool

	// Then is called when the gate has passed, while the sandbox is still open; nil: nothing more is to be done.
	Then func(ctx context.Context, again Again) error

	guest bool // see Visit
}

// Again runs the gate once more in the sandbox in which it has passed, with one more file, and removes the file. What ran
// there before may have changed anything: it shows what an honest gate does, at the cost of a warm one.
type Again func(ctx context.Context, path string, content []byte) ([]loop.Check, error)

// Checked is what the checks on a clean checkout said.
type Checked struct {
	Checks  []loop.Check
	Setup   bool               // Checks are those of the setup, one of which failed
	Refused []sandboxes.Notice // what went wrong around them, such as connections that were refused
	Touched []string           // tracked files that setup and gate have changed; hostile

	early []sandboxes.Notice // of Refused, what belongs to a setup that has passed
}

// missing finds the target or script that make, npm or pnpm did not find; none: make found no makefile.
var missing = pattern.Lazy("(?m)^(?:g?make: \\*\\*\\* (?:No rule to make target [`']([^']+)'\\. " +
	"+Stop\\.|No targets specified and no makefile found)" +
	`|npm (?:ERR!|error) Missing script: "([^"]+)"|.*ERR_PNPM_NO_SCRIPT.* Missing script: (\S+))`)

// lacks reports that a line names a target or a script that does not exist. One that only what it runs names is not meant: an
// agent may have to add that.
func lacks(c loop.Check) bool {
	m := missing().FindStringSubmatch(c.Tail)
	words := strings.FieldsFunc(c.Command, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`;&|(){}<>"'`, r) })
	return !c.Passed() && m != nil && slices.Contains(words, cmp.Or(m[1]+m[2]+m[3], "make"))
}

// unreached is what programs say where a connection was refused and they do not name the host.
var unreached = pattern.Lazy(`(?i)\b403\b|\bENOTFOUND\b|\bEAI_AGAIN\b|\bECONN(REFUSED|RESET)\b|\bgetaddrinfo\b|(not|n't) resolve|no such host|` +
	`name or service not known|failure in name resolution|tunnel|proxy ?(error|connect)|network is unreachable|connection (was )?refused`)

// unconnected reports that a check failed because of a connection that was refused. One that was refused and that the check does
// not speak of may be any program's question whether it is up to date.
func (c Checked) unconnected(check loop.Check) bool {
	names := func(n sandboxes.Notice) bool { return n.Host != "" && strings.Contains(check.Tail, n.Host) }
	return !check.Passed() && len(c.Refused) > 0 && (unreached().MatchString(check.Tail) || slices.ContainsFunc(c.Refused, names))
}

// ran reports that every check could run, whatever it said: none lacked a program, a target, time or a connection.
func (c Checked) ran() bool {
	if len(c.Checks) == 0 {
		return false
	}
	last := c.Checks[len(c.Checks)-1]
	return !c.Setup && !last.TimedOut && last.ExitCode != 126 && last.ExitCode != 127 && !lacks(last) && !c.unconnected(last)
}

// Check makes the checkout, runs the checks and removes it again.
func (c *Config) Check(ctx context.Context, o Checkout) (got Checked, err error) {
	told, err := c.inCheckout(ctx, o, func(ctx context.Context, w *Workspace) error { return w.check(ctx, o, &got) })
	got.Refused = slices.DeleteFunc(told, func(n sandboxes.Notice) bool { return slices.Contains(got.early, n) })
	return got, err
}

// inCheckout makes the checkout, opens its sandbox, and removes both when use has returned.
func (c *Config) inCheckout(ctx context.Context, o Checkout, use func(context.Context, *Workspace) error) (told []sandboxes.Notice, err error) {
	id := o.Run + "-" + o.Name
	if err := c.reapLeft(ctx, id); err != nil {
		return nil, err
	}
	defer c.Begin(id)()
	tree, err := c.Repo.Add(ctx, worktree.Spec{
		Run: id, Of: o.Run, Key: o.Key, Base: o.Base, From: o.From, Detached: true, Private: c.Private(), Layers: c.Layers(),
	})
	what := "verify"
	if o.guest {
		what = o.Name
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	w := c.New(id, tree, o.Facts, o.Refused)
	w.Asked = o.Interrupt
	if o.guest {
		w.agents, w.look, w.Meter = agents.Chain{c.Guest}, true, c.meterBeside(o.Run)
	} else {
		w.idle = true
		w.share(o.Run)
	}
	defer w.Forget()
	full := func() {}
	if o.FillHome && len(o.Checks.Setup) > 0 {
		ctx, full = w.fill(ctx, o.Base.Commit)
	}
	defer full()
	defer func() {
		after, cancel := Hurried(ctx)
		defer cancel()
		told = append(told, w.Shut(after)...)
		err = errors.Join(err, w.drop(after))
		w.filled.End(after, false)
	}()
	if len(o.Checks.Copy) > 0 {
		if err := tree.CopyIn(ctx, o.Checks.Copy); err != nil {
			return nil, err
		}
	}
	if err := o.Made.Into(ctx, tree); err != nil {
		return nil, err
	}
	if w.filled == nil && len(o.Checks.Setup) > 0 {
		w.Warm(ctx)
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
		Sandbox:   w.Box,
		Setup:     o.Checks.Setup,
		Gate:      o.Checks.Gate,
		Timers:    c.Timers,
		Interrupt: o.Interrupt,
		Observe:   o.Observe,
		Stream:    o.Stream,
	}
	setup := func() (passed bool, err error) {
		got.Checks, err = loop.RunSetup(ctx, config)
		got.Setup = err != nil || !loop.AllPassed(got.Checks)
		return !got.Setup, err
	}
	if len(o.Checks.Setup) > 0 && !w.SetUp() {
		if passed, err := setup(); !passed {
			return err
		}
	}
	if w.filled != nil { // the gate runs code of the repository's, which must not write to the home of later sandboxes
		moved, err := w.keep(ctx, o)
		if err != nil {
			return fmt.Errorf("verify: %w", err)
		}
		config.Sandbox = w.Box
		if w.warmth == nil || moved && !w.SetUp() { // it was too big to be kept, or somebody has removed it
			if passed, err := setup(); !passed {
				return err
			}
		}
	}
	got.early = w.refusals()
	if o.Each {
		got.Checks, err = each(ctx, config)
	} else {
		got.Checks, err = loop.RunGate(ctx, config)
	}
	if err == nil && o.Touch {
		got.Touched, err = w.touched(ctx, o)
	}
	if o.Each {
		return err
	}
	if err == nil && o.Then != nil && loop.AllPassed(got.Checks) {
		config.Observe, config.Stream = nil, nil // it is no result
		err = o.Then(ctx, again(w.Box, config))
	}
	return err
}

// keep keeps what setup has made, and opens another sandbox with it. moved says that what setup has put into the worktree has
// left it.
func (w *Workspace) keep(ctx context.Context, o Checkout) (moved bool, err error) {
	commit := w.Tree.Start()
	if w.filled.Alone {
		touched, err := w.touched(ctx, o)
		if err != nil {
			return false, err
		}
		moved = len(touched) == 0
	}
	_ = w.Shut(ctx) // what setup met says nothing about the gate
	half := false
	if moved {
		if moved, err = w.filled.KeepMade(ctx, w.Dir, commit); err != nil {
			w.c.Log.Warn("setup will run in every worktree", "reason", err)
		}
		half = moved && err != nil
	}
	w.filled.End(ctx, !half)
	if w.filled = nil; moved {
		w.warm(ctx, true)
	}
	return moved, w.Open(ctx)
}

// each runs all lines of a gate.
func each(ctx context.Context, config loop.Config) (all []loop.Check, err error) {
	stream := config.Stream
	for i, line := range config.Gate {
		config.Gate = []loop.Command{line}
		if stream != nil {
			config.Stream = func(string) (io.WriteCloser, error) { return stream(loop.GateLog(0, i)) }
		}
		checks, err := loop.RunGate(ctx, config)
		if all = append(all, checks...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// again writes files by commands inside: the commit may be an agent's, whose links would lead the host anywhere.
func again(box sandboxes.Sandbox, config loop.Config) Again {
	sh := func(ctx context.Context, script, path string, in io.Reader) error {
		tail := proc.NewTail(1 << 10)
		exit, err := box.Exec(ctx, sandboxes.Command{Argv: []string{"sh", "-c", script, "sh", path}, Stdin: in, Stdout: tail, Stderr: tail})
		if err == nil && !exit.OK() {
			err = fmt.Errorf("exit status %d: %s", exit.Code, lastLine(tail.String()))
		}
		return err
	}
	return func(ctx context.Context, path string, content []byte) ([]loop.Check, error) {
		if err := sh(ctx, `mkdir -p -- "$(dirname -- "$1")" && cat > "$1"`, "./"+path, bytes.NewReader(content)); err != nil {
			return nil, fmt.Errorf("add %s to the checkout: %w", path, err)
		}
		checks, err := loop.RunGate(ctx, config)
		if err == nil {
			err = sh(ctx, `rm -f -- "$1"`, "./"+path, nil)
		}
		return checks, err
	}
}
