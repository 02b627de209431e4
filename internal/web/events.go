package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"time"

	"github.com/ralph-pool/ralph/internal/retry"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Intervals of a stream.
const (
	eventsCheck = 500 * time.Millisecond // interval between reads of the run's events
	runCheck    = 10                     // reads without an event before the run's record is checked
	keepAlive   = 30                     // reads without an event before a comment is sent to keep the connection alive
)

type eventsInput struct {
	Project string `path:"project" maxLength:"64"`
	Run     string `path:"run" maxLength:"255"`
	After   int64  `query:"after" minimum:"0" doc:"The same, for a client that has received no event yet; Last-Event-ID overrides it."`
	Last    int64  `header:"Last-Event-ID" minimum:"0" doc:"The id of the last event that the client has; the stream continues after it."`
}

// registerEvents adds the stream of a run's events. It reads the events from disk, so that the stream works for runs that
// have ended and for runs of other processes, and a slow client costs no memory.
func (a api) registerEvents(h huma.API) {
	event := h.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[journal.Event](), true, "Event")
	huma.Register(h, huma.Operation{
		OperationID: "stream-events", Method: http.MethodGet, Path: "/v1/projects/{project}/runs/{run}/events",
		Summary: "Events of a run, as they happen",
		Description: "Server-sent events. The data of each is one Event; its id is the position of the next event. " +
			"An event of the type \"end\" says that the run has ended. Ignore unknown kinds of events.",
		Responses: map[string]*huma.Response{"200": {
			Description: "The stream.", Content: map[string]*huma.MediaType{"text/event-stream": {Schema: event}},
		}},
	}, func(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
		r, err := a.record(ctx, in.Project, in.Run)
		if err != nil {
			return nil, err
		}
		select {
		case a.slots <- struct{}{}:
		default:
			return nil, huma.ErrorWithHeaders(huma.Error503ServiceUnavailable("too many streams"), http.Header{"Retry-After": {"10"}})
		}
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			defer func() { <-a.slots }()
			request, w := humago.Unwrap(hc)
			w.Header().Set("Content-Type", "text/event-stream")
			s := stream{w: w, control: http.NewResponseController(w), patience: a.WriteTime}
			s.follow(request.Context(), r.Dir, cmp.Or(in.Last, in.After), func() (journal.Event, bool, error) {
				now, err := a.record(request.Context(), in.Project, in.Run)
				return endOf(now), !now.Ended.IsZero(), err
			})
		}}, nil
	})
}

// endOf makes the event of a run's end from its record. Before the end the event has no kind.
func endOf(r journal.Record) journal.Event {
	if r.Ended.IsZero() {
		return journal.Event{}
	}
	return journal.Event{
		Kind:    journal.EventEnded,
		Time:    r.Ended,
		Run:     r.ID,
		Key:     r.Key,
		Title:   r.Title,
		Outcome: r.Verdict.Outcome,
		Final:   r.Verdict.Final,
		Reason:  &r.Verdict.Reason,
		Branch:  r.Branch,
		Commits: r.Commits,
		Usage:   &r.Facts.Usage,
		Elapsed: r.DurationUntil(r.Ended).Seconds(),
		Agent:   r.Agent,
		Model:   r.Model,
		Sandbox: r.Sandbox,
		Text:    r.Published,
		Merged:  r.Merged(),
	}
}

// stream is the connection to one client.
type stream struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	patience time.Duration
}

// send writes one part of the stream. It fails if the client does not accept the part in time.
func (s stream) send(format string, args ...any) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(s.patience)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.w, format, args...)
	return err
}

// follow sends the events in a run's folder until the run has ended or the client is gone. If the folder is on another
// machine, it sends only the end. If the run cannot be looked up, it closes the stream and the client reconnects.
func (s stream) follow(ctx context.Context, dir string, at int64, ended func() (journal.Event, bool, error)) {
	last, over, away := ended()
	if s.send(": events\n\n") != nil {
		return
	}
	for idle := 0; away == nil; idle++ {
		err := journal.ReadEventsFrom(dir, at, func(e journal.Event, next int64) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			data, err := json.Marshal(e)
			if err == nil {
				err = s.send("id: %d\ndata: %s\n\n", next, data)
			}
			at, idle = next, 0
			if !over && e.Kind == journal.EventEnded {
				last, over, away = ended()
			}
			return cmp.Or(err, away)
		})
		switch {
		case err != nil:
			return
		case over:
			if data, err := json.Marshal(last); at == 0 && last.Kind != "" && err == nil {
				_ = s.send("data: %s\n\n", data)
			}
			_ = s.send("event: end\nid: %d\ndata: {}\n\n", at)
			return
		case idle%runCheck == runCheck-1:
			last, over, away = ended() // one more read, for events written before the run ended
		case idle%keepAlive == 0 && s.send(": on\n\n") != nil:
			return
		}
		if s.control.Flush() != nil {
			return
		}
		if retry.Sleep(ctx, eventsCheck) != nil {
			return
		}
	}
}
