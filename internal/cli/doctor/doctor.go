// Package doctor is the command `ralph doctor`: it checks all that ralph needs, and says how to fix what is wrong.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/cli/work"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/token"
	"github.com/ralph-pool/ralph/worktree"
)

const doctorLong = `Check everything that a sweep needs. Each line is ok, warn or fail, and names the command that fixes it.
Doctor changes nothing, except that it takes and releases one claim, and creates missing labels with --create-labels.

Exit status: 0 when nothing fails, 1 when something does, 2 when there is no repository or the configuration is wrong.`

// NewCommand returns `ralph doctor`.
func NewCommand(a *compose.App) *cobra.Command {
	var create bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check what ralph needs to work", Long: doctorLong,
		Example:     "  ralph doctor\n  ralph doctor --create-labels\n  ralph doctor --json",
		Annotations: compose.Marks(compose.Looks, compose.SaysUntrusted, compose.Waits),
		GroupID:     compose.GroupSetUp, Args: exit.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDoctor(cmd, a, create) },
	}
	cmd.Flags().BoolVar(&create, "create-labels", false, "create labels that ralph needs and the tracker lacks")
	a.AddJSON(cmd)
	a.Bind(cmd, keys.ForWork)
	return cmd
}

func runDoctor(cmd *cobra.Command, a *compose.App, create bool) (err error) {
	d := &doctor{app: a}
	d.ok("ralph", d.app.Build().Line())
	p, err := a.Open(cmd)
	if u := a.Untrusted; u != nil {
		d.fail("trust", u.What()+"; the other checks ignore it", u.Command)
	}
	if err != nil {
		what, fix := "repository", hint.For(err)
		if _, damaged := errors.AsType[*sqlite.DamagedError](err); damaged {
			what = "journal"
		}
		for line := range strings.Lines(err.Error()) { // one line per wrong key
			d.fail(what, strings.TrimSpace(line), fix)
		}
		d.status = exit.ProblemOf(cmd.Context(), cmd.Root(), err).Status // the status that other commands have for it
		return d.tell()
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	ctx := cmd.Context()
	d.ok("repository", p.Top)
	d.configuration(p)
	d.base(ctx, p)
	d.identity(ctx, p)
	d.claims(ctx, p)
	d.journal(ctx, p)
	d.leftovers(ctx, p)
	d.tracker(ctx, p, create)
	d.agent(ctx, p)
	d.reviewer(ctx, p)
	d.services(ctx, p)
	d.parked(ctx, p)
	d.metering(ctx, p)
	d.sandboxes(ctx, p)
	d.prompt(ctx, p)
	d.copied(p)
	d.gate(ctx, p)
	d.disk(p)
	return d.tell()
}

// doctor collects the findings.
type doctor struct {
	app       *compose.App
	findings  []tracker.Finding
	status    int    // exit status of a failed check; 0: exit.Failed
	tokenless bool   // the forge's missing token was reported
	away      bool   // the remote that is not available was reported
	inside    string // the agent's program, which the sandbox needs; empty: unknown
}

func (d *doctor) add(what string, s tracker.Severity, detail, fix string) {
	d.findings = append(d.findings, tracker.Finding{Subject: what, Severity: s, Detail: detail, Fix: fix})
}

func (d *doctor) ok(what, detail string)        { d.add(what, tracker.OK, detail, "") }
func (d *doctor) warn(what, detail, fix string) { d.add(what, tracker.Warn, detail, fix) }
func (d *doctor) fail(what, detail, fix string) { d.add(what, tracker.Fail, detail, fix) }

// tell prints the findings, and returns an error if any of them failed.
func (d *doctor) tell() error {
	ui, failed := d.app.UI, 0
	for _, f := range d.findings {
		if f.Severity == tracker.Fail {
			failed++
		}
	}
	if d.app.JSON {
		if err := ui.JSON(d.findings); err != nil {
			return err
		}
	} else {
		colours := map[tracker.Severity]screen.Style{tracker.OK: screen.Green, tracker.Warn: screen.Yellow, tracker.Fail: screen.Red}
		for _, f := range d.findings {
			line := ui.Wrapped(fmt.Sprintf("%-4s  %-12s  %s", f.Severity, screen.CleanLine(f.Subject), screen.CleanLine(f.Detail)), 20)
			ui.Printf("%s%s\n", ui.Paint(colours[f.Severity], line[:4]), line[4:])
			if f.Fix != "" {
				ui.Printf("%s\n", strings.Replace(fixLine(f.Fix, ui.Width()), "fix:", ui.Paint(screen.Dim, "fix:"), 1))
			}
		}
	}
	if failed > 0 {
		return &exit.Error{Status: cmp.Or(d.status, exit.Failed), Err: fmt.Errorf("%s failed", screen.Plural(failed, "check"))}
	}
	return nil
}

// fixLine returns the line below a finding that tells the fix, wrapped to width columns; 0: not wrapped.
func fixLine(fix string, width int) string {
	line := strings.Repeat(" ", 20) + "fix: " + screen.CleanLine(fix)
	if width == 0 {
		return line
	}
	return screen.WrapLine(line, 25, width)
}

// configuration warns if neither of the files exists.
func (d *doctor) configuration(p *compose.Parts) {
	_, none := os.Stat(config.UserFile(d.app.Host.Env))
	if none != nil && !scaffold.Configured(p.Top) {
		d.warn("config", "no "+config.File+" and no file of your own: every key has its default", "ralph init")
	}
}

func (d *doctor) base(ctx context.Context, p *compose.Parts) {
	base, err := p.ForeignBase(ctx)
	if err == nil {
		err = work.PrefixFree(ctx, p)
	}
	switch unready := p.Repo.CheckNoOperation(ctx); {
	case errors.Is(unready, worktree.ErrUnfinished):
		if !errors.Is(err, worktree.ErrUnfinished) { // which says the same
			d.warn("checkout", unready.Error(), "")
		}
	case unready != nil:
		d.fail("checkout", unready.Error(), "")
	}
	if err != nil {
		d.fail("base", err.Error(), hint.For(err))
		return
	}
	d.ok("base", fmt.Sprintf("%s at %s", base.Name, screen.ShortSHA(base.Commit)))
}

// claims takes and releases a claim, as every run does first.
func (d *doctor) claims(ctx context.Context, p *compose.Parts) {
	where := "in this repository (no remote)"
	if r := p.Repo.Remote(); r != "" {
		where = "on remote " + r
	}
	claim, err := p.Repo.Claim(ctx, "ralph-doctor", worktree.Holder{Owner: "ralph doctor", Run: "doctor"}, time.Minute)
	if err == nil {
		err = claim.Release(ctx)
	}
	if d.lacksToken(ctx, p, err) {
		return
	}
	if err != nil {
		text := where + ": " + err.Error()
		if d.away = errors.Is(err, worktree.ErrRemote); d.away { // which claim it was does not matter, and the error names the remote
			text = text[max(0, strings.Index(text, worktree.ErrRemote.Error())):]
		}
		d.fail("claims", text, cmp.Or(hint.Claims(err), hint.For(err)))
		return
	}
	d.ok("claims", "taken and released "+where)
}

// lacksToken reports that err means a missing token of the forge. It adds one finding only, however many checks fail so.
func (d *doctor) lacksToken(ctx context.Context, p *compose.Parts, err error) bool {
	kind, _ := d.app.Trackers.Lookup(p.Backlog.Name()) // it exists: the registry opened the backlog
	if !errors.Is(err, token.ErrNone) || !kind.Takes(tracker.OptionProject) {
		return false
	}
	if !d.tokenless {
		project, unknown := p.ProjectOn(ctx, kind)
		if unknown != nil {
			project = kind.Title
		}
		text := err.Error()
		d.fail("token", project+": "+text[max(0, strings.Index(text, token.ErrNone.Error())):], hint.Tracker(kind, err))
	}
	d.tokenless = true
	return true
}

func (d *doctor) tracker(ctx context.Context, p *compose.Parts, create bool) {
	kind, _ := d.app.Trackers.Lookup(p.Backlog.Name())
	if both := p.IgnoredTracker(); both != "" {
		d.warn("tracker", both, p.IgnoredTrackerFix())
	}
	if listed, ok := config.Served(d.app.Host.Env, d.app.Choices(), p.Top); ok {
		if other := listed.Otherwise(kind.Name); other != "" {
			d.warn("tracker", other, "if you run that service, set its tracker in your own file, too, or give it as a flag")
		}
	}
	list, err := p.Backlog.List(ctx, tracker.Query{Labels: p.Labels})
	if d.lacksToken(ctx, p, err) {
		return
	}
	if inspector, ok := tracker.As[tracker.Inspector](p.Backlog); ok {
		labels := append(slices.Clone(p.Labels), p.ReviewLabel, p.NeedsHumanLabel, p.NeedsInfoLabel)
		if create {
			if err := inspector.CreateLabels(ctx, labels); err != nil {
				d.fail("labels", err.Error(), "")
			}
		}
		expect := tracker.Expectation{Labels: labels, Push: p.Publish != "none"}
		for _, f := range inspector.Inspect(ctx, expect) {
			if f.Subject == tracker.FindingLabels && f.Severity == tracker.Warn && f.Fix == "" {
				f.Fix = "ralph doctor --create-labels"
			}
			d.findings = append(d.findings, f)
		}
	}
	if err != nil {
		d.fail("backlog", err.Error(), hint.Tracker(kind, err))
		return
	}
	ready := 0
	for _, i := range list.Issues {
		if i.Open && !slices.ContainsFunc(p.Labels, func(l string) bool { return !i.HasLabel(l) }) {
			ready++
		}
	}
	d.ok("backlog", fmt.Sprintf("%s: %s with label %s", p.Backlog.Name(), screen.Plural(ready, "open issue"), strings.Join(p.Labels, ", ")))
	for _, pr := range list.Problems {
		if pr.Kept {
			d.warn("backlog", pr.Error(), "")
		} else {
			d.fail("backlog", pr.Error()+"; sweeps skip this issue", "")
		}
	}
}

func (d *doctor) gate(ctx context.Context, p *compose.Parts) {
	d.programs(ctx, p, "setup", p.Setup)
	d.programs(ctx, p, "gate", p.Gate)
	d.submodules(ctx, p)
	d.tools(p)
	d.sources(ctx, p)
	d.locks(ctx, p)
	if len(p.Gate) == 0 {
		d.warn("gate", "no gate: nothing checks the agent's work",
			"gate: [\"go test ./...\"] in .ralph/config.yaml, or --gate")
		return
	}
	d.ok("gate", strings.Join(p.Gate, "; "))
}
