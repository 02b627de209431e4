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
	"github.com/ralph-pool/ralph/tracker"
)

// functions are what templates call.
func (p *Pages) functions() template.FuncMap {
	return template.FuncMap{
		"asset":   func(name string) string { return p.assets[name].path },
		"form":    func() string { return p.form },
		"version": func() string { return p.Version },
		"login":   func() bool { return p.Login },
		"project": projectPath, "run": runPath, "issue": issuePath,
		"line": line, "text": text, "link": link, "name": issueName,
		"took": took, "money": money, "count": count, "stamp": stamp, "clock": clock, "iso": iso, "seconds": seconds,
		"tone": tone, "label": label, "state": state, "since": time.Since, "elsewhere": service.Elsewhere,
		"escape": url.QueryEscape, "plural": plural.Of,
		"args": args,
	}
}

// args is a template's data made of names and values.
func args(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

// issueName is by what people know an issue: as its tracker shows it, with the key where that does not begin it.
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
	lineLimit = 300     // bytes of what stands on one line
	textLimit = 4 << 10 // bytes of a text that is shown whole
)

// line is hostile text for one line.
func line(s string) string {
	s, _ = tracker.Clean(tracker.Cut(s, 4*lineLimit))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > lineLimit {
		s = tracker.Cut(s, lineLimit) + "…"
	}
	return s
}

// text is hostile text of several lines.
func text(s string) string {
	whole := len(s) <= textLimit
	s, _ = tracker.Clean(tracker.Cut(s, textLimit))
	if !whole {
		s += "\n…"
	}
	return strings.TrimRight(s, "\n")
}

// link is an address of the web, and nothing else.
func link(s string) string {
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return ""
	}
	return s
}

func took(d time.Duration) string {
	switch {
	case d < 0:
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

// money is what a run has cost, as far as that is known.
func money(u agents.Usage) string { return spent(ledger.Spend{Usage: u}) }

func spent(s ledger.Spend) string { return cmp.Or(s.String(), "–") }

// count is a number with a unit.
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

// state is where a run stands. One that has moved the base has merged its commits.
func state(r journal.Record) string {
	if !r.Ended.IsZero() && r.Merges(r.Verdict) {
		return "merged"
	}
	return service.RunState(r)
}

// tone is how a state is coloured.
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

// label is a state in words.
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
