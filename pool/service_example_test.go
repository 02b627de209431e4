package pool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/sqlite"
	"github.com/ralph-pool/ralph/pool/run"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/local"
	"github.com/ralph-pool/ralph/worktree"
)

// tenant is one backlog on a repository that several tenants share. Its methods are safe for concurrent use.
type tenant struct {
	pool    *pool.Pool
	issues  tracker.Tracker
	backlog string        // folder of its issue files
	more    chan struct{} // an issue has come
	quit    chan struct{} // closed by close
	swept   chan error    // the result of serve

	mu      sync.Mutex
	readers map[chan journal.Event]bool // guarded by mu
}

// openTenant makes a pool that shares repository and journal with other tenants, under its own name.
func openTenant(ctx context.Context, name, dir, state string, store journal.Store) (*tenant, error) {
	repo, err := worktree.Open(ctx, dir, worktree.Options{StateDir: state, Namespace: name})
	if err != nil {
		return nil, err
	}
	t := &tenant{
		backlog: filepath.Join(state, "backlogs", name),
		more:    make(chan struct{}, 1), quit: make(chan struct{}), swept: make(chan error, 1),
		readers: map[chan journal.Event]bool{},
	}
	if err := os.MkdirAll(t.backlog, 0o700); err != nil {
		return nil, err
	}
	if t.issues, err = local.New(local.Config{Dir: t.backlog}); err != nil {
		return nil, err
	}
	t.pool, err = pool.New(pool.Config{
		Run: run.Config{
			Pool: name, Repo: repo, Store: store, Tracker: t.issues,
			Agent: agents.Command{}, Options: agents.Options{Command: []string{"sh", "-c", serviceAgent}},
			Sandboxes: sandboxes.NewNone(sandboxes.NoneConfig{}),
		},
		BranchPrefix: "ralph-" + name + "/",
		Observe:      t.publish,
	})
	return t, err
}

// serve sweeps whenever issues come, until close is called or ctx ends.
func (t *tenant) serve(ctx context.Context) {
	for {
		summary, err := t.pool.Sweep(ctx)
		if err := errors.Join(err, summary.Unavailable); err != nil {
			slog.Error("the backlog has to wait", "error", err)
		}
		for _, b := range summary.Broken { // such as a journal that cannot be written
			slog.Error("an issue could not be worked", "issue", b.Issue.Key, "error", b.Skip.Detail)
		}
		for _, p := range summary.Problems {
			slog.Warn("a part of the backlog cannot be read", "error", p.Error())
		}
		select {
		case <-t.quit:
			t.swept <- err
			return
		case <-ctx.Done():
			t.swept <- err
			return
		case <-t.more:
		case <-time.After(time.Minute): // waiting times end, and people edit issues
		}
	}
}

// close waits for active runs to end. If ctx ends first, they are killed; their commits are imported.
func (t *tenant) close(ctx context.Context) error {
	close(t.quit)
	t.pool.Drain()
	defer context.AfterFunc(ctx, t.pool.Kill)()
	return <-t.swept
}

// publish sends an event to all current readers. It must not block.
func (t *tenant) publish(e journal.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for r := range t.readers {
		select {
		case r <- e:
		default: // a reader that is too slow misses events; they are in the run's folder
		}
	}
}

func (t *tenant) subscribe() (events chan journal.Event, leave func()) {
	events = make(chan journal.Event, 100)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers[events] = true
	return events, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.readers, events)
	}
}

// service is the HTTP side of the tenants, by name.
func service(tenants map[string]*tenant) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, f func(*tenant, http.ResponseWriter, *http.Request)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			t, ok := tenants[r.PathValue("tenant")]
			if !ok {
				http.NotFound(w, r)
				return
			}
			f(t, w, r)
		})
	}
	handle("POST /{tenant}/issues/{name}", (*tenant).addIssue)
	handle("DELETE /{tenant}/runs/{key}", (*tenant).stopRun)
	handle("GET /{tenant}/events", (*tenant).sendEvents)
	return mux
}

