package look

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/report"
)

// NewShow returns `ralph show`.
func NewShow(a *compose.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show KEY", Short: "Show an issue's runs and commits, and what to do next",
		Example:     "  ralph show fix-login\n  ralph show fix-login --json",
		Annotations: compose.Marks(compose.Looks, compose.Reads),
		GroupID:     compose.GroupLook, Args: exit.OneIssue, ValidArgsFunction: a.CompleteWorked,
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, args []string) error {
			return show(ctx, a, p, args[0])
		}),
	}
	a.AddJSON(cmd)
	a.Bind(cmd, keys.ForIssue, "base")
	return cmd
}

func show(ctx context.Context, a *compose.App, p *compose.Parts, key string) error {
	runs, err := p.RunsOf(ctx, key)
	if err != nil {
		return err
	}
	states := StatesOf(runs)
	MarkMerged(ctx, p, states)
	passed, _ := a.AgentEnv(p.AgentEnv) // a missing variable has no secret
	p.Secrets.Add(a.Secrets(passed, a.User())...)
	now, err := workOf(ctx, p, Standing(states))
	if err == nil {
		now.findLost(ctx, p, runs)
	}
	if a.JSON {
		shown := make([]ShownRunData, len(states))
		for i, s := range states {
			shown[i].RunState = s
		}
		if err == nil {
			shown[len(shown)-1].Now = &now
		}
		return errors.Join(err, a.UI.JSON(shown))
	}
	name := p.Names(ctx)
	for i, s := range states {
		if i > 0 {
			a.UI.Printf("\n")
		}
		showRun(a, s, name(s.Key))
	}
	if err == nil {
		showWork(a, now)
	}
	return err
}

// showRun prints one run.
func showRun(a *compose.App, s RunState, name string) {
	p := runPrinter{a, s}
	title := a.UI.Wrapped(screen.CleanLine(name)+"  "+screen.CleanLine(s.Title), 2)
	a.UI.Printf("%s%s\n", a.UI.Paint(screen.Bold, screen.CleanLine(name)), strings.TrimPrefix(title, screen.CleanLine(name)))
	p.state()
	p.iterations()
	p.checks()
	p.review()
	p.usage()
	p.outcome()
}

// runPrinter prints one run, a line per fact.
type runPrinter struct {
	a *compose.App
	s RunState
}

func (p runPrinter) line(name, format string, args ...any) {
	text := fmt.Sprintf("  %-11s %s", name, screen.CleanLine(fmt.Sprintf(format, args...)))
	p.a.UI.Printf("%s\n", p.a.UI.Wrapped(text, 14))
}

func (p runPrinter) state() {
	s, line := p.s, p.line
	line("run", "%s, attempt %d, %s", s.ID, s.Attempt, s.State)
	if s.State == "running" {
		line("now", "%s", doing(s.Record, time.Now()))
	}
	if why := report.Reason(s.Verdict.Reason); why != "" {
		line("reason", "%s", why)
	}
	for _, text := range s.lastWords() {
		line("stderr", "%s", text)
	}
	took := s.DurationUntil(time.Now())
	if !s.Ended.IsZero() {
		took = s.DurationUntil(s.Ended)
	}
	line("time", "%s (%s), took %s", s.Started.Local().Format(time.DateTime), screen.Ago(s.Started, time.Now()), screen.Age(took))
}

func (p runPrinter) iterations() {
	s, line := p.s, p.line
	workers := report.Workers(s.Record)
	line("agent", "%s, sandbox %s", cmp.Or(strings.Join(workers, ", then "), "none"), s.Sandbox)
	for _, it := range s.Facts.Iterations {
		by := ""
		if len(workers) > 1 {
			by = agents.Choice{Agent: it.Agent, Model: it.Model}.String() + ", "
		}
		if it.Resumed {
			by += "resumed, "
		}
		how := report.Ending(it)
		if it.Failure != nil {
			how = strings.TrimPrefix(how+": "+report.Failure(it.Failure), ": ")
		}
		number, commits := fmt.Sprintf("iteration %d", it.Number), screen.Plural(it.Commits, "commit")
		line(number, "%s%s in %s, %s", by, commits, screen.Age(it.Duration), how)
	}
}

// checks prints the checks of the gate, and the retest of changed tests.
func (p runPrinter) checks() {
	f, line := p.s.Facts, p.line
	gate := func(name string, checks []loop.Check) {
		for _, c := range checks {
			if c.TimedOut { // the text has the time
				line(name, "%s", CheckText(c))
				continue
			}
			line(name, "%s in %s", CheckText(c), screen.Age(c.Duration))
		}
	}
	if !p.s.Settings.Attended { // a merge has the results of the run before it
		gate("gate", f.Gate)
	}
	if at := p.s.Verified.At; p.s.Settings.Attended && !at.IsZero() && at.Before(p.s.Started) {
		line("verify", "not run again; the gate passed %s", at.Local().Format(time.DateTime))
	} else if f.Verify != nil {
		gate("verify", f.Verify.Checks)
	}
	if v := f.Retest; v != nil {
		line("tests", "%s", report.Retest(v))
		for _, run := range v.Runs {
			text := run.Command + ": without the change " + report.TestRun(run.Base)
			if run.Tip != nil {
				text += ", with it " + report.TestRun(*run.Tip)
			}
			line("", "%s", text)
		}
	}
}

