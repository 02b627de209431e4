package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
)

// chartDays is the longest period of charts, in days.
const chartDays = 90

// totalsAge is how long sums are reused.
const totalsAge = time.Minute

// summed has the sums of a project's runs.
type summed struct {
	list []journal.Total
	day  int64 // day on which they were computed
}

// sums returns the sums of a project's runs. The journal reads each record for that, so runs that started before yesterday
// are summed only once a day.
func (p *Pages) sums(ctx context.Context, name string, patience time.Duration) (summed, error) {
	want := cacheRequest{project: name, age: totalsAge, patience: patience}
	now, _, err := p.totals.get(ctx, want, func(ctx context.Context, old summed) (summed, error) {
		now := summed{day: journal.Day(time.Now())}
		from := now.day - chartDays + 1
		if old.day == now.day {
			from = now.day - 1
			now.list = slices.DeleteFunc(slices.Clone(old.list), func(t journal.Total) bool { return t.Day >= from })
		}
		list, err := p.Service.Totals(ctx, name, time.Unix(from*daySeconds, 0))
		now.list = append(now.list, list...)
		return now, err
	})
	return now, err
}

const daySeconds = 24 * 60 * 60

// sum is the total of several runs.
type sum struct {
	Name      string
	Runs      int
	Succeeded int
	NoChange  int     // runs that ended without changes because none were needed
	Open      int     // runs that have not ended
	Took      float64 // total duration in seconds
	Usage     agents.Usage
	Unknown   int // runs whose cost is unknown or incomplete
}

func (s *sum) add(t journal.Total) {
	s.Runs += t.Runs
	s.Took += t.Seconds
	s.Usage = s.Usage.Add(t.Usage)
	s.Unknown += t.Unknown
	switch t.Outcome {
	case "":
		s.Open += t.Runs
	case journal.Succeeded:
		s.Succeeded += t.Runs
	case journal.NoChange:
		s.NoChange += t.Runs
	}
}

// Share returns the percentage of ended runs that succeeded.
func (s sum) Share() int {
	return int(math.Round(100 * float64(s.Succeeded) / float64(max(1, s.Runs-s.Open))))
}

// Spent returns the known cost.
func (s sum) Spent() string { return spent(ledger.Spend{Usage: s.Usage, Unknown: s.Unknown}) }

// Mean returns the mean duration of ended runs.
func (s sum) Mean() time.Duration { return seconds(s.Took / float64(max(1, s.Runs-s.Open))) }

// chartsModel is the data of a project's charts page.
type chartsModel struct {
	Project string
	Reading bool // the sums are still being computed
	Days    int
	Choices []int
	All     sum
	Daily   []sum // one for each day, oldest first
	Charts  []chart
	Groups  []group
}

// chart is a bar chart with a bar for each day.
type chart struct {
	Title string
	Said  string // description for screen readers
	Top   string // label at the top of the axis
	Half  string
	Keys  []string // labels of the parts of a bar
	Width int
	Bars  []bar
	First string
	Mid   string
	Last  string
}

// bar is one day's bar. Its units are those of the drawing, which is 100 high.
type bar struct {
	Title string
	X     int
	Parts []part
}

type part struct {
	Class     string
	Y, Height float64
}

// group is a table of sums of runs with a common property.
type group struct {
	Title string
	Head  string
	Rows  []sum
	Top   sum // maximum of each value
}

func (p *Pages) charts(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("project")
	if _, err := p.Service.Status(name); err != nil {
		return err
	}
	now, err := p.sums(r.Context(), name, patience)
	if err != nil {
		return err
	}
	days, err := strconv.Atoi(r.FormValue("days"))
	if choices := []int{7, 30, chartDays}; err != nil || !slices.Contains(choices, days) {
		days = 30
	}
	m := buildCharts(now.list, days, journal.Day(time.Now()))
	m.Project, m.Reading = name, now.day == 0
	v := view{Title: "Charts of " + name, Project: name, Tab: "charts"}
	if m.Reading {
		v.Refresh = 1
	}
	p.render(w, http.StatusOK, "charts.html", v.with(m))
	return nil
}

