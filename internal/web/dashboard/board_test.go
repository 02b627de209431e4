package dashboard_test

import (
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/internal/web/dashboard"
	"github.com/ralph-pool/ralph/pool/backlog"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/tracker"
)

// Issues that wait to be merged are listed for a person, with the names that the tracker shows.
func TestBoardNames(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	f.board.Work = []tracker.Issue{
		{Key: "fix-the-form-2b9c", ID: "Fix the <form>.md", Title: "Fix the form", Open: true}, {Key: "task-1", ID: "task-1.md", Title: "Task", Open: true},
	}
	body := wholeBoard(t, f, live)
	_, needs, _ := strings.Cut(body, `id="c-needs-human"`)
	needs, _, _ = strings.Cut(needs, "</section>")
	for _, want := range []string{">#396<", "waits to be merged: https://forge.example/shop/pulls/1204", `<a href="https://forge.example/shop/pulls/1204" rel="noreferrer">Request</a>`, `href="/p/shop/runs/r-396"`} {
		if !strings.Contains(needs, want) {
			t.Errorf("no %q in\n%s", want, needs)
		}
	}
	for _, want := range []string{"Fix the &lt;form&gt;.md · fix-the-form-2b9c<", ">task-1.md<"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
}

// wholeBoard returns the page of the board once the backlog has been read.
func wholeBoard(t *testing.T, f *fake, live *dashboard.Live) string {
	t.Helper()
	page := site(t, f, live) + "/p/shop"
	_, body := get(t, page)
	for strings.Contains(body, "The backlog is being read.") {
		_, body = get(t, page)
	}
	return body
}

// The board shows no counts before the backlog has been read.
func TestBoardUnread(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	f.unread = make(chan struct{})
	t.Cleanup(func() { close(f.unread) }) // before the server closes, which waits for the read
	_, body := get(t, site(t, f, live)+"/p/shop")
	before, columns, _ := strings.Cut(body, `<div class="board">`)
	if !strings.Contains(before, "The backlog is being read.") || strings.Contains(columns, "None.") || strings.Contains(columns, `class="number"`) {
		t.Errorf("got\n%s", body)
	}
}

// Even without scripts the board shows how long a run has been active.
func TestBoardElapsed(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	body := wholeBoard(t, f, live)
	if found := regexp.MustCompile(`data-since="[^"]+">\d+ min \d\d s<`).FindStringSubmatch(body); found == nil {
		t.Errorf("the board does not say how long a run has been on:\n%s", body)
	}
}

// A run that moved the base is shown as merged.
func TestBoardMerged(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	r := journal.Record{Run: journal.Run{ID: "m-1", Kind: journal.KindIssue, Key: "m-key", Title: "By hand", Started: time.Now()}}
	r.Settings.Publish, r.Settings.Attended = journal.PublishMerge, true
	r.Ended, r.Verdict.Outcome = time.Now(), journal.Succeeded
	if err := f.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	body := wholeBoard(t, f, live)
	_, row, _ := strings.Cut(body, `href="/p/shop/runs/m-1"`)
	row, _, _ = strings.Cut(row, "</tr>")
	_, page := get(t, site(t, f, live)+"/p/shop/runs/m-1")
	for _, text := range []string{row, page} {
		if !strings.Contains(text, `<span class="badge ok">merged</span>`) {
			t.Errorf("not merged:\n%s", text)
		}
	}
	if strings.Count(body, `>merged</span>`) != 1 {
		t.Error("others are merged, too")
	}
}

// An issue that does not qualify and was never worked has no retry button.
func TestBoardRetry(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	f.board.Skipped = []backlog.Skipped{
		{Issue: tracker.Issue{Key: "new", Title: "New"}, Skip: journal.Skip{Code: journal.SkipUnfit, Unfit: tracker.Unfit{Code: tracker.UnfitLacks, Detail: "no-human"}}},
		{Issue: tracker.Issue{Key: "stopped", Title: "Stopped"}, Skip: journal.Skip{Code: journal.SkipUnfit, Unfit: tracker.Unfit{Code: tracker.UnfitLacks, Detail: "no-human"}, Run: "r-1"}},
		{Issue: tracker.Issue{Key: "human", Title: "Human"}, Skip: journal.Skip{Code: journal.SkipHuman}},
	}
	body := wholeBoard(t, f, live)
	for key, want := range map[string]bool{"new": false, "stopped": true, "human": true} {
		if got := strings.Contains(body, "/p/shop/issues/"+key+"/retry"); got != want {
			t.Errorf("%s may be tried again: %t", key, got)
		}
	}
}

// After a retry the board shows for which parked agent the issue waits.
func TestBoardNamesParkedAgents(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	if body := wholeBoard(t, f, live); strings.Contains(body, "parked") {
		t.Errorf("nothing is parked:\n%s", body)
	}
	f.parked = []journal.Parked{{Agent: "codex", Class: agents.RateLimit, Until: time.Now().Add(time.Hour)}}
	if body := wholeBoard(t, f, live); !strings.Contains(body, "Agent codex is parked until ") || !strings.Contains(body, "wait for it") {
		t.Errorf("the parked agent is not named:\n%s", body)
	}
}

// A page that names a parked agent is notified when the agent is back, even if nothing else has changed.
func TestBoardHearsThatAnAgentIsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, live := shop(t)
		f.parked = []journal.Parked{{Agent: "codex", Class: agents.RateLimit, Until: time.Now().Add(time.Minute)}}
		pages, err := dashboard.New(dashboard.Config{Service: f, Live: live})
		if err != nil {
			t.Fatal(err)
		}
		hear := func() string {
			t.Helper()
			got, err := pages.Changes(t.Context(), "shop")
			synctest.Wait() // completes the read that it started
			if err == nil {
				got, err = pages.Changes(t.Context(), "shop")
			}
			if err != nil {
				t.Fatal(err)
			}
			return string(got)
		}
		parked := hear()
		time.Sleep(time.Minute) //nolint:forbidigo // of the bubble's clock
		if still := hear(); still != parked {
			t.Errorf("nothing has changed: %s, %s", parked, still)
		}
		f.parked = nil
		time.Sleep(time.Minute) //nolint:forbidigo // of the bubble's clock
		if back := hear(); back == parked {
			t.Errorf("the page hears nothing: %s", back)
		}
	})
}

