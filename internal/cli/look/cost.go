package look

import (
	"cmp"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/cli/fleetdb"
	"github.com/ralph-pool/ralph/internal/cli/screen"
	"github.com/ralph-pool/ralph/internal/meter"
	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/report"
)

const costLong = `Add up what the runs of this repository on this host have used, as reported by their agents and by the
model services. IN counts tokens sent or written to the cache, CACHE tokens read from the cache, and UNKNOWN the runs whose
cost is unknown in whole or in part. ">" marks a sum that lacks such a cost, "~" one that is partly an estimate.

With the database of a fleet it covers the runs of all its machines.`

// CostData is the output of `ralph cost --json`. Fields are only ever added.
type CostData struct {
	By     string      `json:"by"`
	Since  time.Time   `json:"since,omitzero"`
	Groups []CostGroup `json:"groups"`
	Total  CostGroup   `json:"total"`
	// Sessions compares iterations that continued their session with iterations that began afresh.
	Sessions ledger.Sessions `json:"sessions,omitzero"`
}

// CostGroup is the sum of a group of runs.
type CostGroup struct {
	Group   string `json:"group"`
	Runs    int    `json:"runs"`
	Unknown int    `json:"runs_without_cost"`
	agents.Usage
	// Unseen is the part of Usage that only agents report, although their services' answers went through ralph's proxy.
	Unseen agents.Usage `json:"unseen,omitzero"`
}

// Add adds a run.
func (g *CostGroup) Add(r journal.Record) {
	if !r.Settings.Attended { // not a merge by a person; its review may have a cost
		g.Runs++
	}
	if r.CostUnknown() {
		g.Unknown++
	}
	g.Usage, g.Unseen = g.Usage.Add(r.Facts.Usage), g.Unseen.Add(r.Facts.Unmetered())
}

// spend returns the group's usage for formatting.
func (g CostGroup) spend() ledger.Spend { return ledger.Spend{Usage: g.Usage, Unknown: g.Unknown} }

// Sentence returns the cost as the end of a sentence, or "" if nothing is known.
func (g CostGroup) Sentence() string {
	text := g.spend().String()
	switch {
	case text == "":
		return ""
	case g.CostUSD > 0 && g.Unknown > 0:
		return fmt.Sprintf("; %s: the cost of %s is unknown or incomplete", text, screen.Plural(g.Unknown, "run"))
	}
	return "; " + text
}

func costGroupings() []string { return []string{"day", "issue", "agent", "model", "outcome"} }

// groupOf returns the name of a run's group.
func groupOf(r journal.Record, by string) string {
	switch {
	case by == "day":
		return r.Started.Local().Format(time.DateOnly)
	case by == "issue":
		return r.Key
	case by == "outcome":
		return StateOf(r).State
	case !r.AgentWorked():
		return "none"
	case by == "model":
		return cmp.Or(r.Model, "agent's own")
	}
	return r.Agent
}

// split divides a run by its agents or models, if by says so. Usage outside of iterations, such as the gate's, counts for the last.
func split(r journal.Record, by string) []journal.Record {
	if by != "agent" && by != "model" || len(report.Workers(r)) < 2 {
		return []journal.Record{r}
	}
	var parts []journal.Record
	rest := r.Facts.Usage
	for _, it := range r.Facts.Iterations {
		rest = rest.Minus(it.Usage)
		if f := it.Failure; f != nil && (f.Class.Unavailable() || f.Class == agents.NotStarted) && it.Usage == (agents.Usage{}) {
			continue // this iteration did nothing
		}
		i := slices.IndexFunc(parts, func(p journal.Record) bool { return p.Agent == it.Agent && (by == "agent" || p.Model == it.Model) })
		if i < 0 {
			i = len(parts)
			part := r
			part.Agent, part.Model, part.Facts.Usage = it.Agent, it.Model, agents.Usage{}
			part.Facts.Iterations, part.Facts.ReviewSpend = nil, journal.ReviewSpend{}
			parts = append(parts, part)
		}
		parts[i].Facts.Usage = parts[i].Facts.Usage.Add(it.Usage)
		parts[i].Facts.Iterations = append(parts[i].Facts.Iterations, it)
	}
	if len(parts) == 0 {
		return []journal.Record{r}
	}
	last := &parts[len(parts)-1].Facts
	last.Usage, last.ReviewSpend = last.Usage.Add(rest), r.Facts.ReviewSpend
	return parts
}

