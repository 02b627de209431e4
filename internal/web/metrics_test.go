package web_test

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/internal/web"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// limited is a tracker with a rate limit.
type limited struct{ tracker.Tracker }

func (limited) CallsLeft() map[string]int { return map[string]int{"core": 4711} }

// Counters exist before anything happens, because an alert would miss the first increase of a new counter.
func TestCountersBeginAtZero(t *testing.T) {
	t.Parallel()
	s := start(t, nil, servicetest.New(t, "shop", 0), servicetest.New(t, "site", 0))
	servicetest.Eventually(t, s.service.Ready)
	parts, err := s.service.Parts("shop")
	if err != nil {
		t.Fatal(err)
	}
	parts.Webhook = func(tracker.Delivery) (tracker.Notice, error) { return tracker.Notice{}, nil }
	text, err := io.ReadAll(s.do("GET", "/metrics").Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`ralph_runs_total{outcome="gate-failed",project="shop"} 0`, `ralph_webhooks_total{project="shop",result="forged"} 0`, `ralph_runs_total{outcome="failed",project="site"} 0`,
		`ralph_spend_usd_total{project="shop"} 0`, `ralph_runs_without_cost_total{project="shop"} 0`, `ralph_claim_conflicts_total{project="shop"} 0`,
		`ralph_tokens_total{kind="cache_write",project="shop"} 0`, `ralph_tokens_estimated_total{project="shop"} 0`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if none := `ralph_webhooks_total{project="site"`; strings.Contains(string(text), none) {
		t.Errorf("%s although the project takes none", none)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "shop", 1)
	var metrics *web.Metrics
	s := start(t, func(c *web.Config) { metrics = c.Metrics }, p)
	s.watch.Until(t, "shop", journal.EventEnded, 1)
	metrics.Observe("shop", journal.Event{Kind: journal.EventSkipped, Skip: &journal.Skip{Code: journal.SkipClaimed}})
	metrics.Observe("shop", journal.Event{Kind: journal.EventSkipped, Skip: &journal.Skip{Code: journal.SkipRetry}})
	metrics.Observe("books", journal.Event{Kind: journal.EventReview, Run: "known"}) // a review that begins
	for run, u := range map[string]agents.Usage{
		"known": {Input: 5, CostUSD: 2}, "part": {Input: 7, CostUSD: 1, Unpriced: 3, Estimated: 4}, "none": {Input: 1, Unpriced: 1},
	} {
		metrics.Observe("books", journal.Event{Kind: journal.EventUsage, Run: run, Usage: &u})
		metrics.Observe("books", journal.Event{Kind: journal.EventReview, Run: run, Usage: &u})
		metrics.Observe("books", journal.Event{Kind: journal.EventEnded, Run: run, Outcome: journal.Succeeded, CostUnknown: run != "known"})
	}
	at := time.Now() // with a clock that is set back
	metrics.Observe("films", journal.Event{Kind: journal.EventStage, Run: "back", Stage: journal.StageWork, Time: at})
	metrics.Observe("films", journal.Event{Kind: journal.EventStage, Run: "back", Stage: journal.StageVerify, Time: at.Add(-time.Hour)})
	metrics.Observe("books", journal.Event{Kind: journal.EventEnded, Run: "died", Outcome: journal.Interrupted, CostUnknown: true}) // its iteration is lost
	metrics.Observe("books", journal.Event{Kind: journal.EventUsage, Run: "refused", Usage: &agents.Usage{}})
	metrics.Observe("books", journal.Event{Kind: journal.EventEnded, Run: "refused", Outcome: journal.Failed}) // all its requests were rejected
	if err := s.service.Pause("shop", true, "Ada"); err != nil {
		t.Fatal(err)
	}
	p.Issue("later", "Later")
	if _, err := s.service.Board(t.Context(), "shop"); err != nil {
		t.Fatal(err)
	}
	parts, err := s.service.Parts("shop")
	if err != nil {
		t.Fatal(err)
	}
	parts.Tracker = limited{parts.Tracker}
	parts.Webhook = func(tracker.Delivery) (tracker.Notice, error) { return tracker.Notice{}, nil }
	text, err := io.ReadAll(s.do("GET", "/metrics").Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`ralph_runs_total{outcome="succeeded",project="shop"} 1`, `ralph_runs_total{outcome="failed",project="shop"} 0`, `ralph_run_seconds_count{project="shop"} 1`,
		`ralph_stage_seconds_count{project="shop",stage="work"} 1`, `ralph_project_up{project="shop"} 1`, `ralph_running{project="shop"} 0`,
		`ralph_claim_conflicts_total{project="shop"} 1`, `ralph_queue_ready{project="shop"} 1`, `ralph_queue_age_seconds{project="shop"} `,
		`ralph_tracker_requests_remaining{limit="core",project="shop"} 4711`,
		`ralph_runs_without_cost_total{project="books"} 3`, `ralph_runs_without_cost_total{project="shop"} 1`,
		`ralph_spend_usd_total{project="books"} 6`, `ralph_tokens_estimated_total{project="books"} 8`,
		`ralph_stage_seconds_sum{project="films",stage="work"} 0`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(served(string(text)), documented(string(manual))); diff != "" {
		t.Errorf("docs/operations.md (-served +documented):\n%s", diff)
	}
}

// served returns the labels of each metric in a scrape, sorted, without the bounds of histograms.
func served(text string) map[string]string {
	out := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) `).FindAllStringSubmatch(text, -1) {
		name := m[1]
		sample := regexp.MustCompile(`(?m)^` + name + `(?:_count)?\{(.*)\} `).FindStringSubmatch(text)
		var labels []string
		for _, l := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(sample[1], -1) {
			labels = append(labels, l[1])
		}
		slices.Sort(labels)
		out[name] = strings.Join(labels, ", ")
	}
	return out
}

// documented returns the labels of each metric in the manual's table, sorted.
func documented(manual string) map[string]string {
	out := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(ralph_\\w+)` \\| ([^|]*) \\|").FindAllStringSubmatch(manual, -1) {
		labels := strings.Split(strings.ReplaceAll(m[2], "`", ""), ", ")
		slices.Sort(labels)
		out[m[1]] = strings.Join(labels, ", ")
	}
	return out
}
