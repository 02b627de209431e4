package trace

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
)

// spanLimit is the number of spans of a run after which progress events are dropped.
const spanLimit = 5000

// run builds the spans of one run. Spans contain no text that people or agents wrote: no titles, prompts, messages, output,
// or details of reasons.
type run struct {
	trace      []byte
	root       *tracepb.Span
	claim      bool            // the claim has no span yet
	open       []*tracepb.Span // the current stage, then the current iteration in it
	reviewSpan *tracepb.Span   // the current review
	spans      int
	used       agents.Usage // sum of iterations and reviews; the last event may correct it
	count      map[string]int64
}

// begins reports whether a trace starts with the event. Later events do, too, for runs whose first events were lost.
func begins(e journal.Event) bool {
	switch e.Kind {
	case journal.EventStage, journal.EventStarted, journal.EventIteration, journal.EventEnded:
		return true
	}
	return false
}

// traceID returns the id of a run's trace. It depends only on the run's id, so that all processes of a run use the same one.
func traceID(run string) []byte {
	sum := sha256.Sum256([]byte(run))
	return sum[:16]
}

func newRun(project string, e journal.Event) *run {
	r := &run{trace: traceID(e.Run), count: map[string]int64{}}
	began := e.Time
	if r.claim = e.Kind == journal.EventStarted || e.Kind == journal.EventStage && e.Stage.Before(journal.StageWork); r.claim {
		began = e.Time.Add(-seconds(e.Elapsed))
	}
	r.root = r.span(nil, "run", began, attribute("ralph.project", project), attribute("ralph.issue", e.Key),
		attribute("ralph.run", e.Run), attribute("ralph.attempt", e.Attempt))
	return r
}

// event returns the spans that end with the event, and whether the run ends, too.
func (r *run) event(e journal.Event) (done []*tracepb.Span, over bool) {
	if r.spans >= spanLimit && e.Progress() {
		r.count["events_left_out"]++
		return nil, false
	}
	switch e.Kind {
	case journal.EventStage:
		if r.claim {
			r.claim = false
			s := r.span(r.root, string(journal.StageClaim), e.Time)
			s.StartTimeUnixNano = r.root.StartTimeUnixNano
			done = append(done, ended(s, e.Time))
		}
		done = append(done, r.closeTo(0, e.Time)...)
		r.push(r.span(r.root, string(e.Stage), e.Time))
	case journal.EventStarted:
		set(r.root, agentAttributes(e)...)
	case journal.EventIteration:
		done = r.closeTo(1, e.Time)
		r.push(r.span(r.top(), fmt.Sprintf("iteration %d", e.Iteration), e.Time, attribute("ralph.iteration", e.Iteration)))
	case journal.EventUsage:
		s := r.span(r.top(), "agent", e.Time.Add(-seconds(e.Elapsed)), agentAttributes(e)...)
		set(s, usageAttributes(e.Usage)...)
		r.add(e.Usage)
		done = append(done, ended(s, e.Time))
	case journal.EventSetup, journal.EventGate, journal.EventAfter:
		if e.Check == nil {
			break
		}
		s := r.span(r.top(), string(e.Kind), e.Time.Add(-e.Check.Duration),
			attribute("ralph.command", e.Check.Command), attribute("ralph.place", e.Place), attribute("process.exit.code", e.Check.ExitCode))
		if !e.Check.Passed() {
			s.Status = failed("exit status")
		}
		if e.Check.TimedOut {
			s.Status = failed("timeout")
		}
		done = append(done, ended(s, e.Time))
	case journal.EventReview:
		done = r.review(e)
	case journal.EventCommits:
		set(r.top(), attribute("ralph.commits", e.Commits))
	case journal.EventWarning, journal.EventRefused, journal.EventSignal:
		r.count[string(e.Kind)]++
	case journal.EventDeferred:
		return r.end(e.Time, attribute("ralph.deferred", true)), true
	case journal.EventEnded:
		return r.finish(e), true
	}
	return done, false
}

// review starts a span at the first event of a review and ends it at the last.
func (r *run) review(e journal.Event) (done []*tracepb.Span) {
	if e.Usage == nil {
		r.reviewSpan = r.span(r.top(), "review", e.Time)
		return nil
	}
	s := r.reviewSpan
	if r.reviewSpan = nil; s == nil {
		s = r.span(r.top(), "review", e.Time)
	}
	set(s, usageAttributes(e.Usage)...)
	r.add(e.Usage)
	return []*tracepb.Span{ended(s, e.Time)}
}

// finish ends the run's span and adds its outcome.
func (r *run) finish(e journal.Event) []*tracepb.Span {
	set(r.root, agentAttributes(e)...)
	set(r.root, attribute("ralph.outcome", e.Outcome), attribute("ralph.final", e.Final), attribute("ralph.commits", e.Commits))
	code := ""
	if e.Reason != nil {
		code = string(e.Reason.Code)
		set(r.root, attribute("ralph.reason", code))
	}
	if e.Usage != nil {
		r.used = *e.Usage
	}
	switch e.Outcome {
	case journal.Succeeded:
		r.root.Status = &tracepb.Status{Code: tracepb.Status_STATUS_CODE_OK}
	case journal.GateFailed, journal.PolicyBlocked, journal.OverBudget, journal.AgentUnavailable, journal.EnvironmentUnavailable, journal.Failed:
		r.root.Status = failed(code)
	}
	return r.end(e.Time)
}

// end ends all open spans, the run's own last.
func (r *run) end(at time.Time, more ...*commonpb.KeyValue) []*tracepb.Span {
	done := r.closeTo(0, at)
	set(r.root, more...)
	set(r.root, usageAttributes(&r.used)...)
	for kind, n := range r.count {
		set(r.root, attribute("ralph.count."+kind, n))
	}
	return append(done, ended(r.root, at))
}

func (r *run) add(u *agents.Usage) {
	if u != nil {
		r.used = r.used.Add(*u)
	}
}

// span returns a new child span.
func (r *run) span(parent *tracepb.Span, name string, at time.Time, with ...*commonpb.KeyValue) *tracepb.Span {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails, as documented
	s := &tracepb.Span{TraceId: r.trace, SpanId: id, Name: name, Kind: tracepb.Span_SPAN_KIND_INTERNAL, StartTimeUnixNano: nanos(at)}
	if parent != nil {
		s.ParentSpanId = parent.SpanId
	}
	set(s, with...)
	r.spans++
	return s
}

func (r *run) push(s *tracepb.Span) { r.open = append(r.open, s) }

// top returns the innermost open span.
func (r *run) top() *tracepb.Span {
	if len(r.open) == 0 {
		return r.root
	}
	return r.open[len(r.open)-1]
}

// closeTo ends the open spans except the first n.
func (r *run) closeTo(n int, at time.Time) (done []*tracepb.Span) {
	if r.reviewSpan != nil {
		done, r.reviewSpan = append(done, ended(r.reviewSpan, at)), nil
	}
	for len(r.open) > n {
		done = append(done, ended(r.top(), at))
		r.open = r.open[:len(r.open)-1]
	}
	return done
}
