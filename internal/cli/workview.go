package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/pool"
)

// workView tells people at a terminal, or a log, what a sweep is doing: one line for what matters.
type workView struct {
	ui      *printer
	started time.Time
	name    func(key string) string // what people call an issue
}

func (v *workView) event(e pool.Event) {
	switch e.Kind {
	case pool.EventSweep:
		v.ui.note("%s", v.ui.paint(dim, cleanLine(e.Text)))
	case pool.EventProblem:
		v.ui.warn(e.Text)
	case pool.EventStarted:
		v.line(e, v.ui.paint(bold, "started"), attempt(e.Attempt)+v.ui.brief(e.Title, 70))
	case pool.EventIteration:
		if e.Iteration > 1 || v.ui.verbose {
			v.line(e, v.ui.paint(dim, "iteration"), fmt.Sprint(e.Iteration))
		}
	case pool.EventGate:
		if e.Check != nil && (!e.Check.Passed() || v.ui.verbose) {
			state := "passed"
			if !e.Check.Passed() {
				state = v.ui.paint(yellow, "failed")
			}
			v.line(e, "gate "+state, e.Check.Command)
		}
	case pool.EventWarning:
		v.line(e, v.ui.paint(yellow, "warning"), e.Text)
	case pool.EventSkipped:
		v.line(e, v.ui.paint(dim, "left out"), e.Text)
	case pool.EventRecovered:
		v.line(e, v.ui.paint(yellow, "recovered"), e.Text)
	case pool.EventEnded:
		v.ended(e)
	case pool.EventAgent, pool.EventCommits, pool.EventSignal, pool.EventSetup:
		if v.ui.verbose {
			v.line(e, v.ui.paint(dim, string(e.Kind)), v.detail(e))
		}
	}
}

func (v *workView) detail(e pool.Event) string {
	switch {
	case e.Kind == pool.EventCommits:
		return fmt.Sprint(e.Commits, " new")
	case e.Check != nil:
		return fmt.Sprintf("%s: exit status %d", e.Check.Command, e.Check.ExitCode)
	}
	return v.ui.brief(cleanLine(e.Text), 160)
}

func (v *workView) ended(e pool.Event) {
	colour := green
	if e.Outcome != pool.Succeeded {
		colour = yellow
	}
	if e.Outcome == pool.Failed || e.Outcome == pool.GateFailed {
		colour = red
	}
	text := fmt.Sprintf("%s on %s, %s", plural(e.Commits, "commit"), e.Branch, age(time.Duration(e.Elapsed*float64(time.Second))))
	what := v.ui.paint(colour, string(e.Outcome))
	switch reason := cleanLine(e.Text); {
	case reason == "":
		v.line(e, what, text)
	case v.ui.terminal: // it may end in a command to type, and so begins a line
		v.line(e, what, text+":", reason)
	default:
		v.line(e, what, text+": "+reason)
	}
}

// line prints what happened, and more in lines of its own.
func (v *workView) line(e pool.Event, what, text string, more ...string) {
	line := fmt.Sprintf("%s  %s  %s", v.ui.paint(bold, cleanLine(v.name(e.Key))), what, cleanLine(text))
	for _, m := range more {
		line += "\n" + below + cleanLine(m)
	}
	v.ui.note("%s", line)
}

func attempt(n int) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf("(attempt %d) ", n)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// summary prints the result of a sweep.
func (a *app) summary(s pool.Summary, v *workView) error {
	if a.json {
		return a.ui.json(summaryJSON(s))
	}
	if len(s.Runs) == 0 {
		if a.quiet { // cron sends a mail for each line
			return nil
		}
		a.ui.printf("Nothing was worked%s.\n", because(s))
		return nil
	}
	rows := [][]string{{"ISSUE", "OUTCOME", "COMMITS", "BRANCH", "TIME"}}
	for _, r := range s.Runs {
		took := "unfinished" // the tracker or the remote is away: the next sweep tells the outcome
		if !r.Ended.IsZero() {
			took = age(r.Ended.Sub(r.Started))
		}
		rows = append(rows, []string{v.name(r.Key), string(r.Verdict.Outcome), fmt.Sprint(r.Verdict.Commits), r.Branch, took})
	}
	a.ui.table(rows)
	a.ui.printf("%s worked in %s: %s.\n", plural(len(s.Runs), "issue"), age(time.Since(v.started)), tally(s))
	return nil
}

// because names the most frequent reasons for leaving issues out, shortly.
func because(s pool.Summary) string {
	if len(s.Skipped) == 0 {
		return ""
	}
	return fmt.Sprintf(": %s left out (`ralph work --dry-run` says why)", plural(len(s.Skipped), "open issue"))
}

func tally(s pool.Summary) string {
	count := map[pool.Outcome]int{}
	var order []pool.Outcome
	for _, r := range s.Runs {
		if count[r.Verdict.Outcome]++; count[r.Verdict.Outcome] == 1 {
			order = append(order, r.Verdict.Outcome)
		}
	}
	var parts []string
	for _, o := range order {
		parts = append(parts, fmt.Sprintf("%d %s", count[o], o))
	}
	return strings.Join(parts, ", ")
}
