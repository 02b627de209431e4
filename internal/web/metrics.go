package web

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Metrics counts events of the projects. It is safe for concurrent use.
type Metrics struct {
	registry  *prometheus.Registry
	runs      *prometheus.CounterVec
	spend     *prometheus.CounterVec
	unknown   *prometheus.CounterVec
	tokens    *prometheus.CounterVec
	estimated *prometheus.CounterVec
	durations *prometheus.HistogramVec
	stages    *prometheus.HistogramVec
	conflicts *prometheus.CounterVec
	hooks     *prometheus.CounterVec

	mu            sync.Mutex
	currentStages map[string]runStage // guarded by mu; by project and run id
}

// runStage is the current stage of a run.
type runStage struct {
	stage journal.Stage
	since time.Time
}

// NewMetrics returns metrics with all counts at zero.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	auto := promauto.With(registry)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return auto.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"project"}, labels...))
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		buckets := prometheus.ExponentialBuckets(1, 2, 15) // one second to about four hours
		return auto.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, append([]string{"project"}, labels...))
	}
	return &Metrics{
		registry: registry, currentStages: map[string]runStage{},
		runs:      counter("ralph_runs_total", "Runs that have ended.", "outcome"),
		spend:     counter("ralph_spend_usd_total", "Known cost of models."),
		unknown:   counter("ralph_runs_without_cost_total", "Runs that have ended and whose cost is unknown or incomplete."),
		tokens:    counter("ralph_tokens_total", "Tokens of models.", "kind"),
		estimated: counter("ralph_tokens_estimated_total", "Tokens whose number or cost is an estimate."),
		durations: histogram("ralph_run_seconds", "Time from the beginning of a run to its end."),
		stages:    histogram("ralph_stage_seconds", "Time in one stage of a run.", "stage"),
		conflicts: counter("ralph_claim_conflicts_total", "Selected issues that another process had already claimed."),
		hooks:     counter("ralph_webhooks_total", "Requests to a project's webhook.", "result"),
	}
}

// Observe counts an event; see service.Config.
func (m *Metrics) Observe(project string, e journal.Event) {
	switch e.Kind {
	case journal.EventStage:
		m.enter(project, e.Run, runStage{e.Stage, e.Time})
	case journal.EventDeferred:
		m.enter(project, e.Run, runStage{})
	case journal.EventUsage, journal.EventReview:
		if u := e.Usage; u != nil {
			if u.CostUSD > 0 {
				m.spend.WithLabelValues(project).Add(u.CostUSD)
			}
			if u.Estimated > 0 {
				m.estimated.WithLabelValues(project).Add(float64(u.Estimated))
			}
			for kind, n := range tokensByKind(*u) {
				m.tokens.WithLabelValues(project, kind).Add(float64(max(0, n)))
			}
		}
	case journal.EventSkipped:
		if e.Skip != nil && e.Skip.Code == journal.SkipClaimed {
			m.conflicts.WithLabelValues(project).Inc()
		}
	case journal.EventEnded:
		m.enter(project, e.Run, runStage{since: e.Time})
		m.runs.WithLabelValues(project, string(e.Outcome)).Inc()
		if e.CostUnknown {
			m.unknown.WithLabelValues(project).Inc()
		}
		m.durations.WithLabelValues(project).Observe(e.Elapsed)
	}
}

func tokensByKind(u agents.Usage) map[string]int64 {
	return map[string]int64{"input": u.Input, "output": u.Output, "cache_read": u.CacheRead, "cache_write": u.CacheWrite}
}

// Webhook counts a request; see webhook.Config.
func (m *Metrics) Webhook(project, result string) { m.hooks.WithLabelValues(project, result).Inc() }

// enter records the end of a run's current stage and the start of the next.
func (m *Metrics) enter(project, run string, next runStage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	id := project + "/" + run
	was, on := m.currentStages[id]
	if on && !next.since.IsZero() {
		m.stages.WithLabelValues(project, string(was.stage)).Observe(max(0, next.since.Sub(was.since).Seconds()))
	}
	if next.stage == "" {
		delete(m.currentStages, id)
		return
	}
	m.currentStages[id] = next
}

// handler serves the metrics of a service. With backlogs it also serves those for which the backlogs must be read.
func (m *Metrics) handler(s *service.Service, backlogs bool) http.Handler {
	now := prometheus.NewRegistry()
	now.MustRegister(stateCollector{s, backlogs})
	all := promhttp.HandlerFor(prometheus.Gatherers{m.registry, now}, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4,
		Timeout:             requestTime / 2,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.begin(s)
		all.ServeHTTP(w, r)
	})
}

// begin makes the counters of all projects start at zero: without a first value an alert would miss the first increase.
func (m *Metrics) begin(s *service.Service) {
	for _, p := range s.Projects() {
		for _, o := range journal.Outcomes() {
			m.runs.WithLabelValues(p.Name, string(o))
		}
		for _, c := range []*prometheus.CounterVec{m.spend, m.unknown, m.estimated, m.conflicts} {
			c.WithLabelValues(p.Name)
		}
		for kind := range tokensByKind(agents.Usage{}) {
			m.tokens.WithLabelValues(p.Name, kind)
		}
		if parts, err := s.Parts(p.Name); err == nil && parts.Webhook != nil {
			for _, result := range []string{"accepted", "ignored", "replayed", "forged", "refused"} {
				m.hooks.WithLabelValues(p.Name, result)
			}
		}
	}
}

// stateCollector are the metrics of the current state.
type stateCollector struct {
	service  *service.Service
	backlogs bool
}

// Describe implements prometheus.Collector. It describes nothing, which makes the collector unchecked.
func (stateCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c stateCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(name, help string, labels ...string) func(float64, ...string) {
		d := prometheus.NewDesc(name, help, append([]string{"project"}, labels...), nil)
		return func(v float64, values ...string) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, values...)
		}
	}
	running := gauge("ralph_running", "Issues that are being worked.")
	up := gauge("ralph_project_up", "0 when the backlog cannot be worked.")
	ready := gauge("ralph_queue_ready", "Issues that are ready to be worked; the number is at most five minutes old.")
	age := gauge("ralph_queue_age_seconds", "Age of the oldest issue that is ready.")
	requests := gauge("ralph_tracker_requests_remaining",
		"Requests left until the tracker's rate limit resets, according to its last answer.", "limit")
	for _, p := range c.service.Projects() {
		good := 1.0
		if !p.Works {
			good = 0
		}
		up(good, p.Name)
		running(float64(len(p.Running)), p.Name)
		if parts, err := c.service.Parts(p.Name); err == nil {
			if limited, ok := tracker.As[tracker.Limited](parts.Tracker); ok {
				for limit, left := range limited.CallsLeft() {
					requests(float64(left), p.Name, limit)
				}
			}
		}
		if !c.backlogs {
			continue
		}
		if q := c.service.Queue(p.Name); q != nil {
			ready(float64(q.Ready), p.Name)
			if !q.Oldest.IsZero() {
				age(max(0, time.Since(q.Oldest).Seconds()), p.Name)
			}
		}
	}
}
