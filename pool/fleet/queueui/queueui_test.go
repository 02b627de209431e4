package queueui

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/fleet"
	"github.com/ralph-pool/ralph/pool/fleet/fleettest"
)

// database makes a new database with its tables, and returns it with its server.
func database(t *testing.T) (*fleettest.Server, *fleet.Database) {
	t.Helper()
	server, end, err := fleettest.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	where := server.Database(t)
	d, err := fleet.OpenFrom(t.Context(), func() (string, error) { return where, nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	if _, err := d.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server, d
}

// The page, its files and its API respond below the path.
func TestPageAndAPI(t *testing.T) {
	t.Parallel()
	_, d := database(t)
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	h, err := New(ctx, d, "/queue/", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) (string, http.Header) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d: %s", path, w.Code, w.Body)
		}
		return w.Body.String(), w.Header()
	}
	page, header := get("/queue/")
	if !strings.Contains(page, "<title>River</title>") || header.Get("Content-Security-Policy") != policy {
		t.Errorf("the page is %s with %v", page, header)
	}
	files := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(files) < 3 {
		t.Errorf("the page loads %q", files)
	}
	for _, f := range files {
		if !strings.HasPrefix(f[1], "/queue/") {
			t.Errorf("the page loads %s", f[1])
			continue
		}
		get(f[1])
	}
	for path, want := range map[string]string{
		"/queue/api/jobs": `"data"`, "/queue/api/queues": `"data"`, "/queue/api/states": `"available"`, "/queue/api/health-checks/complete": `"status"`,
	} {
		if got, _ := get(path); !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// spoken is a log handler that sends each text.
type spoken struct {
	slog.Handler
	got chan string
}

func (s spoken) Handle(_ context.Context, r slog.Record) error {
	s.got <- r.Message
	return nil
}

// An outage of the database causes one line, from the fleet, whatever the page requests meanwhile.
func TestOutageIsTheFleetsLine(t *testing.T) {
	t.Parallel()
	server, d := database(t)
	got := make(chan string, 1000)
	log := slog.New(spoken{slog.NewTextHandler(io.Discard, nil), got})
	f, err := fleet.Start(t.Context(), fleet.Config{Database: d, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	ctx, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	h, err := New(ctx, d, "/queue/", slog.New(f.Quiet(log.Handler())))
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/queue/api/queues", http.NoBody))
		if w.Code < http.StatusBadRequest {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	}
	f.Stop()
	for len(got) > 0 {
		if text := <-got; text != "the database is unavailable; active runs continue" {
			t.Errorf("logged %q", text)
		}
	}
}
