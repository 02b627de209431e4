package cli

import (
	"time"

	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/tracker"
)

// The data that `ralph work --json` prints. Fields are only ever added.

type skipData struct {
	Issue  string `json:"issue"`
	Title  string `json:"title"`
	Reason string `json:"reason"`
}

type planData struct {
	Work     []issueData `json:"work"`
	Skipped  []skipData  `json:"skipped"`
	Problems []string    `json:"problems"`
}

type issueData struct {
	Issue    string `json:"issue"`
	Title    string `json:"title"`
	URL      string `json:"url"`
	Priority int    `json:"priority,omitempty"`
}

type summaryData struct {
	Runs        []pool.Record `json:"runs"`
	Skipped     []skipData    `json:"skipped"`
	Problems    []string      `json:"problems"`
	Broken      []skipData    `json:"broken"`
	Unavailable string        `json:"unavailable,omitempty"`
	ParkedUntil time.Time     `json:"parked_until,omitzero"`
	Interrupted bool          `json:"interrupted"`
}

func planJSON(p pool.Plan) planData {
	d := planData{Work: []issueData{}, Skipped: skips(p.Skipped), Problems: problems(p.Problems)}
	for _, i := range p.Work {
		d.Work = append(d.Work, issueData{Issue: i.Key, Title: i.Title, URL: i.URL, Priority: i.Priority})
	}
	return d
}

func summaryJSON(s pool.Summary) summaryData {
	d := summaryData{
		Runs: s.Runs, Skipped: skips(s.Skipped), Problems: problems(s.Problems), Broken: skips(s.Broken),
		ParkedUntil: s.ParkedUntil,
		Interrupted: s.Interrupted,
	}
	if d.Runs == nil {
		d.Runs = []pool.Record{}
	}
	if s.Unavailable != nil {
		d.Unavailable = s.Unavailable.Error()
	}
	return d
}

func skips(list []pool.Skip) []skipData {
	out := []skipData{}
	for _, s := range list {
		out = append(out, skipData{Issue: s.Issue.Key, Title: s.Issue.Title, Reason: s.Reason})
	}
	return out
}

func problems(list []tracker.Problem) []string {
	out := []string{}
	for _, p := range list {
		out = append(out, p.Error())
	}
	return out
}