// NewCost returns `ralph cost`.
func NewCost(a *compose.App) *cobra.Command {
	var o fleetdb.Member
	var by, since string
	var from time.Time
	var asCSV bool
	cmd := &cobra.Command{
		Use: "cost", Short: "Add up what runs have cost", Long: costLong,
		Example:     "  ralph cost\n  ralph cost --by issue --since 7d\n  ralph cost --by model --since 2026-11-01 --csv",
		Annotations: compose.Marks(compose.Looks, compose.Reads),
		GroupID:     compose.GroupLook, Args: exit.NoArgs,
		PreRunE: func(*cobra.Command, []string) (err error) {
			if !slices.Contains(costGroupings(), by) {
				return exit.Usagef("--by: %q is not one of %s", by, strings.Join(costGroupings(), ", "))
			}
			if a.JSON && asCSV {
				return exit.Usagef("--json and --csv exclude each other; choose one")
			}
			from, err = parseSince(since, time.Now())
			return err
		},
		RunE: a.InBacklog(func(ctx context.Context, p *compose.Parts, _ []string) error {
			return cost(ctx, a, p, o, by, from, asCSV)
		}),
	}
	cmd.Flags().StringVar(&by, "by", "day", "add up by `group`: "+strings.Join(costGroupings(), ", "))
	cmd.Flags().StringVar(&since, "since", "", "only runs that began within this `time`, "+
		"such as 36h or 7d, or from a date on, such as 2026-11-01")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print CSV")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(costGroupings(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("since", cobra.NoFileCompletions)
	o.Flags(cmd)
	a.AddJSON(cmd)
	a.Bind(cmd, keys.ForIssue)
	return cmd
}

// longAgo matches durations of any length.
var longAgo = pattern.Lazy(`^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$|^[0-9]+d$`)

// parseSince parses a duration before now, or a local date. An empty text is the zero time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if date, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil && date.Unix() > 0 {
		return date, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 15); err == nil && now.AddDate(0, 0, -int(n)).Unix() > 0 {
			return now.AddDate(0, 0, -int(n)), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 && now.Add(-d).Unix() > 0 {
		return now.Add(-d), nil
	}
	if longAgo().MatchString(text) {
		return time.Time{}, exit.Usagef("--since: %s goes back before 1970", text)
	}
	return time.Time{}, exit.Usagef("--since: %q is neither a duration, such as 36h or 7d, nor a date, such as 2026-11-01", text)
}

func cost(ctx context.Context, a *compose.App, p *compose.Parts, o fleetdb.Member, by string, since time.Time, asCSV bool) error {
	all := journal.Store(p.Journal)
	database, name, err := fleetdb.OpenProject(ctx, a, p, o)
	if err != nil {
		return err
	}
	if database != nil {
		defer database.Close()
		all = database.Runs(name)
	}
	runs, err := all.Find(ctx, journal.Query{Since: since})
	if err != nil {
		return err
	}
	sums := addUp(runs, by)
	sums.Since = since
	switch {
	case a.JSON:
		return a.UI.JSON(sums)
	case asCSV:
		return costCSV(a.UI, sums.Groups)
	case len(runs) == 0:
		a.UI.Printf("No runs recorded%s.\n", map[bool]string{false: " since then"}[since.IsZero()])
		return nil
	}
	if by == "issue" {
		name := p.Names(ctx)
		for i, g := range sums.Groups {
			sums.Groups[i].Group = name(g.Group)
		}
	}
	costTable(a.UI, sums)
	return nil
}

// addUp sums runs by group. Days are in order of time, other groups by cost, most expensive first.
func addUp(runs []journal.Record, by string) CostData {
	sums := CostData{By: by, Groups: []CostGroup{}, Total: CostGroup{Group: "total"}}
	at := map[string]int{}
	for _, r := range runs {
		if r.Settings.Attended && r.Facts.Usage == (agents.Usage{}) {
			continue
		}
		for _, part := range split(r, by) {
			group := screen.CleanLine(groupOf(part, by))
			i, ok := at[group]
			if !ok {
				i = len(sums.Groups)
				at[group] = i
				sums.Groups = append(sums.Groups, CostGroup{Group: group})
			}
			sums.Groups[i].Add(part)
		}
		sums.Total.Add(r)
		sums.Sessions = sums.Sessions.Add(ledger.Compare(r.Facts.Iterations))
	}
	slices.SortFunc(sums.Groups, func(x, y CostGroup) int {
		if by == "day" {
			return cmp.Compare(x.Group, y.Group)
		}
		return cmp.Or(cmp.Compare(y.CostUSD, x.CostUSD), cmp.Compare(y.Tokens(), x.Tokens()), cmp.Compare(x.Group, y.Group))
	})
	return sums
}

