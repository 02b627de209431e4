package work

import (
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/look"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// The output of `ralph work --json`. Fields are only ever added.

// PlanData is the output of `ralph work --dry-run --json`.
type PlanData struct {
	Work     []issueData      `json:"work"`
	After    []look.SkipData  `json:"after,omitempty"` // issues that wait for runs with the same files or label
	Later    []look.SkipData  `json:"later,omitempty"` // issues of work that lost their place in the order
	Skipped  []look.SkipData  `json:"skipped"`
	Merged   []issueData      `json:"merged"` // merged by people, and closed first
	Problems []string         `json:"problems"`
	Parked   []journal.Parked `json:"parked,omitempty"` // agents that are unavailable, until when and why
	Cycles   []tracker.Cycle  `json:"cycles,omitempty"` // each issue waits for the next one, and the last for the first
	Forecast *forecastData    `json:"forecast,omitempty"`
}

type issueData struct {
	Issue    string `json:"issue"`
	Title    string `json:"title"`
	URL      string `json:"url"`
	Priority int    `json:"priority,omitempty"`
}

// SummaryData is the output of `ralph work --json`.
type SummaryData struct {
	Runs        []journal.Record `json:"runs"`
	Skipped     []look.SkipData  `json:"skipped"`
	Problems    []string         `json:"problems"`
	Cycles      []tracker.Cycle  `json:"cycles,omitempty"`
	Broken      []look.SkipData  `json:"broken"`
	Unavailable string           `json:"unavailable,omitempty"`
	ParkedUntil time.Time        `json:"parked_until,omitzero"`
	Parked      []journal.Parked `json:"parked,omitempty"`   // agents that were unavailable at the end
	Parallel    int              `json:"parallel,omitempty"` // issues that could be worked at a time, at the end
	Interrupted bool             `json:"interrupted"`
	Spent       agents.Usage     `json:"spent"` // by all of Runs
}

func planJSON(p backlog.Plan, parked []journal.Parked) PlanData {
	return PlanData{
		Parked:   parked,
		Work:     issues(p.Work),
		After:    look.Skips(p.WaitingForRuns),
		Later:    look.Skips(p.Postponed),
		Skipped:  look.Skips(p.Skipped),
		Merged:   issues(p.Merged),
		Problems: problems(p.Problems),
		Cycles:   p.Cycles,
	}
}

func issues(list []tracker.Issue) []issueData {
	out := []issueData{}
	for _, i := range list {
		out = append(out, issueData{Issue: i.Key, Title: i.Title, URL: i.URL, Priority: i.Priority})
	}
	return out
}

func summaryJSON(s pool.Summary) SummaryData {
	d := SummaryData{
		Runs: s.Runs, Skipped: look.Skips(s.Skipped), Problems: problems(s.Problems), Broken: look.Skips(s.Broken),
		Cycles: s.Cycles, ParkedUntil: s.ParkedUntil, Parked: s.Parked, Parallel: s.Parallel,
		Interrupted: s.Interrupted,
	}
	for _, r := range s.Runs {
		d.Spent = d.Spent.Add(r.Facts.Usage)
	}
	if d.Runs == nil {
		d.Runs = []journal.Record{}
	}
	if s.Unavailable != nil {
		d.Unavailable = unavailableText(s.Unavailable)
	}
	return d
}

func problems(list []tracker.Problem) []string {
	out := []string{}
	for _, p := range list {
		out = append(out, p.Error())
	}
	return out
}
