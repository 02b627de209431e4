// Package queueui serves River's web interface, which shows the rows of a fleet's queue as a page and an API.
package queueui

import (
	"context"
	"log/slog"
	"net/http"

	"riverqueue.com/riverui"

	"github.com/ralph-pool/ralph/pool/fleet"
)

// policy allows the page to load its own files and to set styles on elements.
const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// New returns the handler for all paths below path, such as "/queue/". It checks no permissions: whoever reaches it may
// cancel, delete and repeat rows, and pause queues. It also queries the database periodically until ctx ends. It is safe
// for concurrent use.
func New(ctx context.Context, d *fleet.Database, path string, log *slog.Logger) (http.Handler, error) {
	client, err := d.Queue()
	if err != nil {
		return nil, err
	}
	ui, err := riverui.NewHandler(&riverui.HandlerOpts{Endpoints: riverui.NewEndpoints(client, nil), Logger: log, Prefix: path})
	if err != nil {
		return nil, err
	}
	if err := ui.Start(ctx); err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		ui.ServeHTTP(w, r)
	}), nil
}
