package look

import (
	"cmp"
	"context"
	"os"
	"slices"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/parking"
	"github.com/ralph-pool/ralph/pool/report"
)

// slowAgent is an agent whose model service refuses requests, so that the process PID starts fewer runs at a time.
type slowAgent struct {
	Agent    string    `json:"agent"`
	PID      int       `json:"pid"`
	Parallel int       `json:"parallel"`
	Most     int       `json:"most"`
	Since    time.Time `json:"since"`
}

func slowData(list []parking.Slow, now time.Time) []slowAgent {
	out := []slowAgent{}
	for _, s := range list {
		out = append(out, slowAgent{s.Agent, s.PID, s.Allowed(now), s.Most, s.Since})
	}
	return out
}

// issueRetry is an issue that waits for another attempt.
type issueRetry struct {
	Issue   string    `json:"issue"`
	Title   string    `json:"title"`
	Run     string    `json:"run"`
	Attempt int       `json:"attempt"`
	Outcome string    `json:"outcome"`
	Reason  string    `json:"reason,omitempty"`
	RetryAt time.Time `json:"retry_at"`
}

// retryQueue lists the issues that wait for another attempt, the next first.
func retryQueue(states []RunState, now time.Time) []issueRetry {
	list := []issueRetry{}
	for _, s := range states {
		wait := journal.Tally{At: s.Facts.CompletedAt, RetryAt: s.Verdict.RetryAt}
		if v := s.Verdict; !s.Ended.IsZero() && !v.Final && wait.MustWait(now, nil) && s.State == string(v.Outcome) {
			list = append(list, issueRetry{s.Key, s.Title, s.ID, s.Attempt, string(v.Outcome), report.Reason(v.Reason), v.RetryAt})
		}
	}
	slices.SortFunc(list, func(a, b issueRetry) int {
		return cmp.Or(a.RetryAt.Compare(b.RetryAt), cmp.Compare(a.Issue, b.Issue))
	})
	return list
}

// waitsTime is the time limit for a status to read the backlog.
const waitsTime = 10 * time.Second

// waitsShown is the maximum of waiting issues that a status lists.
const waitsShown = 10

// waiting returns the issues that wait for other issues, or for merges of requests. It returns none if the backlog cannot be read.
func waiting(ctx context.Context, a *compose.App, p *compose.Parts) (list []backlog.Skipped) {
	ctx, cancel := context.WithTimeout(ctx, waitsTime)
	defer cancel()
	p.AssumeNone() // this command runs nothing in a sandbox
	var plan backlog.Plan
	worker, err := a.Worker(ctx, p)
	if err == nil {
		plan, err = worker.Plan(ctx)
	}
	if err != nil {
		p.Log.Debug("no look at the backlog", "error", err)
		return nil
	}
	list = plan.WaitingForRuns
	for _, s := range plan.Skipped {
		if s.Skip.Code == journal.SkipUnmerged || s.Skip.Code == journal.SkipOpen {
			list = append(list, s)
		}
	}
	return list
}

// printWaits prints which issues wait, and for what.
func printWaits(a *compose.App, list []backlog.Skipped, name func(key string) string) {
	shown := 0
	for _, s := range list {
		if s.Skip.Code == journal.SkipOpen {
			continue
		}
		if shown++; shown > waitsShown {
			a.UI.Printf("More issues wait; `ralph work --dry-run` lists them.\n")
			break
		}
		a.UI.Printf("%s %s.\n", screen.CleanLine(name(s.Issue.Key)), screen.CleanLine(WhyNot(s, name)))
	}
	PrintOpen(a, list)
}

// Parked lists the agents that runs of this host found unavailable, and whose waiting time is not over.
func Parked(ctx context.Context, a *compose.App, p *compose.Parts) ([]journal.Parked, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	list, err := parking.Load(ctx, p.Journal, "", host, time.Now())
	return stillParked(a, p, list), err
}

// stillParked returns those of the agents whose model service still has the address at which it was unavailable.
func stillParked(a *compose.App, p *compose.Parts, list []journal.Parked) []journal.Parked {
	return slices.DeleteFunc(slices.Clone(list), func(parked journal.Parked) bool {
		agent, err := a.Agents().Lookup(parked.Agent)
		if err != nil {
			return false
		}
		address, _ := a.ServiceAddress(p.Config, agent)
		return address != parked.Address
	})
}

// Waits lists the unavailable agents for which a first attempt has to wait, soonest first. It is empty if one of the attempt's
// agents is available.
func Waits(ctx context.Context, a *compose.App, p *compose.Parts) ([]journal.Parked, error) {
	parked, err := Parked(ctx, a, p)
	return parking.Waits(choices(p.Config, 1), parked), err
}

// PrintParked prints the unavailable agents, with end and reason.
func PrintParked(a *compose.App, list []journal.Parked) {
	for _, p := range list {
		a.UI.Printf("%s\n", screen.CleanLine(p.Sentence()))
	}
}

// choices returns the agents of an issue's nth attempt, in the order in which they are tried.
func choices(c config.Config, attempt int) []agents.Choice {
	list := []agents.Choice{{Agent: c.Agent, Model: c.Model}}
	if n := len(c.Attempts); n > 0 {
		list[0], _ = agents.ParseChoice(c.Attempts[min(max(attempt, 1), n)-1])
	}
	for _, text := range c.Fallback {
		choice, _ := agents.ParseChoice(text) // the configuration was checked
		list = append(list, choice)
	}
	return list
}