// buildCharts returns the charts for the given number of days up to today.
func buildCharts(list []journal.Total, days int, today int64) chartsModel {
	m := chartsModel{Days: days, Choices: []int{7, 30, chartDays}, Daily: make([]sum, days)}
	first := today - int64(days) + 1
	for i := range m.Daily {
		m.Daily[i].Name = time.Unix((first+int64(i))*daySeconds, 0).UTC().Format(time.DateOnly)
	}
	list = slices.DeleteFunc(slices.Clone(list), func(t journal.Total) bool { return t.Day < first || t.Day > today })
	for _, t := range list {
		m.Daily[t.Day-first].add(t)
		m.All.add(t)
	}
	m.Groups = []group{
		grouped(list, "By outcome", "Outcome", func(t journal.Total) string { return cmp.Or(string(t.Outcome), "not ended") }),
		grouped(list, "By agent", "Agent", func(t journal.Total) string { return cmp.Or(t.Agent, "none") }),
		grouped(list, "By model", "Model", func(t journal.Total) string { return cmp.Or(t.Model, "the agent's own") }),
	}
	m.Charts = []chart{
		m.chart("Spend", "Dollars a day", "$%s", []string{"spend"}, func(s sum) []float64 { return []float64{s.Usage.CostUSD} }),
		m.chart("Throughput", "Ended runs a day", "%s", []string{"succeeded", "no-change", "other"}, func(s sum) []float64 {
			return []float64{float64(s.Succeeded), float64(s.NoChange), float64(s.Runs - s.Open - s.Succeeded - s.NoChange)}
		}),
	}
	spend, most := &m.Charts[0], m.Daily[0]
	for i, d := range m.Daily {
		spend.Bars[i].Title = d.Name + ": " + d.Spent() + costless(d.Unknown)
		if d.Usage.CostUSD > most.Usage.CostUSD {
			most = d
		}
	}
	spend.Said = fmt.Sprintf("Dollars a day over %d days: %s in all, %s at most%s.",
		days, m.All.Spent(), most.Spent(), costless(m.All.Unknown))
	return m
}

// costless describes how many runs are missing in a sum of dollars.
func costless(runs int) string {
	if runs == 0 {
		return ""
	}
	return "; the cost of " + plural.Of(runs, "run") + " is not completely known"
}

// groupRows is the maximum number of rows. The rest is summed up in the last one.
const groupRows = 12

func grouped(list []journal.Total, title, head string, of func(journal.Total) string) group {
	g := group{Title: title, Head: head}
	sums := map[string]sum{}
	for _, t := range list {
		s := sums[of(t)]
		s.Name = of(t)
		s.add(t)
		sums[s.Name] = s
	}
	g.Rows = slices.SortedFunc(maps.Values(sums), func(a, b sum) int {
		return cmp.Or(-cmp.Compare(a.Runs, b.Runs), cmp.Compare(a.Name, b.Name))
	})
	if len(g.Rows) > groupRows {
		rest := sum{Name: fmt.Sprintf("%d others", len(g.Rows)-groupRows+1)}
		for _, s := range g.Rows[groupRows-1:] {
			rest.Runs += s.Runs
			rest.Succeeded += s.Succeeded
			rest.Took += s.Took
			rest.Usage = rest.Usage.Add(s.Usage)
			rest.Unknown += s.Unknown
		}
		g.Rows = append(g.Rows[:groupRows-1], rest)
	}
	for _, s := range g.Rows {
		g.Top.Runs = max(g.Top.Runs, s.Runs)
		g.Top.Usage.CostUSD = max(g.Top.Usage.CostUSD, s.Usage.CostUSD)
	}
	return g
}

// RunsBar returns the length of the bar for the number of runs, in percent.
func (g group) RunsBar(s sum) float64 { return length(float64(s.Runs), float64(g.Top.Runs)) }

// SpendBar returns the length of the bar for the cost, in percent.
func (g group) SpendBar(s sum) float64 { return length(s.Usage.CostUSD, g.Top.Usage.CostUSD) }

func length(v, top float64) float64 {
	if top <= 0 {
		return 0
	}
	return math.Round(1000*v/top) / 10
}

// barWidth is the width of a bar with its gap, in units of the drawing.
const barWidth = 10

func (m chartsModel) chart(title, said, format string, keys []string, of func(sum) []float64) chart {
	c := chart{Title: title, Keys: keys, Width: barWidth * len(m.Daily)}
	most, whole := 0.0, 0.0
	for _, d := range m.Daily {
		v := 0.0
		for _, x := range of(d) {
			v += x
		}
		most, whole = max(most, v), whole+v
	}
	top := roundUp(most)
	number := func(v float64) string {
		text := strconv.FormatFloat(v, 'f', 2, 64) // dollars
		if whole := math.Round(v); format == "%s" || math.Abs(v-whole) < 0.005 {
			text = strconv.FormatFloat(math.Round(100*v)/100, 'f', -1, 64)
		}
		return fmt.Sprintf(format, text)
	}
	c.Top, c.Half = number(top), number(top/2)
	c.Said = fmt.Sprintf("%s over %d days: %s in all, %s at most.", said, len(m.Daily), number(whole), number(most))
	for i, d := range m.Daily {
		b := bar{X: i * barWidth}
		y := 100.0
		title := d.Name + ":"
		for n, v := range of(d) {
			h := length(v, top)
			y -= h
			b.Parts = append(b.Parts, part{Class: keys[n], Y: math.Round(10*y) / 10, Height: h})
			title += " " + number(v) + " " + keys[n]
		}
		b.Title = title
		c.Bars = append(c.Bars, b)
	}
	c.First, c.Mid, c.Last = m.Daily[0].Name, m.Daily[len(m.Daily)/2].Name, m.Daily[len(m.Daily)-1].Name
	return c
}

// roundUp returns the next larger round number.
func roundUp(v float64) float64 {
	if v <= 0 {
		return 1
	}
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, n := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8} {
		if v <= n*power {
			return n * power
		}
	}
	return 10 * power
}