// addIssue stores an issue and makes the pool list the backlog.
func (t *tenant) addIssue(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err == nil {
		err = os.WriteFile(filepath.Join(t.backlog, tracker.Key(r.PathValue("name"))+".md"), text, 0o600)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	t.pool.Wake() // for a sweep in progress
	select {
	case t.more <- struct{}{}: // for the next sweep
	default:
	}
	w.WriteHeader(http.StatusAccepted)
}

// stopRun cancels an issue. The work of its run stays on the issue's branch. Without the label no sweep works the issue.
func (t *tenant) stopRun(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("key")
	if t.issues.Change(r.Context(), key, tracker.Change{RemoveLabels: []string{"no-human"}}) != nil {
		http.NotFound(w, r)
		return
	}
	t.pool.Stop(key) // false: no run has begun, and none will
}

// sendEvents streams events as JSON lines until the client leaves.
func (t *tenant) sendEvents(w http.ResponseWriter, r *http.Request) {
	events, leave := t.subscribe()
	defer leave()
	flusher := http.NewResponseController(w)
	if flusher.Flush() != nil { // the client knows now that it misses nothing
		return
	}
	for {
		select {
		case e := <-events:
			if json.NewEncoder(w).Encode(e) != nil || flusher.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// serviceAgent commits a file, or never ends if the issue says so.
const serviceAgent = `if grep -q 'Never end'; then echo waiting; exec sleep 1000; fi
echo hello > hello.txt; git add .; git commit -qm "Say hello"; echo "<promise>COMPLETE</promise>"`

// A service takes issues over HTTP, works those of two tenants side by side, streams events, cancels a run, and lets the others
// finish before it ends.
func Example_service() {
	ctx := context.Background()
	dir, state := exampleRepository(), exampleState()
	defer func() { _ = os.RemoveAll(dir); _ = os.RemoveAll(state) }()
	store, err := sqlite.Open(ctx, filepath.Join(state, "state.db"), nil)
	must(err)
	defer func() { must(store.Close()) }()
	tenants := map[string]*tenant{}
	for _, name := range []string{"web", "api"} {
		t, err := openTenant(ctx, name, dir, state, store)
		must(err)
		tenants[name] = t
		go t.serve(ctx)
	}
	server := httptest.NewServer(service(tenants))
	defer server.Close()

	web, api := readEvents(server.URL+"/web/events"), readEvents(server.URL+"/api/events")
	send(http.MethodPost, server.URL+"/web/issues/hello", "---\ntitle: Say hello\nlabels: [no-human]\n---\n")
	send(http.MethodPost, server.URL+"/api/issues/hello", "---\ntitle: Never end\nlabels: [no-human]\n---\n")
	show("web", web.until(journal.EventEnded))
	api.until(journal.EventAgent)
	send(http.MethodPost, server.URL+"/api/issues/later", "---\ntitle: Later\n---\n") // has no run
	send(http.MethodDelete, server.URL+"/api/runs/later", "")
	send(http.MethodDelete, server.URL+"/api/runs/hello", "")
	show("api", api.until(journal.EventEnded))

	web.close()
	api.close()
	ending, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, t := range tenants {
		must(t.close(ending))
	}
	// Output:
	// web: hello succeeded, 1 commits on ralph-web/hello
	// api: hello interrupted, 0 commits on ralph-api/hello
}

// eventReader is a client that reads events.
type eventReader struct {
	body  io.ReadCloser
	lines *bufio.Scanner
}

func readEvents(url string) eventReader {
	answer, err := http.Get(url) //nolint:bodyclose // an example's client; close closes it
	must(err)
	return eventReader{answer.Body, bufio.NewScanner(answer.Body)}
}

func (r eventReader) until(kind journal.EventKind) (e journal.Event) {
	for e.Kind != kind && r.lines.Scan() {
		e = journal.Event{}
		must(json.Unmarshal(r.lines.Bytes(), &e))
	}
	return e
}

func (r eventReader) close() { must(r.body.Close()) }

func show(tenant string, e journal.Event) {
	fmt.Printf("%s: %s %s, %d commits on %s\n", tenant, e.Key, e.Outcome, e.Commits, e.Branch)
}

func send(method, url, body string) {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	must(err)
	answer, err := http.DefaultClient.Do(request)
	must(err)
	must(answer.Body.Close())
	if answer.StatusCode >= http.StatusBadRequest {
		panic(answer.Status)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
