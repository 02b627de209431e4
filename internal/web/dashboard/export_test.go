package dashboard

import (
	"io/fs"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Style returns the style sheet.
func Style() (string, error) {
	data, err := fs.ReadFile(files, "assets/style.css")
	return string(data), err
}

// Internals for tests.
type (
	FileDiff = fileDiff
	LogPage  = logPage
)

const (
	StepsLogs   = stepsLogs
	SearchRange = searchRange
	LogShown    = logShown
)

// Diff parses a patch.
func Diff(patch []byte) ([]FileDiff, int, bool) { return parseDiff(patch, 0, false) }

// Beginning parses a patch that was cut.
func Beginning(patch []byte) ([]FileDiff, int, bool) { return parseDiff(patch, 3, true) }

// Part reads a section of a log.
func Part(dir, name string, from int64, query string) (LogPage, error) {
	return page(dir, name, from, query)
}

// StepIndex exports stepIndex.
type StepIndex struct{ stepIndex }

// Steps returns the names of the steps of a run that has ended.
func (x *StepIndex) Steps(r journal.Record) (names []string, cut bool, err error) {
	list, cut, err := x.of(r, r.Ended)
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names, cut, err
}

// Before reads the section of a log before an offset.
func Before(dir, name string, end int64) (LogPage, error) { return before(dir, name, end, logShown) }

// Drawn returns the number of runs of each day and group, and the points of the first chart.
func Drawn(list []journal.Total, days int, today int64) (daily []int, groups map[string]int, top string) {
	m := buildCharts(list, days, today)
	groups = map[string]int{}
	for _, d := range m.Daily {
		daily = append(daily, d.Runs)
	}
	for _, g := range m.Groups {
		for _, r := range g.Rows {
			groups[g.Head+" "+r.Name] = r.Runs
		}
	}
	return daily, groups, m.Charts[0].Top
}

// Ended returns the share of successful runs, the number of runs that have not ended, and the mean duration.
func Ended(list []journal.Total, days int, today int64) (share, open int, mean time.Duration) {
	all := buildCharts(list, days, today).All
	return all.Share(), all.Open, all.Mean()
}

// Chart returns the description of a chart and the title of its last day.
func Chart(n int, list []journal.Total, days int, today int64) (said, last string) {
	c := buildCharts(list, days, today).Charts[n]
	return c.Said, c.Bars[len(c.Bars)-1].Title
}

// Money formats a cost.
func Money(u agents.Usage) string { return money(u) }

// Took formats a duration.
func Took(d time.Duration) string { return formatDuration(d) }
