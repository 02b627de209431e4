package dashboard

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/plural"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/ledger"
	"github.com/ralph-pool/ralph/pool/report"
	"github.com/ralph-pool/ralph/tracker"
)

// functions returns the functions of the templates.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"asset":   func(name string) string { return p.assets[name].path },
		"form":    func() string { return p.Form },
		"version": func() string { return p.Version },
		"login":   func() bool { return p.Login },
		"project": projectPath, "run": runPath, "issue": issuePath,
		"line": line, "text": text, "link": link, "name": issueName,
		"took": formatDuration, "money": money, "count": count, "stamp": stamp, "clock": clock, "iso": iso, "seconds": seconds,
		"tone": tone, "label": label, "state": state, "since": time.Since, "elsewhere": service.Elsewhere,
		"escape": url.QueryEscape, "plural": plural.Of,
		"args": args,
	}
}

// args builds template data from pairs of names and values.
func args(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

// issueName returns the display name of an issue: the tracker's ID, followed by the key unless the ID contains it.
func issueName(i tracker.Issue) string {
	switch {
	case i.ID == "":
		return i.Key
	case strings.Contains(i.ID, i.Key):
		return i.ID
	}
	return i.ID + " · " + i.Key
}

func projectPath(name string) string    { return "/p/" + url.PathEscape(name) }
func runPath(project, id string) string { return projectPath(project) + "/runs/" + url.PathEscape(id) }
func issuePath(project, key string) string {
	return projectPath(project) + "/issues/" + url.PathEscape(key)
}

const (
	lineLimit = 300     // bytes of one-line text
	textLimit = 4 << 10 // bytes of multi-line text
)

// line cleans and limits untrusted text for one line.
func line(s string) string {
	s, _ = tracker.Clean(tracker.Cut(s, 4*lineLimit))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > lineLimit {
		s = tracker.Cut(s, lineLimit) + "…"
	}
	return s
}

// text cleans and limits untrusted text of several lines.
func text(s string) string {
	whole := len(s) <= textLimit
	s, _ = tracker.Clean(tracker.Cut(s, textLimit))
	if !whole {
		s += "\n…"
	}
	return strings.TrimRight(s, "\n")
}

// link returns an HTTP(S) address, or "" for anything else.
func link(s string) string {
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return ""
	}
	return s
}

func formatDuration(d time.Duration) string {
	switch d = report.Rounded(d); {
	case d == 0:
		return "0 s"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// money formats the known cost of a run.
func money(u agents.Usage) string { return spent(ledger.Spend{Usage: u}) }

func spent(s ledger.Spend) string { return cmp.Or(s.String(), "–") }

// count formats a number with a unit prefix.
func count(n int64) string {
	switch {
	case n < 10_000:
		return strconv.FormatInt(n, 10)
	case n < 1_000_000:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func clock(t time.Time) string { return t.Local().Format(time.TimeOnly) }

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// state returns the state of a run. A run that moved the base has merged its commits.
func state(r journal.Record) string {
	if !r.Ended.IsZero() && r.Merges(r.Verdict) {
		return "merged"
	}
	return service.RunState(r)
}

// tone returns the colour class of a state.
func tone(state any) string {
	switch fmt.Sprint(state) {
	case "succeeded", "merged", "no-change", "passed", "accepted":
		return "ok"
	case "running", "working", "ready":
		return "info"
	case "needs-info", "needs-human", "over-budget", "policy-blocked", "paused", "draining", "died", "unfinished",
		"agent-unavailable", "environment-unavailable":
		return "warn"
	case "failed", "gate-failed", "broken", "refused":
		return "bad"
	}
	return "plain"
}

// label returns a state in words.
func label(state any) string {
	switch s := fmt.Sprint(state); s {
	case "needs-human":
		return "needs a person"
	case "needs-info":
		return "needs an answer"
	case "":
		return "–"
	default:
		return strings.ReplaceAll(s, "-", " ")
	}
}
