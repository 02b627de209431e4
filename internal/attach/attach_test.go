package attach

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watching collects the output of Watch until enough returns true.
func watching(t *testing.T, s Source, enough func(said []string) bool) []string {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var said []string
	hear := func(text string) {
		if said = append(said, text); enough(said) {
			cancel(nil)
		}
	}
	Watch(ctx, s, func(e Event) {
		text := fmt.Sprintf("%s %s", e.Run.Key, e.Kind)
		if e.Text+e.Title != "" {
			text += " " + e.Text + e.Title
		}
		if e.Old {
			text = "old " + text
		}
		hear(text)
	}, func(err error) { hear(fmt.Sprint("away: ", err)) })
	return said
}

func until(last string) func([]string) bool {
	return func(said []string) bool { return said[len(said)-1] == last }
}

// local returns a run of this process.
func local(t *testing.T) (Local, journal.Record, *journal.Folder) {
	t.Helper()
	self, err := proc.Started(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	r := journal.Record{
		Run:   journal.Run{ID: "r1", Key: "fix", Title: "Fix it", Dir: t.TempDir(), Started: time.Now().Add(-time.Hour)},
		State: journal.State{Stage: journal.StageWork, PID: os.Getpid(), Process: self},
	}
	l := Local{Journal: &journaltest.Memory{}}
	if err := l.Journal.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f, err := journal.OpenFolder(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return l, r, f
}

func add(t *testing.T, f *journal.Folder, list ...journal.Event) {
	t.Helper()
	for _, e := range list {
		if err := f.Append(e); err != nil {
			t.Error(err)
		}
	}
}

func TestLocal(t *testing.T) {
	t.Parallel()
	l, _, f := local(t)
	dead := journal.Record{Run: journal.Run{ID: "r0", Key: "dead", Started: time.Now()}, State: journal.State{PID: os.Getpid(), Process: "another"}}
	if err := l.Journal.Save(t.Context(), dead); err != nil {
		t.Fatal(err)
	}
	add(t, f, journal.Event{Kind: journal.EventAgent, Text: "before", Time: time.Now().Add(-time.Minute)})
	said := watching(t, l, func(said []string) bool {
		switch said[len(said)-1] {
		case "old fix agent before":
			add(t, f, journal.Event{Kind: journal.EventAgent, Text: "now", Time: time.Now().Add(time.Minute)})
		case "fix agent now":
			add(t, f, journal.Event{Kind: journal.EventEnded, Time: time.Now().Add(time.Minute)})
		case "fix ended":
			return true
		}
		return false
	})
	if diff := cmp.Diff([]string{"old fix started Fix it", "old fix agent before", "fix agent now", "fix ended"}, said); diff != "" {
		t.Error(diff)
	}
}

// A run whose process has died must end.
func TestLocalDied(t *testing.T) {
	t.Parallel()
	l, r, _ := local(t)
	said := watching(t, l, func(said []string) bool {
		r.Process = "another"
		if err := l.Journal.Save(t.Context(), r); err != nil {
			t.Error(err)
		}
		return len(said) == 2
	})
	if want := "fix deferred its process has ended, or is away"; said[len(said)-1] != want {
		t.Errorf("%q, want %q last", said, want)
	}
	if err := l.Stop(t.Context(), Run{ID: "r1", Key: "fix"}); err == nil || err.Error() != "stop fix: it is not being worked any more" {
		t.Errorf("stopped with %v", err)
	}
	if err := l.Stop(t.Context(), Run{ID: "r2", Key: "no"}); err == nil || err.Error() != "stop no: there is no such run" {
		t.Errorf("stopped with %v", err)
	}
}

// Of a very long log only the end is read. The usage comes from the record.
func TestLocalLong(t *testing.T) {
	t.Parallel()
	l, r, f := local(t)
	r.Facts.Usage = agents.Usage{CostUSD: 3}
	if err := l.Journal.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	add(t, f, journal.Event{Kind: journal.EventAgent, Text: "first"})
	if err := os.Truncate(filepath.Join(r.Dir, "events.jsonl"), wholeMax+1); err != nil {
		t.Fatal(err)
	}
	add(t, f, journal.Event{Kind: journal.EventNote, Text: "last", Time: r.Started})
	said := watching(t, l, until("old fix note last"))
	if diff := cmp.Diff([]string{"old fix started Fix it", "old fix usage", "old fix note last"}, said); diff != "" {
		t.Error(diff)
	}
	if err := l.Stop(t.Context(), Run{ID: "r1", Key: "fix"}); err != nil || !journal.StopRequested(r.Dir) {
		t.Errorf("stopped with %v", err)
	}
}

const projects = `{"projects":[{"name":"shop","repo":"/src/shop","running":[
	{"run":"r1","issue":"fix","title":"Fix it","started":"2026-11-01T10:00:00Z","usage":{"cost_usd":1.5}},
	{"run":"r0","issue":"over","title":"Over","started":"2026-11-01T09:00:00Z","ended":"2026-11-01T09:30:00Z"}]}]}`

// served returns a client of a service with these handlers.
func served(t *testing.T, token string, events http.HandlerFunc) *Service {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/projects", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(projects)) })
	mux.HandleFunc("GET /v1/projects/shop/runs/r1/events", events)
	mux.HandleFunc("POST /v1/projects/shop/issues/{key}/stop", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("key") != "fix" || r.FormValue("run") != "r1" {
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"detail":"it is not being worked"}`))
		}
	})
	mux.HandleFunc("GET /elsewhere", func(http.ResponseWriter, *http.Request) { t.Error("the token goes elsewhere") })
	guard := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer secret" {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		mux.ServeHTTP(w, r)
	})
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(guard)
	_ = server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	s, err := NewService("unix:"+l.Addr().String(), token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func TestService(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := served(t, "secret", func(w http.ResponseWriter, r *http.Request) {
		switch asked.Add(1) {
		case 1: // the connection breaks inside an event
			fmt.Fprint(w, ": events\n\nid: 10\ndata: {\"kind\":\"agent\",\"text\":\"one\"}\n\nid: 20\ndata: {\"kind\":")
		case 2:
			if last := r.Header.Get("Last-Event-ID"); last != "10" {
				t.Errorf("goes on after %q", last)
			}
			fmt.Fprint(w, "id: 20\ndata: {\"kind\":\"agent\",\"text\":\"two\"}\n\ndata: nonsense\n\nid: 30\ndata: {\"kind\":\"ended\"}\n\nevent: end\nid: 30\ndata: {}\n\n")
		}
	})
	said := watching(t, s, until("old fix ended"))
	if diff := cmp.Diff([]string{"old fix started Fix it", "old fix agent one", "old fix agent two", "old fix ended"}, said); diff != "" {
		t.Error(diff)
	}
	runs, err := s.Runs(t.Context())
	if err != nil || len(runs) != 1 || runs[0].Repo != "/src/shop" || runs[0].Used.CostUSD != 1.5 {
		t.Errorf("%+v, %v", runs, err)
	}
	if err := s.Stop(t.Context(), runs[0]); err != nil {
		t.Error(err)
	}
	if err := s.Stop(t.Context(), Run{Project: "shop", Key: "other"}); err == nil || !strings.Contains(err.Error(), "stop other: the service answers 409 Conflict: it is not being worked") {
		t.Errorf("stopped with %v", err)
	}
}

func TestServiceRefuses(t *testing.T) {
	t.Parallel()
	s := served(t, "wrong", http.NotFound)
	if _, err := s.Runs(t.Context()); err == nil || err.Error() != "the service answers 401 Unauthorized" {
		t.Errorf("asked with %v", err)
	}
	var refused *RefusedError
	if err := s.Pause(t.Context(), "shop", true); !errors.As(err, &refused) || refused.Code != http.StatusUnauthorized {
		t.Errorf("paused with %v", err)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, address := range []string{gone.Listener.Addr().String(), "unix:" + filepath.Join(t.TempDir(), "none.sock")} {
		none, err := NewService(address, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := none.Ready(t.Context()); !errors.Is(err, ErrNoService) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s answers with %v", address, err)
		}
	}
	redirect := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusFound))
	defer redirect.Close()
	r, err := NewService(redirect.Listener.Addr().String(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Runs(t.Context()); err == nil || !strings.Contains(err.Error(), "redirect") {
		t.Errorf("asked with %v", err)
	}
	for _, address := range []string{"", "ftp://x", "http://", "a b", "shop", "a b:80"} {
		if _, err := NewService(address, ""); err == nil {
			t.Errorf("%q is taken for an address", address)
		}
	}
}

// flaky is a source whose calls fail from time to time.
type flaky struct{ asked int }

func (f *flaky) Runs(context.Context) ([]Run, error) {
	if f.asked++; f.asked == 2 {
		return nil, errors.New("gone")
	}
	return nil, nil
}
func (f *flaky) Follow(context.Context, Run, func(journal.Event)) {}
func (f *flaky) Stop(context.Context, Run) error                  { return nil }

func TestAway(t *testing.T) {
	t.Parallel()
	said := watching(t, &flaky{}, until("away: <nil>"))
	if diff := cmp.Diff([]string{"away: gone", "away: <nil>"}, said); diff != "" {
		t.Error(diff)
	}
}

// finishing is a source that still lists its run for a while after the run has ended.
type finishing struct{ asked int }

func (f *finishing) Runs(context.Context) ([]Run, error) {
	if f.asked++; f.asked == 4 {
		return nil, errors.New("enough")
	}
	return []Run{{ID: "r1", Key: "fix", Title: "Fix it"}}, nil
}

func (f *finishing) Follow(_ context.Context, _ Run, each func(journal.Event)) {
	each(journal.Event{Kind: journal.EventEnded})
}
func (f *finishing) Stop(context.Context, Run) error { return nil }

// A run that has ended must not be followed again while its source still lists it.
func TestEndedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		said := watching(t, &finishing{}, until("away: enough"))
		if diff := cmp.Diff([]string{"old fix started Fix it", "old fix ended", "away: enough"}, said); diff != "" {
			t.Error(diff)
		}
	})
}

// FuzzStream: no stream may block or crash its reader.
func FuzzStream(f *testing.F) {
	for _, s := range []string{"id: 1\ndata: {\"kind\":\"agent\"}\n\n", "event: end\ndata: {}\n\n", ":\n\ndata\n\n", "data: {\r\n\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		last, n := "", 0
		over, _ := stream(strings.NewReader(text), &last, func(journal.Event) { n++ })
		if lines := slices.Collect(strings.Lines(text)); n > len(lines) || over && !strings.Contains(text, "end") {
			t.Errorf("%d events of %d lines, over %v", n, len(lines), over)
		}
	})
}

// remote is a source with a run on another machine. Each call of Runs shows a little more progress.
type remote struct{ looks int }

func (r *remote) Runs(context.Context) ([]Run, error) {
	steps := []Run{{Stage: journal.StageWork}, {Stage: journal.StageWork, Doing: "reads"}, {Stage: journal.StageVerify, Doing: "reads"}, {Stage: journal.StageVerify, Doing: "gate: make"}}
	run := steps[min(r.looks, len(steps)-1)]
	run.ID, run.Key, run.Title, run.Machine = "r1", "fix", "Fix it", "other"
	r.looks++
	return []Run{run}, nil
}

func (*remote) Follow(ctx context.Context, _ Run, _ func(journal.Event)) { <-ctx.Done() }

func (*remote) Stop(context.Context, Run) error { return nil }

// For a run on another machine, each change that Runs shows is reported once.
func TestOnAnotherMachine(t *testing.T) {
	t.Parallel()
	want := []string{"old fix started Fix it", "fix stage", "fix note reads", "fix stage", "fix note gate: make"}
	if got := watching(t, &remote{}, until(want[len(want)-1])); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Anything else that listens at the address must be reported as not ralph's service, whatever it answers.
func TestOtherListener(t *testing.T) {
	t.Parallel()
	answers := map[string]http.HandlerFunc{
		"JSON":    func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) },
		"a page":  func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) },
		"404":     http.NotFound,
		"no HTTP": func(w http.ResponseWriter, _ *http.Request) { hijacked(w, "SSH-2.0\r\n") },
		"nothing": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(answer)
			defer server.Close()
			s, err := NewService(server.URL, "")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx := t.Context()
			if name == "nothing" { // shorter than the wait for a service
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
			}
			if _, err := s.Runs(ctx); !errors.Is(err, ErrOther) || !strings.HasPrefix(err.Error(), "what listens at "+server.URL+" does not answer as ralph's service: ") {
				t.Errorf("%v", err)
			}
		})
	}
}

// hijacked answers with bytes that are not HTTP.
func hijacked(w http.ResponseWriter, text string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, _ = conn.Write([]byte(text))
		_ = conn.Close()
	}
}
