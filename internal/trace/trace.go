// Package trace turns the events of each run into an OpenTelemetry trace, and sends it to a collector by OTLP over HTTP.
//
// Tracing never delays runs: a limited number of spans is queued, and spans that exceed the limit, or that the collector
// does not accept after all attempts, are dropped and logged. The package sends OTLP messages without the SDK of
// OpenTelemetry (1.47), whose HTTP exporter links gRPC: it adds 6.2 MB and 0.9 ms of start-up to a program that has only
// these messages. The SDK also reports failures through global state, which two services in a process would share.
package trace

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool/journal"
)

// Limits of a tracer.
const (
	queued  = 2048            // maximum number of queued spans
	batch   = 512             // maximum number of spans in a request; that many queued spans trigger one
	delay   = 5 * time.Second // time after which spans are sent that do not fill a request
	endTime = 5 * time.Second // time for the last spans when the process ends
)

// Config configures a Tracer.
type Config struct {
	Project string   // the backlog's name
	Env     []string // environment; the standard variables OTEL_* are read
	Version string   // version of ralph
	Log     *slog.Logger
}

// Tracer records the events of runs. Its methods are safe for concurrent use. Close it when done. A nil Tracer does nothing.
type Tracer struct {
	Config
	settings
	loop   sync.WaitGroup
	cancel context.CancelCauseFunc
	wake   chan struct{} // signals a full request, or Close

	mu     sync.Mutex
	runs   map[string]*run // guarded by mu; by run id
	queue  []*tracepb.Span // guarded by mu
	lost   int64           // guarded by mu; dropped spans that are not logged yet
	closed bool            // guarded by mu
}

// New starts a tracer. It returns nil if the variables disable tracing, and an error that names a variable with an invalid value.
func New(c Config) (*Tracer, error) {
	s, err := parse(c.Env)
	if err != nil || s.disabled {
		return nil, err
	}
	s.resource["service.version"] = cmp.Or(s.resource["service.version"], any(c.Version))
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	t := &Tracer{Config: c, settings: s, wake: make(chan struct{}, 1), runs: map[string]*run{}}
	var ctx context.Context
	ctx, t.cancel = context.WithCancelCause(context.Background())
	t.loop.Go(func() { t.send(ctx) })
	return t, nil
}

// Observe records an event of a run. It does not block.
func (t *Tracer) Observe(e journal.Event) {
	if t == nil || e.Run == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.runs[e.Run]
	if t.closed || r == nil && !begins(e) {
		return
	}
	if r == nil {
		r = newRun(t.Project, e)
		t.runs[e.Run] = r
	}
	done, over := r.event(e)
	if over {
		delete(t.runs, e.Run)
	}
	t.enqueue(done)
}

// enqueue queues spans, and drops those that exceed the limit. The caller holds t.mu.
func (t *Tracer) enqueue(spans []*tracepb.Span) {
	n := min(len(spans), queued-len(t.queue))
	t.queue, t.lost = append(t.queue, spans[:n]...), t.lost+int64(len(spans)-n)
	if len(t.queue) >= batch {
		t.signal()
	}
}

func (t *Tracer) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Close ends the spans of active runs, sends the queued spans, for five seconds at most, and stops the tracer.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	for _, r := range t.runs {
		t.enqueue(r.end(time.Now(), attribute("ralph.unfinished", true)))
	}
	t.runs, t.closed = nil, true
	t.mu.Unlock()
	t.signal()
	late := time.AfterFunc(endTime, func() { t.cancel(errors.New("ralph ends")) })
	t.loop.Wait()
	late.Stop()
	t.cancel(nil)
	t.client.CloseIdleConnections()
}

// send sends queued spans when a request is full, and periodically, until the tracer is closed.
func (t *Tracer) send(ctx context.Context) {
	tick := time.NewTicker(delay)
	defer tick.Stop()
	failing := false
	for over := false; !over; {
		select {
		case <-tick.C:
		case <-t.wake:
		}
		var spans []*tracepb.Span
		for more := true; more; more = len(spans) == batch {
			t.mu.Lock()
			n := min(batch, len(t.queue))
			spans, t.queue, over = t.queue[:n], slices.Clone(t.queue[n:]), t.closed
			t.mu.Unlock()
			if n > 0 {
				failing = t.report(len(spans), t.deliver(ctx, spans), failing)
			}
		}
	}
}

// report logs the first of consecutive failures, and after them the number of dropped spans.
func (t *Tracer) report(n int, err error, failing bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case err != nil:
		t.lost += int64(n)
		if !failing {
			t.Log.Warn("traces are not sent", "error", err)
		}
	case t.lost > 0:
		t.Log.Warn("traces are incomplete", "spans_left_out", t.lost)
		t.lost = 0
	}
	return err != nil
}

// deliver tries until the collector accepts the spans, the failure is permanent, or all attempts are used.
func (t *Tracer) deliver(ctx context.Context, spans []*tracepb.Span) error {
	resource := &resourcepb.Resource{}
	for key, value := range t.resource {
		if kv := attribute(key, value); kv != nil {
			resource.Attributes = append(resource.Attributes, kv)
		}
	}
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: resource,
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: "github.com/ralph-pool/ralph", Version: t.Version},
			Spans: spans,
		}},
	}}}) // encoded like ExportTraceServiceRequest
	if err != nil {
		return err
	}
	for n := 1; ; n++ {
		err = t.post(ctx, body)
		if err == nil || errors.Is(err, errFinal) || n == retry.Attempts {
			return err
		}
		if serr := retry.Sleep(ctx, retry.Pause(n)); serr != nil {
			return errors.Join(err, serr)
		}
	}
}