func costCSV(p *screen.Printer, groups []CostGroup) error {
	w := csv.NewWriter(p.Out)
	rows := [][]string{{
		"group", "runs", "runs_without_cost", "input", "output", "cache_read", "cache_write", "cost_usd",
		"estimated", "unpriced",
	}}
	for _, g := range groups {
		row := []string{g.Group}
		for _, n := range []int64{int64(g.Runs), int64(g.Unknown), g.Input, g.Output, g.CacheRead, g.CacheWrite} {
			row = append(row, strconv.FormatInt(n, 10))
		}
		usd := "" // unknown
		if g.CostUSD > 0 || g.Unknown == 0 && g.Tokens() > 0 {
			usd = strconv.FormatFloat(g.CostUSD, 'f', 6, 64)
		}
		rows = append(rows, append(row, usd, strconv.FormatInt(g.Estimated, 10), strconv.FormatInt(g.Unpriced, 10)))
	}
	return w.WriteAll(rows)
}

func costTable(p *screen.Printer, sums CostData) {
	rows := [][]string{{strings.ToUpper(sums.By), "RUNS", "IN", "OUT", "CACHE", "COST", "UNKNOWN"}}
	for _, g := range append(slices.Clone(sums.Groups), sums.Total) {
		row := []string{g.Group, strconv.Itoa(g.Runs)}
		for _, n := range []int64{g.Input + g.CacheWrite, g.Output, g.CacheRead} {
			row = append(row, orDash(n, ledger.Count))
		}
		cost := "-"
		if g.CostUSD > 0 {
			cost = g.spend().String()
		}
		rows = append(rows, append(row, cost, orDash(g.Unknown, strconv.Itoa)))
	}
	rows = screen.WithoutUnknown(rows, "IN", "OUT", "CACHE", "COST", "UNKNOWN")
	chart(rows, sums, p.Width())
	p.Table(rows)
	say := func(format string, args ...any) { p.Printf("%s\n", p.Wrapped(fmt.Sprintf(format, args...), 0)) }
	if text := sums.Sessions.String(); text != "" {
		say("Iterations: %s.", text)
	}
	if n := sums.Total.Unknown; n > 0 {
		say("The cost of %s is unknown or incomplete: neither the agent nor a price gives it.", screen.Plural(n, "run"))
	}
	if u := sums.Total.Unseen; u != (agents.Usage{}) {
		say("Part of this is reported only by the agents, and not stated in the answers of their services: %s. "+
			"It does not count towards the caps of all runs.", ledger.Spend{Usage: u}.Text())
	}
	if n := sums.Total.Estimated; n > 0 {
		say("%s of these tokens, or their cost, are an estimate: answers that state no usage count "+
			"one token per %d bytes, and iterations of unknown usage count estimate-tokens and estimate-usd.",
			ledger.Count(n), meter.BytesPerToken)
	}
}

const (
	leastBar = 8  // columns; a shorter chart is unreadable
	mostBar  = 30 // columns
)

// chart adds a bar to each row but the total, if the terminal is wide enough: of USD, or of tokens if no cost is known.
func chart(rows [][]string, sums CostData, width int) {
	room := width - 2*len(rows[0])
	for _, n := range screen.Columns(rows, math.MaxInt, false) {
		room -= n
	}
	size := func(g CostGroup) float64 {
		if sums.Total.CostUSD > 0 {
			return g.CostUSD
		}
		return float64(g.Tokens())
	}
	most := 0.0
	for _, g := range sums.Groups {
		most = max(most, size(g))
	}
	if room = min(room, mostBar); room < leastBar || most == 0 {
		return
	}
	rows[0] = append(rows[0], "")
	for i, g := range sums.Groups {
		n := int(size(g)/most*float64(room) + 0.5)
		if size(g) > 0 {
			n = max(n, 1)
		}
		rows[i+1] = append(rows[i+1], strings.Repeat("█", n))
	}
	rows[len(rows)-1] = append(rows[len(rows)-1], "")
}

// CostText formats usage briefly, "-" for none.
func CostText(u agents.Usage) string { return cmp.Or(ledger.Spend{Usage: u}.String(), "-") }

func orDash[T int | int64](n T, text func(T) string) string {
	if n == 0 {
		return "-"
	}
	return text(n)
}
