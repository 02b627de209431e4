// Package trace makes an OpenTelemetry trace of each run from its events, and sends it to a collector by OTLP over HTTP.
//
// Tracing never holds up what it is about: spans wait in a queue with a bound, and what does not fit, or is not taken in the
// end, is left out and logged. The package encodes OTLP's messages itself: the exporter of the OpenTelemetry SDK links gRPC, and
// the SDK reports through state of the process, which two services in it would share.
package trace

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ralph-pool/ralph/internal/retry"
	"github.com/ralph-pool/ralph/pool/journal"
)

// The bounds of a tracer.
const (
	queued  = 2048            // spans that wait
	batch   = 512             // spans in one request
	delay   = 5 * time.Second // until spans are sent that do not fill a request
	endTime = 5 * time.Second // for the last ones, when the process ends
)

// Config is a tracer's set-up.
type Config struct {
	Project string   // what people call the backlog
	Env     []string // with the standard variables OTEL_*
	Version string   // ralph's
	Log     *slog.Logger
}

// Tracer observes runs. Its methods are safe for concurrent use. Close ends it. The nil Tracer does nothing.
type Tracer struct {
	project  string
	resource *resourcepb.Resource
	version  string
	sender   sender
	sample   func(id []byte) bool
	log      *slog.Logger
	queue    chan *tracepb.Span
	loop     sync.WaitGroup
	cancel   context.CancelCauseFunc

	mu     sync.Mutex
	runs   map[string]*run // guarded by mu; by id
	lost   int             // guarded by mu; spans that did not fit, and are not logged yet
	closed bool            // guarded by mu
}

// New starts a tracer; nil where the variables say that nothing is to be sent. An error names the variable that is wrong.
func New(c Config) (*Tracer, error) {
	s, err := parse(c.Env)
	if err != nil || s.off {
		return nil, err
	}
	host, _ := os.Hostname()
	resource := &resourcepb.Resource{Attributes: s.resource}
	for _, known := range []*commonpb.KeyValue{text("service.name", "ralph"), text("service.version", c.Version), text("host.name", host), number("process.pid", int64(os.Getpid()))} {
		resource.Attributes = addMissing(resource.Attributes, known)
	}
	t := &Tracer{
		project: c.Project, resource: resource, version: c.Version, sample: s.sample, log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		queue: make(chan *tracepb.Span, queued), runs: map[string]*run{}, sender: s.sender,
	}
	var ctx context.Context
	ctx, t.cancel = context.WithCancelCause(context.Background())
	t.loop.Go(func() { t.send(ctx) })
	return t, nil
}

// Observe takes an event of a run. It does not block.
func (t *Tracer) Observe(e journal.Event) {
	if t == nil || e.Run == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	r := t.runs[e.Run]
	if r == nil {
		if !begins(e) {
			return
		}
		r = newRun(t.project, e)
		t.runs[e.Run] = r
	}
	done, over := r.event(e)
	if over {
		delete(t.runs, e.Run)
	}
	t.take(done)
}

// take queues spans, or leaves them out.
func (t *Tracer) take(spans []*tracepb.Span) {
	for _, s := range spans {
		if !t.sample(s.TraceId) {
			continue
		}
		select {
		case t.queue <- s:
		default:
			t.lost++
		}
	}
}

// Close ends the spans of runs that are still on, sends what waits, for five seconds at most, and ends.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	if !t.closed {
		t.closed = true
		for _, r := range t.runs {
			t.take(r.end(time.Now(), boolean("ralph.unfinished", true)))
		}
		close(t.queue)
	}
	t.mu.Unlock()
	late := time.AfterFunc(endTime, func() { t.cancel(errors.New("ralph ends")) })
	t.loop.Wait()
	late.Stop()
	t.cancel(nil)
	t.sender.client.CloseIdleConnections()
}

// send takes spans from the queue until it is closed, and sends them.
func (t *Tracer) send(ctx context.Context) {
	var wait []*tracepb.Span
	due := time.NewTimer(delay)
	due.Stop()
	defer due.Stop()
	failing, lost := false, int64(0)
	flush := func() {
		if len(wait) == 0 {
			return
		}
		rejected, err := t.deliver(ctx, wait)
		lost += rejected + t.unqueued()
		if err != nil {
			lost += int64(len(wait))
			if !failing { // once, until they are sent again
				t.log.Warn("traces are not sent", "error", err)
			}
		} else if lost > 0 {
			t.log.Warn("traces are incomplete", "spans_left_out", lost)
			lost = 0
		}
		failing, wait = err != nil, nil
	}
	for {
		select {
		case s, ok := <-t.queue:
			if !ok {
				flush()
				return
			}
			if wait = append(wait, s); len(wait) == 1 {
				due.Reset(delay)
			}
			if len(wait) == batch {
				flush()
			}
		case <-due.C:
			flush()
		}
	}
}

// unqueued counts the spans that did not fit since the last call.
func (t *Tracer) unqueued() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.lost
	t.lost = 0
	return int64(n)
}

// deliver tries until the spans are taken, the failure is final, or all attempts are used.
func (t *Tracer) deliver(ctx context.Context, spans []*tracepb.Span) (rejected int64, err error) {
	body, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource: t.resource,
		ScopeSpans: []*tracepb.ScopeSpans{{
			Scope: &commonpb.InstrumentationScope{Name: "github.com/ralph-pool/ralph", Version: t.version}, Spans: spans,
		}},
	}}}) // on the wire the same as the request of the collector's service
	if err != nil {
		return 0, err
	}
	for n := 1; ; n++ {
		rejected, err = t.sender.post(ctx, body)
		if err == nil || errors.Is(err, errFinal) || n == retry.Attempts {
			return rejected, err
		}
		if serr := retry.Sleep(ctx, retry.Pause(n)); serr != nil {
			return 0, errors.Join(err, serr)
		}
	}
}

// sender posts encoded spans.
type sender struct {
	address string
	header  http.Header
	gzip    bool
	timeout time.Duration
	client  *http.Client
}
