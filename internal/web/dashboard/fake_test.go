package dashboard_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/web/dashboard"
	"github.com/ralph-pool/ralph/loop"
	"github.com/ralph-pool/ralph/pool"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/journal/journaltest"
	"github.com/ralph-pool/ralph/tracker"
)

// fake is a service with one project, whose state the test controls.
type fake struct {
	journaltest.Memory
	refused string
	patch   string
	events  []journal.Event // next events of an active run
	fail    error           // error of every action
	parked  []journal.Parked
	unread  chan struct{} // closed once the backlog may be read; nil: at once

	mu     sync.Mutex
	status service.Status // guarded by mu
	board  service.Board  // guarded by mu
	asked  []string       // guarded by mu; called actions
}

func (f *fake) Projects() []service.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []service.Status{f.status}
}

func (f *fake) Status(name string) (service.Status, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name != f.status.Name {
		return service.Status{}, service.ErrNoProject
	}
	return f.status, nil
}

func (f *fake) Board(_ context.Context, name string) (service.Board, error) {
	_, err := f.Status(name)
	if f.unread != nil {
		<-f.unread
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.board, err
}

func (f *fake) Waits(context.Context, string) ([]journal.Parked, error) { return f.parked, nil }

func (f *fake) Refused() string { return f.refused }
func (f *fake) Draining() bool  { return false }

func (f *fake) Runs(ctx context.Context, name string, q journal.Query) ([]journal.Record, error) {
	if _, err := f.Status(name); err != nil {
		return nil, err
	}
	return f.Find(ctx, q)
}

func (f *fake) Totals(ctx context.Context, name string, since time.Time) ([]journal.Total, error) {
	if _, err := f.Status(name); err != nil {
		return nil, err
	}
	return f.Memory.Totals(ctx, "", since)
}

func (f *fake) Diff(context.Context, string, journal.Record, int) ([]byte, int, bool, error) {
	return []byte(f.patch), 0, false, nil
}

func (f *fake) ask(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return f.fail
}

func (f *fake) Asked() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.asked)
}

// wait waits until n actions have been called.
func (f *fake) wait(n int) {
	for len(f.Asked()) < n {
		runtime.Gosched()
	}
}

func (f *fake) Stop(_ context.Context, name, key, run string) error {
	return f.ask("stop %s %s %s", name, key, run)
}
func (f *fake) Pause(name string, paused bool, _ string) error {
	return f.ask("pause %s %t", name, paused)
}
func (f *fake) Retry(_ context.Context, name, key, _ string, fresh bool) error {
	return f.ask("retry %s %s %t", name, key, fresh)
}

func (f *fake) Fix(_ context.Context, name, key, _, text string) error {
	return f.ask("fix %s %s %s", name, key, text)
}