func (p runPrinter) review() {
	f, line := p.s.Facts, p.line
	if v := f.Review; v != nil {
		line("review", "%s, round %d: %s", v.Agent, v.Round, report.Review(v))
		for _, finding := range v.Findings {
			line("", "%s", report.Finding(finding))
		}
	}
	if u := f.ReviewSpend.Usage; u != (agents.Usage{}) {
		name := ""
		if f.Review == nil { // otherwise the line above names it
			name = "review"
		}
		line(name, "%s, part of the usage below", ledger.Spend{Usage: u}.Text())
	}
}

func (p runPrinter) usage() {
	f, line := p.s.Facts, p.line
	if f.Usage != (agents.Usage{}) {
		line("usage", "%s", ledger.Spend{Usage: f.Usage}.Text())
		if u := f.Unmetered(); u != (agents.Usage{}) {
			line("", "%s of it reported only by the agent", ledger.Spend{Usage: u}.Text())
		}
		if text := ledger.Compare(f.Iterations).String(); text != "" {
			line("sessions", "%s", text)
		}
	}
}

// outcome prints what the run has left.
func (p runPrinter) outcome() {
	s, line := p.s, p.line
	switch {
	case s.State == "running":
		line("commits", "%d on %s, from %s; those of an iteration are counted when it ends", s.Commits, s.Branch, s.Base)
	case s.Commits == 0: // there may be no branch
		line("commits", "none, from %s", s.Base)
	default:
		line("commits", "%d on %s, from %s", s.Commits, s.Branch, s.Base)
	}
	if s.Proof.Tip != "" {
		line("proof", "of %s, signed by %s", screen.ShortSHA(s.Proof.Tip), s.Proof.Key)
	}
	if s.Published != "" {
		line("published", "%s", s.Published)
	}
	if s.Facts.Question != "" {
		line("question", "%s", s.Facts.Question)
	}
	for _, w := range s.Warnings {
		line("warning", "%s", hint.Raising(w))
	}
	line("logs", "%s", s.Dir)
}

// doing says what a run is doing and for how long, according to its log.
func doing(r journal.Record, now time.Time) string {
	text, _, since := phase(r)
	if since.IsZero() {
		return text
	}
	return fmt.Sprintf("%s, for %s", text, screen.Age(now.Sub(since)))
}

// phase says what a run is doing, according to its log: in full, in a word or two, and since when. since is zero if it is unknown.
func phase(r journal.Record) (text, short string, since time.Time) {
	text, short, since = string(r.Stage), string(r.Stage), r.Started
	err := journal.ReadEvents(r.Dir, func(e journal.Event) error {
		at := text
		switch {
		case e.Kind == journal.EventStage:
			at, short = string(e.Stage), string(e.Stage)
		case e.Kind == journal.EventIteration:
			at = fmt.Sprintf("iteration %d", e.Iteration)
			short = at
		case e.Begins():
			before, _, _ := strings.Cut(text, ": ")
			at, short = fmt.Sprintf("%s: %s: %s", before, e.Kind, e.Text), string(e.Kind)
			if e.Place == journal.PlaceCheckout {
				at, short = fmt.Sprintf("verify: %s on a clean checkout: %s", e.Kind, e.Text), "verify"
			}
		}
		if at != text {
			text, since = at, e.Time
		}
		return nil
	})
	if err != nil { // the log is not on this host
		return string(r.Stage), string(r.Stage), time.Time{}
	}
	return text, short, since
}

// lastWords returns the last lines of a failed agent's standard error, unless it is a single line: the reason contains that.
func (s RunState) lastWords() []string {
	n := len(s.Facts.Iterations)
	if s.Facts.Failure == nil || n == 0 {
		return nil
	}
	f, err := os.Open(filepath.Join(s.Dir, fmt.Sprintf("agent-%d.stderr", s.Facts.Iterations[n-1].Number)))
	if err != nil {
		return nil // an older run's log was removed
	}
	defer f.Close()
	tail := proc.NewTail(2 << 10)
	_, _ = io.Copy(tail, f)
	all := strings.Split(strings.TrimSpace(screen.Clean(tail.String())), "\n")
	if len(all) == 1 {
		return nil
	}
	return all[max(0, len(all)-8):]
}
