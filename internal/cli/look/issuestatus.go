package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

// IssueStatusData is the output of `ralph status KEY --json`. Fields are only ever added.
type IssueStatusData struct {
	Issue    string       `json:"issue"`
	Title    string       `json:"title"`
	URL      string       `json:"url,omitempty"`
	Open     bool         `json:"open"`
	Labels   []string     `json:"labels"`
	State    string       `json:"state"` // of the latest run; empty: there is none
	Reason   string       `json:"reason,omitempty"`
	Attempts int          `json:"attempts"` // attempts used
	Spent    agents.Usage `json:"spent"`
	Unknown  int          `json:"runs_without_cost"` // among the local runs
	RetryAt  time.Time    `json:"retry_at,omitzero"` // zero: it does not wait
	Waits    string       `json:"waits,omitempty"`   // for another issue, or for merges of requests
	Branch   string       `json:"branch,omitempty"`  // empty: there is none
	Request  string       `json:"request,omitempty"`
	Runs     []RunState   `json:"runs"` // the latest runs, oldest first
}

// runsShown is the maximum of runs in an issue's status.
const runsShown = 5

func statusOfIssue(ctx context.Context, a *compose.App, p *compose.Parts, key string) error {
	runs, err := p.RunsOf(ctx, key)
	if err != nil && !errors.Is(err, compose.ErrNoRuns) {
		return err
	}
	states := StatesOf(runs)
	MarkMerged(ctx, p, states)
	s := IssueStatusData{Issue: p.Key(ctx, key), Labels: []string{}, Runs: states[max(0, len(runs)-runsShown):]}
	if n := len(s.Runs); n > 0 {
		last := Standing(states)
		t := s.Runs[n-1].Tally()
		s.Issue, s.Title, s.URL, s.State, s.Reason = last.Key, last.Title, last.URL, last.row(journal.Record{})[1], report.Reason(last.Verdict.Reason)
		all := sumOf(runs)
		s.Attempts, s.Spent, s.Unknown, s.Branch, s.Request = t.Attempts, all.Usage, all.Unknown, last.Branch, last.Request.URL
		t.Parked = stillParked(a, p, t.Parked)
		if t.MustWait(time.Now(), choices(p.Config, t.Attempts+1)) {
			s.RetryAt = t.RetryAt
		}
	}
	if n := len(s.Runs); n > 0 && s.Runs[n-1].State != "running" {
		has, err := hasBranch(ctx, p, s.Branch)
		if err != nil {
			return err
		}
		if !has { // the branch was removed
			s.Branch = ""
		}
	}
	issue, err := p.Backlog.Get(ctx, s.Issue)
	switch {
	case err == nil:
		s.Title, s.URL, s.Open, s.Labels = issue.Title, issue.URL, issue.Open, append(s.Labels, issue.Labels...)
	case !errors.Is(err, tracker.ErrNotFound): // an issue that is gone still has runs
		return err
	}
	if err == nil && issue.Open {
		for _, w := range waiting(ctx, a, p) {
			if w.Issue.Key == s.Issue {
				s.Waits = WhyNot(w, p.Names(ctx))
			}
		}
	}
	if a.JSON {
		return a.UI.JSON(s)
	}
	printIssue(a, s, p.Names(ctx)(s.Issue))
	return nil
}

func printIssue(a *compose.App, s IssueStatusData, name string) {
	line := func(name, format string, args ...any) {
		a.UI.Printf("  %-9s %s\n", name, screen.CleanLine(fmt.Sprintf(format, args...)))
	}
	a.UI.Printf("%s  %s\n", a.UI.Paint(screen.Bold, screen.CleanLine(name)), screen.CleanLine(s.Title))
	state := "closed"
	if s.Open {
		state = "open"
	}
	line("issue", "%s", strings.Join(slices.Insert(slices.Clone(s.Labels), 0, state), ", "))
	if s.Waits != "" {
		line("waits", "%s", strings.TrimPrefix(s.Waits, "waits "))
	}
	if len(s.Runs) == 0 {
		line("runs", "none yet on this host; `ralph work --dry-run` says whether it would be worked")
		return
	}
	line("state", "%s", s.State)
	if s.Reason != "" {
		line("reason", "%s", s.Reason)
	}
	free := ""
	if v := s.Runs[len(s.Runs)-1].Verdict; !v.Counted && (v.Blameless() || v.Outcome.UsesAttempt()) {
		free = "; the latest run does not count"
	}
	line("attempts", "%d failed%s", s.Attempts, free)
	total := "not reported by the agent"
	if s.Spent != (agents.Usage{}) {
		total = ledger.Spend{Usage: s.Spent, Unknown: s.Unknown}.Text()
	}
	line("spent", "%s", total)
	if s.RetryAt.After(time.Now()) {
		line("retry", "after %s; to start it now: ralph work %s", s.RetryAt.Local().Format(time.DateTime), s.Issue)
	}
	if s.Branch != "" {
		line("branch", "%s", s.Branch)
	}
	if s.Request != "" {
		line("request", "%s", s.Request)
	}
	rows := [][]string{{"RUN", "STATE", "COMMITS", "STARTED", "TOOK", "COST"}}
	for _, r := range s.Runs {
		row := r.row(journal.Record{})
		rows = append(rows, []string{r.ID, row[1], row[3], row[4], row[5], row[6]})
	}
	a.UI.Printf("\n")
	a.UI.Table(screen.WithoutUnknown(rows, "COST"))
	printLeft(a, s.Runs)
}

// sumOf returns the usage of all runs: the sum of the local ones, or the claim's sum if that is more, as after runs elsewhere.
func sumOf(runs []journal.Record) (sum CostGroup) {
	for _, r := range runs {
		sum.Add(r)
	}
	if t := runs[len(runs)-1].Tally(); t.Spent.Tokens() > sum.Tokens() {
		sum.Usage = t.Spent
	}
	return sum
}
