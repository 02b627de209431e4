package cli

import (
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// The data that `ralph work --json` prints. Fields are only ever added.

type planData struct {
	Work     []issueData      `json:"work"`
	After    []skipData       `json:"after,omitempty"` // issues that wait for runs with the same files or label
	Later    []skipData       `json:"later,omitempty"` // issues of work that lost their place in the order
	Skipped  []skipData       `json:"skipped"`
	Merged   []issueData      `json:"merged"` // closed first
	Problems []string         `json:"problems"`
	Parked   []journal.Parked `json:"parked,omitempty"` // agents that are unavailable, until when and why
	Cycles   []tracker.Cycle  `json:"cycles,omitempty"` // each issue waits for the next, the last for the first
	Forecast *forecastData    `json:"forecast,omitempty"`
}

type issueData struct {
	Issue    string `json:"issue"`
	Title    string `json:"title"`
	URL      string `json:"url"`
	Priority int    `json:"priority,omitempty"`
}

type summaryData struct {
	Runs        []journal.Record `json:"runs"`
	Skipped     []skipData       `json:"skipped"`
	Problems    []string         `json:"problems"`
	Cycles      []tracker.Cycle  `json:"cycles,omitempty"`
	Broken      []skipData       `json:"broken"`
	Unavailable string           `json:"unavailable,omitempty"`
	ParkedUntil time.Time        `json:"parked_until,omitzero"`
	Parked      []journal.Parked `json:"parked,omitempty"`   // agents that were unavailable at the end
	Parallel    int              `json:"parallel,omitempty"` // issues that could be worked at once at the end
	Interrupted bool             `json:"interrupted"`
	Spent       agents.Usage     `json:"spent"` // by all of Runs
}

func planJSON(p pool.Plan, parked []journal.Parked) planData {
	return planData{Parked: parked, Work: issues(p.Work), After: skips(p.After), Later: skips(p.Later), Skipped: skips(p.Skipped), Merged: issues(p.Merged), Problems: problems(p.Problems), Cycles: p.Cycles}
}

func issues(list []tracker.Issue) []issueData {
	out := []issueData{}
	for _, i := range list {
		out = append(out, issueData{Issue: i.Key, Title: i.Title, URL: i.URL, Priority: i.Priority})
	}
	return out
}

func summaryJSON(s pool.Summary) summaryData {
	d := summaryData{
		Runs: s.Runs, Skipped: skips(s.Skipped), Problems: problems(s.Problems), Broken: skips(s.Broken),
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