// site serves the pages of a fake.
func site(t *testing.T, f *fake, live *dashboard.Live) string {
	t.Helper()
	pages, err := dashboard.New(dashboard.Config{Service: f, Live: live, Version: "1.0"})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	pages.Register(mux)
	changes := func(w http.ResponseWriter, r *http.Request) {
		data, err := pages.Changes(r.Context(), r.PathValue("project"))
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "retry: 100\ndata: %s\n\n", data)
	}
	mux.HandleFunc("GET /live", changes)
	mux.HandleFunc("GET /p/{project}/live", changes)
	mux.HandleFunc("GET /v1/projects/{project}/runs/{run}/events", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range f.events {
			data, err := json.Marshal(e)
			if err != nil {
				t.Error(err)
			}
			_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	server := httptest.NewServer(mux)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// at is the current time in the demonstration data.
func at() time.Time { return time.Now().Truncate(time.Second) }

// shop returns a project in a realistic state.
func shop(t *testing.T) (*fake, *dashboard.Live) {
	t.Helper()
	f, live := &fake{patch: shopPatch}, dashboard.NewLive()
	issue := func(key, title string, labels ...string) tracker.Issue {
		return tracker.Issue{Key: key, ID: "#" + key, Title: title, Labels: append([]string{"no-human"}, labels...), Open: true, URL: "https://forge.example/shop/issues/" + key}
	}
	skip := func(i tracker.Issue, s journal.Skip) backlog.Skipped { return backlog.Skipped{Issue: i, Skip: s} }
	f.status = service.Status{
		Name: "shop", Repo: "/srv/shop", State: service.Working, Parallel: 3, Poll: time.Minute, Swept: at().Add(-8 * time.Minute),
		Running: []pool.Running{
			{Key: "412", Run: "r-412", Title: "Cart total ignores the voucher after a reload", Started: at().Add(-11*time.Minute - 42*time.Second)},
			{Key: "418", Run: "r-418", Title: "Export invoices as PDF/A", Started: at().Add(-3*time.Minute - 8*time.Second)},
		},
	}
	review := []service.Reviewed{{Issue: issue("396", "Vouchers are applied twice when the cart is merged"), Run: "r-396", Where: "https://forge.example/shop/pulls/1204"}}
	f.board = service.Board{At: at(), Review: review, Said: map[string]string{"388": "the agent asks: May a gift card be in another currency than the order?", "402": "the last run ended no-change: the service has been split already"}, Plan: backlog.Plan{
		Work: []tracker.Issue{
			issue("421", "Retry the payment webhook with back-off"), issue("423", "Show the delivery date in the order confirmation"),
			issue("427", "Search: umlauts in product names"), issue("430", "Remove the deprecated v1 price endpoint"),
		},
		Skipped: []backlog.Skipped{
			skip(issue("397", "Flaky test in checkout: TestReserveStock"), journal.Skip{Code: journal.SkipRetry, Until: at().Add(25 * time.Minute), Attempt: 2, Outcome: journal.GateFailed}),
			skip(issue("409", "Upgrade the SQL driver"), journal.Skip{Code: journal.SkipClaimed, Run: "r-409", Host: "build-2"}),
			skip(issue("388", "Which currency for gift cards?", "needs-info"), journal.Skip{Code: journal.SkipAnswer, Detail: "needs-info"}),
			skip(issue("402", "Split the order service"), journal.Skip{Code: journal.SkipHuman, Detail: "needs-human"}),
			skip(issue("415", "Dark mode for the e-mail templates"), journal.Skip{Code: journal.SkipUnfit, Unfit: tracker.Unfit{Code: tracker.UnfitBlocked, Detail: "427"}}),
			skip(issue("431", "Pin the base image"), journal.Skip{Code: journal.SkipUnapproved, Detail: "nobody who may approve it has set the label"}),
		},
	}}
	hear := func(run string, e journal.Event) { e.Run = run; live.Observe("shop", e) }
	hear("r-412", journal.Event{Kind: journal.EventIteration, Iteration: 2})
	hear("r-412", journal.Event{Kind: journal.EventUsage, Usage: &agents.Usage{Input: 84_000, Output: 9_200, CostUSD: 0.87}})
	hear("r-412", journal.Event{Kind: journal.EventAgent, Source: "tool", Text: "Bash go test ./cart/... -run TestVoucher"})
	hear("r-418", journal.Event{Kind: journal.EventStage, Stage: journal.StageVerify})
	hear("r-418", journal.Event{Kind: journal.EventUsage, Usage: &agents.Usage{Input: 31_000, Output: 4_100, CostUSD: 0.34}})
	hear("r-418", journal.Event{Kind: journal.EventGate, Place: journal.PlaceCheckout, Text: "make test"})
	for i := range 400 {
		f.add(t, i)
	}
	f.done(t)
	return f, live
}

// add saves an earlier run.
func (f *fake) add(t *testing.T, i int) {
	t.Helper()
	titles := []string{"Round prices half up", "Order list loads twice", "Address form loses the country", "Speed up the category page", "Log rotation for the importer", "Typo in the terms"}
	outcomes := []journal.Outcome{journal.Succeeded, journal.Succeeded, journal.Succeeded, journal.GateFailed, journal.Succeeded, journal.NoChange, journal.Succeeded, journal.NeedsInfo, journal.Succeeded, journal.Failed, journal.Succeeded}
	r := journal.Record{Run: journal.Run{
		ID: fmt.Sprintf("r-%05d", i), Kind: journal.KindIssue, Key: fmt.Sprint(395 - i), Title: titles[i%len(titles)], Attempt: 1 + i%2, Agent: []string{"claude", "codex", "claude"}[i%3],
		Model: []string{"opus", "gpt-5.5", "sonnet", "", "opus"}[i%5], Branch: fmt.Sprint("ralph/", 395-i), Base: "main", Sandbox: "native",
		Started: at().Add(-time.Duration(i*(97+i%13)) * time.Minute).Add(-time.Hour),
	}}
	r.Ended = r.Started.Add(time.Duration(4+i%17) * time.Minute)
	r.Verdict.Outcome, r.Commits, r.Stage = outcomes[i%len(outcomes)], 1+i%3, journal.StageEnd
	r.Facts.Usage = agents.Usage{Input: int64(20_000 + 700*(i%40)), Output: int64(2_000 + 90*(i%31)), CostUSD: 0.2 + float64(i%23)/12}
	if err := f.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// done saves a run with everything that its page can show.
func (f *fake) done(t *testing.T) {
	t.Helper()
	began := at().Add(-42 * time.Minute)
	check := func(command string, exit int, took time.Duration, tail string) loop.Check {
		return loop.Check{Command: command, ExitCode: exit, Duration: took, Tail: tail}
	}
	r := journal.Record{
		Run: journal.Run{
			ID: "r-396", Kind: journal.KindIssue, Key: "396", Title: "Vouchers are applied twice when the cart is merged", Attempt: 1, Agent: "claude", Model: "opus",
			Branch: "ralph/396", Base: "main", Sandbox: "native", URL: "https://forge.example/shop/issues/396", Dir: t.TempDir(), Started: began,
		},
		State: journal.State{
			Stage: journal.StageEnd, Ended: began.Add(18*time.Minute + 31*time.Second), Tip: "aaaa", Commits: 2, Published: "pull request opened",
			Request: journal.Request{Number: 1204, URL: "https://forge.example/shop/pulls/1204"},
			Changed: journal.Changed{Files: 3, Insertions: 41, Deletions: 9, List: []journal.ChangedFile{{Path: "cart/merge.go", Insertions: 14, Deletions: 7}, {Path: "cart/merge_test.go", Insertions: 25}, {Path: "docs/vouchers.md", Insertions: 2, Deletions: 2}}},
			Facts: journal.Facts{
				Commits: 2, Usage: agents.Usage{Input: 182_000, Output: 21_400, CostUSD: 1.93}, GateRan: true,
				Iterations: []loop.Iteration{
					{Number: 1, Agent: "claude", Model: "opus", Ending: "exit", Commits: 1, Duration: 6*time.Minute + 12*time.Second, Usage: agents.Usage{Input: 96_000, Output: 12_300, CostUSD: 1.04}, Signal: "COMPLETE"},
					{Number: 2, Agent: "claude", Model: "opus", Ending: "exit", Commits: 1, Duration: 4*time.Minute + 5*time.Second, Usage: agents.Usage{Input: 86_000, Output: 9_100, CostUSD: 0.89}, Signal: "COMPLETE"},
				},
				Baseline: &journal.Verification{Checks: []loop.Check{check("make test", 0, 71*time.Second, "ok  shop/cart 4.1s")}},
				Gate:     []loop.Check{check("make lint", 0, 19*time.Second, ""), check("make test", 0, 74*time.Second, "ok  shop/cart 4.3s")},
				Verify:   &journal.Verification{Checks: []loop.Check{check("make lint", 0, 20*time.Second, ""), check("make test", 0, 73*time.Second, "ok  shop/cart 4.2s\nok  shop/order 2.8s")}},
			},
			Verdict: journal.Verdict{Outcome: journal.Succeeded},
		},
	}
	folder, err := journal.OpenFolder(r.Dir)
	if err != nil {
		t.Fatal(err)
	}
	say := func(after time.Duration, e journal.Event) {
		e.Run, e.Key, e.Time = r.ID, r.Key, began.Add(after)
		if err := folder.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	stage := func(after time.Duration, s journal.Stage) {
		say(after, journal.Event{Kind: journal.EventStage, Stage: s})
	}
	stage(0, journal.StageClaim)
	stage(2*time.Second, journal.StageBaseline)
	stage(75*time.Second, journal.StagePrepare)
	say(77*time.Second, journal.Event{Kind: journal.EventStarted, Attempt: 1, Title: r.Title, Branch: r.Branch})
	stage(78*time.Second, journal.StageWork)
	say(79*time.Second, journal.Event{Kind: journal.EventIteration, Iteration: 1})
	say(95*time.Second, journal.Event{Kind: journal.EventAgent, Source: "message", Text: "The merge adds the voucher of the guest cart to the one of the account. I will write a failing test first."})
	say(140*time.Second, journal.Event{Kind: journal.EventAgent, Source: "tool", Text: "Edit cart/merge_test.go"})
	say(190*time.Second, journal.Event{Kind: journal.EventAgent, Source: "tool", Text: "Bash go test ./cart -run TestMergeVoucher"})
	say(7*time.Minute, journal.Event{Kind: journal.EventCommits, Commits: 1})
	say(8*time.Minute, journal.Event{Kind: journal.EventGate, Check: &loop.Check{Command: "make test", ExitCode: 2, Tail: "--- FAIL: TestMergeKeepsTheBetterVoucher (0.01s)\n    merge_test.go:48: total 1790, want 1690\nFAIL shop/cart"}})
	say(8*time.Minute+2*time.Second, journal.Event{Kind: journal.EventIteration, Iteration: 2})
	say(9*time.Minute, journal.Event{Kind: journal.EventAgent, Source: "tool", Text: "Edit cart/merge.go"})
	say(12*time.Minute, journal.Event{Kind: journal.EventCommits, Commits: 1})
	say(13*time.Minute, journal.Event{Kind: journal.EventGate, Check: &loop.Check{Command: "make test", Tail: "ok  shop/cart 4.3s"}})
	stage(14*time.Minute, journal.StageVerify)
	stage(17*time.Minute, journal.StagePublish)
	stage(18*time.Minute, journal.StageReport)
	say(18*time.Minute+31*time.Second, journal.Event{Kind: journal.EventEnded, Outcome: journal.Succeeded, Reason: &journal.Reason{}})
	if err := folder.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

const shopPatch = `diff --git a/cart/merge.go b/cart/merge.go
index 3f1..9a2 100644
--- a/cart/merge.go
+++ b/cart/merge.go
@@ -21,9 +21,11 @@ func Merge(account, guest Cart) Cart {
 	for _, item := range guest.Items {
 		account.add(item)
 	}
-	if guest.Voucher != nil {
-		account.Vouchers = append(account.Vouchers, *guest.Voucher)
+	// Only one voucher counts: the one that takes off more.
+	if v := guest.Voucher; v != nil && v.Worth(account) > account.Discount() {
+		account.Voucher = v
 	}
+	account.Total = account.Subtotal() - account.Discount()
 	return account
 }
 
diff --git a/docs/vouchers.md b/docs/vouchers.md
index 1..2 100644
--- a/docs/vouchers.md
+++ b/docs/vouchers.md
@@ -4 +4 @@
-Vouchers add up.
+One voucher counts for an order.
`

// send sends a request without following redirects.
func send(t *testing.T, r *http.Request) answer {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, string(body)}
}

func TestMain(m *testing.M) {
	if err := os.Setenv("TZ", "UTC"); err != nil {
		panic(err)
	}
	m.Run()
}
