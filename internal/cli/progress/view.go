// Package progress shows runs while they are on: as lines for people and logs, as a view on a terminal, and as traces.
package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/tui"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// View prints the events of a sweep for people or a log, one line for each event that matters. It also feeds the view on a
// terminal.
type View struct {
	UI      *screen.Printer
	Started time.Time
	Name    func(key string) string // from keys to the names that people use
	Screen  *tui.View               // nil: no view
	Project string                  // the project, in a service
	checked map[string]checked      // by run; passed checks that are not printed yet
	State   string                  // ralph's state folder; empty: unknown
	Full    string                  // the warning of a full disk, after it was printed
	Lack    func() string           // says what a failing check on the base may lack, once; nil: unknown
	told    map[string]string       // names of issues, by the printed reason why agents or environment are unavailable
}

// toldMost is the maximum of reasons in told.
const toldMost = 100

// checked is the time that setup and gate took in one place.
type checked struct {
	place       journal.Place
	setup, gate time.Duration
	gated       bool
}

func (c checked) String() string {
	where := map[journal.Place]string{
		journal.PlaceWorktree: "in the worktree",
		journal.PlaceBase:     "on the base",
		journal.PlaceCheckout: "on a clean checkout",
	}[c.place]
	switch {
	case !c.gated:
		return where + ", " + screen.Age(c.setup)
	case c.setup > 0:
		return fmt.Sprintf("%s, %s (setup %s)", where, screen.Age(c.gate), screen.Age(c.setup))
	}
	return where + ", " + screen.Age(c.gate)
}

// check adds up the time of setup and gate, and prints a line when one fails.
func (v *View) check(e journal.Event) {
	c, on := v.checked[e.Run]
	if on && (c.place != e.Place || c.gated && e.Kind == journal.EventSetup) {
		v.passed(e)
		c = checked{}
	}
	if e.Check == nil {
		return
	}
	c.place = e.Place
	if e.Kind == journal.EventSetup {
		c.setup += e.Check.Duration
	} else {
		c.gate, c.gated = c.gate+e.Check.Duration, true
	}
	if !e.Check.Passed() {
		delete(v.checked, e.Run)
		text := fmt.Sprintf("%s: %s", c, e.Check.Command)
		if e.Check.TimedOut {
			text += " " + e.Check.Failure()
		}
		v.Line(e, string(e.Kind)+" "+v.UI.PaintErr(screen.Yellow, "failed"), text)
		if v.Lack != nil && e.Place == journal.PlaceBase {
			if lack := v.Lack(); lack != "" {
				v.Line(e, v.UI.PaintErr(screen.Yellow, "warning"), lack)
			}
		}
		return
	}
	if v.checked == nil {
		v.checked = map[string]checked{}
	}
	v.checked[e.Run] = c
}

// passed prints that setup or gate has passed, because the run has gone on.
func (v *View) passed(e journal.Event) {
	c, on := v.checked[e.Run]
	if !on {
		return
	}
	delete(v.checked, e.Run)
	what := "setup"
	if c.gated {
		what = "gate passed"
	}
	v.Line(e, v.UI.PaintErr(screen.Dim, what), c.String())
}

