package dashboard_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/web/dashboard"
	"github.com/ralph-pool/ralph/pool/journal"
)

// longLog writes a log of size bytes, with a stage at both ends and an iteration every 2 MB.
func longLog(t testing.TB, size int) (rec journal.Record) {
	t.Helper()
	rec.Dir, rec.Started = t.TempDir(), time.Unix(1_790_000_000, 0)
	f, err := os.Create(filepath.Join(rec.Dir, events))
	if err != nil {
		t.Fatal(err)
	}
	w, at := bufio.NewWriterSize(f, 1<<20), rec.Started
	written, iterations := 0, 0
	put := func(e journal.Event) {
		e.Seq, e.Run, e.Key, e.Time = uint64(written), "r-1", "396", at
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		n, _ := w.Write(append(data, '\n'))
		written, at = written+n, at.Add(time.Second)
	}
	put(journal.Event{Kind: journal.EventStage, Stage: journal.StageWork})
	for written < size {
		if written >= iterations*2<<20 {
			iterations++
			put(journal.Event{Kind: journal.EventIteration, Iteration: iterations})
		}
		put(journal.Event{Kind: journal.EventAgent, Source: "tool", Text: fmt.Sprintf(`Bash says "kind":"stage" %d %s`, written, strings.Repeat("word ", written%60))})
	}
	put(journal.Event{Kind: journal.EventStage, Stage: journal.StagePublish})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	rec.Ended = at
	return rec
}

func BenchmarkSteps(b *testing.B) {
	rec := longLog(b, 100<<20)
	for b.Loop() {
		var x dashboard.StepIndex // empty, so it reads the whole log
		if names, _, err := x.Steps(rec); err != nil || len(names) < 50 {
			b.Fatal(len(names), err)
		}
	}
}

func BenchmarkTail(b *testing.B) {
	rec := longLog(b, 100<<20)
	for b.Loop() {
		if _, err := dashboard.Before(rec.Dir, events, -1); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRunPage measures the page of a run with a log of 100 MB.
func BenchmarkRunPage(b *testing.B) {
	rec := longLog(b, 100<<20)
	rec.ID, rec.Key, rec.Kind = "r-1", "396", journal.KindIssue
	f := &fake{}
	f.status.Name = "shop"
	if err := f.Save(b.Context(), rec); err != nil {
		b.Fatal(err)
	}
	pages, err := dashboard.New(dashboard.Config{Service: f})
	if err != nil {
		b.Fatal(err)
	}
	mux := http.NewServeMux()
	pages.Register(mux)
	for b.Loop() {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/p/shop/runs/r-1", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code)
		}
	}
}