// Runs of other machines are listed among the running ones.
func TestBoardElsewhere(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	far := journal.Record{Run: journal.Run{ID: "far-1", Key: "412-far", Title: "Far away", Host: "m2", Started: time.Now()}, State: journal.State{Stage: journal.StageVerify}}
	f.status.Elsewhere = []journal.Record{far}
	f.board.Skipped = append(f.board.Skipped, backlog.Skipped{Issue: tracker.Issue{Key: "412-far", Title: "Far away"}, Skip: journal.Skip{Code: journal.SkipClaimed, Host: "m2"}})
	for path, want := range map[string]string{"/p/shop": "verifying, on m2", "/": "1 on other machines"} {
		_, body := get(t, site(t, f, live)+path)
		if !strings.Contains(body, want) || strings.Count(body, ">Far away<") != 1 {
			t.Errorf("%s: no %q, or not once, in\n%s", path, want, body)
		}
	}
	far.Facts.Usage = agents.Usage{Input: 9, CostUSD: 7.25}
	if err := f.Save(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	_, body := get(t, site(t, f, live)+"/p/shop/runs/far-1")
	for _, want := range []string{"There is no log here. The run was on m2.", "<dt>Cost</dt><dd>$7.25</dd>"} {
		if !strings.Contains(body, want) {
			t.Errorf("the run's page lacks %q:\n%s", want, body)
		}
	}
}

// A board older than the end of a run shows its age, and of that run's issue only that the run has ended.
func TestBoardOld(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	claimed := tracker.Issue{Key: "412", Title: "Cart total"}
	f.board.Skipped = append(f.board.Skipped, backlog.Skipped{Issue: claimed, Skip: journal.Skip{Code: journal.SkipClaimed, Run: "r-412"}})
	f.board.At = time.Now().Add(-68 * time.Second)
	page := site(t, f, live) + "/p/shop"
	for body := "The backlog is being read."; strings.Contains(body, "The backlog is being read."); {
		_, body = get(t, page)
	}
	r := journal.Record{Run: journal.Run{ID: "r-412", Kind: journal.KindIssue, Key: "412", Title: "Cart total", Started: time.Now().Add(-time.Hour)}}
	r.Ended, r.Verdict.Outcome = time.Now(), journal.Succeeded
	if err := f.Save(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.status.Running = f.status.Running[1:]
	f.mu.Unlock()
	f.unread = make(chan struct{})
	_, body := get(t, page)
	for _, want := range []string{"The backlog is being read again. This page shows it as of ", "1 min ", " s ago", "its run has ended (succeeded)", `http-equiv="refresh"`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(body, "claimed by") && strings.Contains(body, "r-412)") || t.Failed() {
		t.Errorf("the board is\n%s", body)
	}
	f.mu.Lock()
	f.board.Skipped, f.board.At = nil, time.Now()
	f.mu.Unlock()
	close(f.unread)
	if _, body = get(t, page); strings.Contains(body, "being read") || strings.Contains(body, "its run has ended") {
		t.Errorf("after it was read again:\n%s", body)
	}
}

// A page whose backlog cannot be read does not reload repeatedly.
func TestBoardUnreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, live := shop(t)
		f.board.Problem, f.board.At = "list issues: the forge is away", time.Now().Add(-time.Hour)
		pages, err := dashboard.New(dashboard.Config{Service: f, Live: live})
		if err != nil {
			t.Fatal(err)
		}
		hears := map[string]bool{}
		for second := range 100 {
			got, err := pages.Changes(t.Context(), "shop")
			if err != nil {
				t.Fatal(err)
			}
			if second > 0 { // nothing has been read before that
				hears[string(got)] = true
			}
			time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
		}
		if len(hears) != 1 {
			t.Errorf("the page hears %v", hears)
		}
	})
}

// Durations are rounded, not cut: all places show the same one.
func TestDurationsAreRounded(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0 s", 1260 * time.Millisecond: "1.3 s", 43900 * time.Millisecond: "44 s", 59600 * time.Millisecond: "1 min 00 s",
		time.Hour - time.Millisecond: "1 h 00 min",
	} {
		if got := dashboard.Took(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}

// The overview shows the limit of all projects together, and which project waits for a slot.
func TestSharedSlotsAreShown(t *testing.T) {
	t.Parallel()
	f, live := shop(t)
	f.status.Running, f.status.Elsewhere, f.status.Parallel, f.status.Shared, f.status.Starved = nil, nil, 4, 3, true
	if _, body := get(t, site(t, f, live)+"/"); !strings.Contains(body, "<dd>0 of 4, at most 3 in all projects: waits for a slot</dd>") {
		t.Errorf("got\n%s", body)
	}
}
