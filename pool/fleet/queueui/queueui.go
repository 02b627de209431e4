// Package queueui serves River's own user interface: the rows of a fleet's queue, as a page and its API.
package queueui

import (
	"context"
	"log/slog"
	"net/http"

	"riverqueue.com/riverui"

	"github.com/ralph-pool/ralph/pool/fleet"
)

// policy lets the page load its own files, and set styles at elements.
const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// New makes the handler of all below a path such as "/queue/". It checks nobody: whoever reaches it may cancel, delete and repeat
// rows, and pause queues. Beside requests it asks the database now and then, until ctx ends. It is safe for concurrent use.
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