// Event prints an event of a run.
func (v *View) Event(e journal.Event) {
	text, _ := look.LogText(e)
	v.Screen.Event(v.Project, e, text)
	switch e.Kind {
	case journal.EventSetup, journal.EventGate:
		v.check(e)
	case journal.EventStarted, journal.EventStage, journal.EventIteration, journal.EventNote, journal.EventReview, journal.EventDeferred, journal.EventEnded:
		v.passed(e)
	}
	switch e.Kind {
	case journal.EventSweep:
		v.UI.Note("%s", v.UI.PaintErr(screen.Dim, screen.CleanLine(e.Text)))
	case journal.EventProblem:
		v.problem(e)
	case journal.EventStarted:
		v.Line(e, v.UI.PaintErr(screen.Bold, "started"), look.Attempt(e.Attempt)+v.UI.Brief(e.Title, 70))
	case journal.EventUsage:
		took := screen.Age(time.Duration(e.Elapsed * float64(time.Second)))
		v.Line(e, v.UI.PaintErr(screen.Dim, fmt.Sprintf("iteration %d", e.Iteration)), look.WithDetail(took, e.Text))
	case journal.EventNote, journal.EventReview:
		v.Line(e, v.UI.PaintErr(screen.Dim, string(e.Kind)), v.UI.Brief(screen.CleanLine(e.Text), 160))
	case journal.EventWarning, journal.EventDeferred:
		v.Line(e, v.UI.PaintErr(screen.Yellow, "warning"), hint.Raising(sandboxes.Notice{Text: e.Text, Subject: e.Subject}))
		v.warnFull(e.Text)
	case journal.EventSkipped:
		v.Line(e, v.UI.PaintErr(screen.Dim, "left out"), look.SkipText(e))
	case journal.EventRecovered:
		v.Line(e, v.UI.PaintErr(screen.Yellow, "recovered"), e.Text)
	case journal.EventMerged:
		v.Line(e, v.UI.PaintErr(screen.Green, "merged"), e.Text)
	case journal.EventEnded:
		v.ended(e)
	case journal.EventAgent, journal.EventCommits, journal.EventSignal, journal.EventSetup, journal.EventGate:
		check := e.Kind == journal.EventSetup || e.Kind == journal.EventGate
		if v.UI.Verbose && (!check || e.Check != nil && e.Check.Passed()) {
			v.Line(e, v.UI.PaintErr(screen.Dim, string(e.Kind)), v.detail(e))
		}
	}
}

func (v *View) problem(e journal.Event) {
	if e.Skip != nil {
		v.UI.Warn(v.Name(e.Key) + ": " + look.SkipText(e))
		return
	}
	text := e.Text
	if v.Project != "" {
		text = v.Project + ": " + text
	}
	v.UI.Warn(text)
	v.warnFull(e.Text)
}

func (v *View) detail(e journal.Event) string {
	switch {
	case e.Kind == journal.EventCommits:
		return fmt.Sprint(e.Commits, " new")
	case e.Check != nil:
		return e.Check.Command + ": " + e.Check.Ending()
	}
	return v.UI.Brief(screen.CleanLine(e.Text), 160)
}

func (v *View) ended(e journal.Event) {
	colour := screen.Green
	if e.Outcome != journal.Succeeded {
		colour = screen.Yellow
	}
	if e.Outcome == journal.Failed || e.Outcome == journal.GateFailed {
		colour = screen.Red
	}
	text := screen.Plural(e.Commits, "commit")
	switch {
	case e.Merged:
		text += " " + e.Text
	case e.Commits == 0: // there may be no branch
		text = "no commits"
	default:
		text += " on " + e.Branch
	}
	text += ", " + screen.Age(time.Duration(e.Elapsed*float64(time.Second)))
	what := v.UI.PaintErr(colour, string(e.Outcome))
	switch reason := screen.CleanLine(look.ReasonOf(e)); {
	case reason == "":
		v.Line(e, what, text)
	case v.UI.Terminal: // the reason may end with a command to copy, so it gets a line of its own
		v.Line(e, what, text+":", reason)
	default:
		v.Line(e, what, text+": "+reason)
	}
	if e.Outcome.Unavailable() && !v.UI.Quiet {
		if v.told == nil || len(v.told) >= toldMost { // a service keeps one view as long as it runs
			v.told = map[string]string{}
		}
		v.told[look.ReasonOf(e)] = v.Name(e.Key)
	}
	v.warnFull(look.ReasonOf(e))
}

// warnFull warns of a full disk, once, if the text is about one.
func (v *View) warnFull(text string) {
	if v.Full != "" || strings.TrimSpace(text) == "" {
		return
	}
	if v.Full = hint.FullDisk(text, v.State); v.Full != "" {
		v.UI.Warn(v.Full)
	}
}

// Told returns the name of the issue with which this reason was printed, why agents or environment are unavailable, or "".
func (v *View) Told(reason string) string { return v.told[reason] }

// Line prints one event; more goes onto lines below.
func (v *View) Line(e journal.Event, what, text string, more ...string) {
	line := fmt.Sprintf("%s  %s  %s", v.UI.PaintErr(screen.Bold, screen.CleanLine(v.Name(e.Key))), what, screen.CleanLine(text))
	line = v.UI.HangErr(line, len(screen.Below))
	for _, m := range more {
		line += "\n" + v.UI.HangErr(screen.Below+screen.CleanLine(m), len(screen.Below))
	}
	v.UI.Note("%s", line)
}
