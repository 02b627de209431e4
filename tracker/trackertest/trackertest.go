// Package trackertest is the conformance suite for trackers: it tests the behaviour that package pool relies on. Every
// implementation of [tracker.Tracker], also a read-only one, calls [Run] from a test of its own. Tests of capabilities that a
// tracker lacks are skipped by name. A tracker of a forge, which also hosts the code, also calls [RunForge]. The tests
// of one suite run in parallel.
package trackertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/ralph-pool/ralph/tracker"
)

// Seed is an issue that a harness creates in a new backlog.
type Seed struct {
	Name      string // a hint for trackers where people name issues
	Title     string
	Body      string
	Author    string
	Labels    []string
	Closed    bool
	Priority  int   // ignored with Harness.NoPriority
	BlockedBy []int // indexes of earlier seeds; ignored with Harness.NoBlockers
	Created   time.Time
	Assignees []string // Assignees and Milestone only on forges
	Milestone string
}

// Backlog is a tracker with seeded issues. A read-only tracker needs neither Reports nor Version.
type Backlog struct {
	Tracker tracker.Tracker
	Keys    []string // keys of the seeds, in their order
	// Reports returns the texts of ralph's reports on the issue, oldest first, as a person sees them.
	Reports func(t *testing.T, key string) []string
	// Version identifies the stored state of an issue; equal values mean that nothing was written.
	Version func(t *testing.T, key string) string
	Site    *Site // for a tracker.Commander
	// Turns are, for a tracker.Commander, the events that can happen to an issue, without those that its forge does not have.
	Turns map[Turn]func(key string)
}

// Harness adapts one tracker to the suite and declares its capabilities.
type Harness struct {
	// New makes a new backlog, which the test removes at its end. New must be safe for concurrent use.
	New        func(t *testing.T, seeds []Seed) Backlog
	Commands   bool // the tracker is a tracker.Commander; its issues are numbered from 1
	ReadOnly   bool // the tracker embeds tracker.ReadOnly
	NoPriority bool // the tracker has no priorities
	NoBlockers bool // the tracker has no blockers
	NoAuthor   bool // the tracker cannot be seeded with authors and dates
	Many       int  // number of issues in the test of all pages; default 250
	// WithToken makes a tracker for any backlog that gets its tokens from the source; nil: the tracker needs none.
	WithToken func(t *testing.T, source tracker.TokenSource) tracker.Tracker
}

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	for _, test := range []struct {
		name  string
		lacks string // missing capability, for which the test is skipped; empty: none
		run   func(*testing.T, Harness)
	}{
		{"ListFilters", "", listFilters},
		{"ListFields", "", listFields},
		{"ListPriority", missingCapability(h.NoPriority, "priorities"), listPriority},
		{"ListAuthor", missingCapability(h.NoAuthor, "authors and dates that can be seeded"), listAuthor},
		{"ListAllPages", "", listAllPages},
		{"GetFollowsState", "", getFollowsState},
		{"UnknownKey", "", unknownKey},
		{"HostileText", "", hostileText},
		{"Blockers", missingCapability(h.NoBlockers, "blockers"), blockers},
		{"Cancelled", "", cancelled},
		{"Turns", missingCapability(!h.Commands, "project on a forge"), turns},
		{"WithoutToken", missingCapability(h.WithToken == nil, "tokens"), withoutToken},
		{"ReadOnlyRefuses", missingCapability(!h.ReadOnly, "refusal of writes"), readOnlyRefuses},
		{"ReportReplaced", missingCapability(h.ReadOnly, "writes"), reportReplaced},
		{"ReportNotInBody", missingCapability(h.ReadOnly, "writes"), reportNotInBody},
		{"WritesKeepText", missingCapability(h.ReadOnly, "writes"), writesKeepText},
		{"ChangeIdempotent", missingCapability(h.ReadOnly, "writes"), changeIdempotent},
		{"ChangeIgnoreCase", missingCapability(h.ReadOnly, "writes"), changeIgnoreCase},
		{"Close", missingCapability(h.ReadOnly, "writes"), closeIssue},
		{"BlockerCloses", cmp.Or(missingCapability(h.ReadOnly, "writes"), missingCapability(h.NoBlockers, "blockers")), blockerCloses},
		{"CommandsFound", missingCapability(!h.Commands, "commands"), commandsFound},
		{"CommandsAnswered", missingCapability(!h.Commands, "commands"), commandsAnswered},
		{"RepliedElsewhere", missingCapability(!h.Commands, "commands"), replyNotOnForge},
		{"ReviewThreads", missingCapability(!h.Commands, "commands"), reviewThreads},
		{"Concurrent", missingCapability(h.ReadOnly, "writes"), concurrent},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.lacks != "" {
				t.Skip("the tracker has no " + test.lacks)
			}
			test.run(t, h)
		})
	}
}

// missingCapability returns the capability if it is missing, otherwise "".
func missingCapability(missing bool, capability string) string {
	if missing {
		return capability
	}
	return ""
}

func list(t *testing.T, b Backlog, labels ...string) []tracker.Issue {
	t.Helper()
	l, err := b.Tracker.List(t.Context(), tracker.Query{Labels: labels})
	if err != nil {
		t.Fatalf("List(%q): %v", labels, err)
	}
	for _, p := range l.Problems {
		t.Errorf("List(%q): problem %v", labels, p)
	}
	return l.Issues
}

// matching lists, and applies the query again, since a tracker may return more issues than requested.
func matching(t *testing.T, b Backlog, labels ...string) []string {
	t.Helper()
	var keys []string
	for _, i := range list(t, b, labels...) {
		all := i.Open
		for _, l := range labels {
			all = all && i.HasLabel(l)
		}
		if all {
			keys = append(keys, i.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

func get(t *testing.T, b Backlog, key string) tracker.Issue {
	t.Helper()
	i, err := b.Tracker.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get(%s): %v", key, err)
	}
	return i
}

func change(t *testing.T, b Backlog, key string, c tracker.Change) {
	t.Helper()
	if err := b.Tracker.Change(t.Context(), key, c); err != nil {
		t.Fatalf("Change(%s, %+v): %v", key, c, err)
	}
}

func report(t *testing.T, b Backlog, key string, r tracker.Report) {
	t.Helper()
	if err := b.Tracker.Report(t.Context(), key, r); err != nil {
		t.Fatalf("Report(%s, %s): %v", key, r.Run, err)
	}
}

func sorted(keys ...string) []string {
	slices.Sort(keys)
	return keys
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func listFilters(t *testing.T, h Harness) {
	b := h.New(t, []Seed{
		{Name: "one", Title: "One", Labels: []string{"no-human", "bug"}},
		{Name: "two", Title: "Two", Labels: []string{"No-Human"}},
		{Name: "three", Title: "Three"},
		{Name: "four", Title: "Four", Labels: []string{"no-human"}, Closed: true},
	})
	k := b.Keys
	equal(t, "every open issue", matching(t, b), sorted(k[0], k[1], k[2]))
	equal(t, "by label, whatever its case", matching(t, b, "NO-human"), sorted(k[0], k[1]))
	equal(t, "by all labels", matching(t, b, "bug", "no-human"), sorted(k[0]))
	equal(t, "by a label nothing has", len(matching(t, b, "nothing")), 0)
}

// readBothWays returns the only issue of a new backlog, as read by List and by Get.
func readBothWays(t *testing.T, h Harness, seed Seed) (Backlog, map[string]tracker.Issue) {
	t.Helper()
	b := h.New(t, []Seed{seed})
	return b, map[string]tracker.Issue{"List": list(t, b)[0], "Get": get(t, b, b.Keys[0])}
}

func listFields(t *testing.T, h Harness) {
	b, issues := readBothWays(t, h, Seed{
		Name: "login", Title: "Fix the login", Body: "It is slow.\n\nVery.", Labels: []string{"no-human", "type: bug"},
	})
	for from, i := range issues {
		equal(t, from+" key", i.Key, b.Keys[0])
		equal(t, from+" safe key", tracker.Key(i.Key), i.Key)
		equal(t, from+" title", i.Title, "Fix the login")
		equal(t, from+" body", i.Body, "It is slow.\n\nVery.")
		equal(t, from+" labels", sorted(i.Labels...), []string{"no-human", "type: bug"})
		equal(t, from+" open", i.Open, true)
		if i.ID == "" || i.URL == "" {
			t.Errorf("%s: ID %q, URL %q: want both", from, i.ID, i.URL)
		}
	}
}

func listPriority(t *testing.T, h Harness) {
	_, issues := readBothWays(t, h, Seed{Name: "login", Title: "Fix", Labels: []string{"type: bug"}, Priority: 2})
	for from, i := range issues {
		equal(t, from+" priority", i.Priority, 2)
	}
}

func listAuthor(t *testing.T, h Harness) {
	created := time.Date(2026, 1, 31, 12, 30, 0, 0, time.UTC)
	_, issues := readBothWays(t, h, Seed{Name: "login", Title: "Fix", Author: "ada", Created: created})
	for from, i := range issues {
		equal(t, from+" author", i.Author, "ada")
		equal(t, from+" created", i.Created.UTC(), created)
	}
}

func listAllPages(t *testing.T, h Harness) {
	seeds := make([]Seed, cmp.Or(h.Many, 250))
	for i := range seeds {
		seeds[i] = Seed{Name: fmt.Sprintf("issue-%04d", i), Title: fmt.Sprint("Issue ", i), Labels: []string{"no-human"}}
	}
	b := h.New(t, seeds)
	equal(t, "all keys", matching(t, b, "no-human"), sorted(slices.Clone(b.Keys)...))
	order := func() (keys []string) {
		for _, i := range list(t, b, "no-human") {
			keys = append(keys, i.Key)
		}
		return keys
	}
	equal(t, "order of a second listing", order(), order())
}

func getFollowsState(t *testing.T, h Harness) {
	b := h.New(t, []Seed{{Name: "closed", Title: "Closed", Closed: true}, {Name: "open", Title: "Open"}})
	equal(t, "closed issue is open", get(t, b, b.Keys[0]).Open, false)
	equal(t, "open issue is open", get(t, b, b.Keys[1]).Open, true)
}

func unknownKey(t *testing.T, h Harness) {
	b := h.New(t, []Seed{{Name: "one", Title: "One"}})
	for _, key := range []string{"999999", "no-such-issue", ""} {
		if _, err := b.Tracker.Get(t.Context(), key); !errors.Is(err, tracker.ErrNotFound) {
			t.Errorf("Get(%q) = %v, want ErrNotFound", key, err)
		}
		if h.ReadOnly {
			continue
		}
		if err := b.Tracker.Report(t.Context(), key, tracker.Report{Run: "r", Body: "x"}); !errors.Is(err, tracker.ErrNotFound) {
			t.Errorf("Report(%q) = %v, want ErrNotFound", key, err)
		}
		if err := b.Tracker.Change(t.Context(), key, tracker.Change{Close: true}); !errors.Is(err, tracker.ErrNotFound) {
			t.Errorf("Change(%q) = %v, want ErrNotFound", key, err)
		}
	}
}

// hostileBacklog seeds issues whose text looks like syntax, and returns a check that it is unchanged.
func hostileBacklog(t *testing.T, h Harness) (Backlog, func(when string)) {
	t.Helper()
	titles := []string{
		"!`rm -rf ~` $(reboot) {{KEY}}", `"quoted" and 'quoted': # not a comment`, "- [x] & *y | z > w % @v",
		"../../etc/passwd", "naïve ☕ 漢字 \u202egnp.exe", "null", "--flag=value", "<!-- hidden --> <img src=x>",
	}
	bodies := []string{
		"---\nlabels: [injected]\nstate: closed\n---", "```\nunclosed fence", "line\r\nwindows\r\nends",
		"tab\there, \u200bzero width, \U000e0041 tag", "{{KEY}} !`id` <!-- comment -->", "  leading spaces\n\n\n\nand gaps",
		"@everyone closes #1\n/close", strings.Repeat("long ", 2000) + "end",
	}
	var seeds []Seed
	for i := range titles {
		seeds = append(seeds, Seed{Name: fmt.Sprint("hostile-", i), Title: titles[i], Body: bodies[i], Labels: []string{"no-human"}})
	}
	b := h.New(t, seeds)
	return b, func(when string) {
		t.Helper()
		for i, key := range b.Keys {
			issue := get(t, b, key)
			equal(t, when+": title", issue.Title, titles[i])
			equal(t, when+": body", issue.Body, bodies[i])
		}
	}
}

func hostileText(t *testing.T, h Harness) {
	_, check := hostileBacklog(t, h)
	check("as seeded")
}

func writesKeepText(t *testing.T, h Harness) {
	b, check := hostileBacklog(t, h)
	for _, key := range b.Keys {
		report(t, b, key, tracker.Report{Run: "run-1", Body: "Done."})
		change(t, b, key, tracker.Change{AddLabels: []string{"ralph"}, RemoveLabels: []string{"no-human"}})
	}
	check("after a report and a change")
}

// readOnlyRefuses: the tracker reports in all ways that it is read-only.
func readOnlyRefuses(t *testing.T, h Harness) {
	b := h.New(t, []Seed{{Name: "one", Title: "One", Labels: []string{"no-human"}}})
	key := b.Keys[0]
	if !tracker.IsReadOnly(b.Tracker) {
		t.Error("the tracker does not embed tracker.ReadOnly")
	}
	before := get(t, b, key)
	if err := b.Tracker.Report(t.Context(), key, tracker.Report{Run: "r", Body: "x"}); !errors.Is(err, tracker.ErrReadOnly) {
		t.Errorf("Report = %v, want ErrReadOnly", err)
	}
	if err := b.Tracker.Change(t.Context(), key, tracker.Change{Close: true}); !errors.Is(err, tracker.ErrReadOnly) {
		t.Errorf("Change = %v, want ErrReadOnly", err)
	}
	equal(t, "issue afterwards", get(t, b, key), before)
}

func reportReplaced(t *testing.T, h Harness) {
	b := h.New(t, []Seed{{Name: "one", Title: "One", Body: "Text."}})
	key := b.Keys[0]
	report(t, b, key, tracker.Report{Run: "run-1", Body: "Working."})
	report(t, b, key, tracker.Report{Run: "run-2", Body: "Another."})
	equal(t, "reports", b.Reports(t, key), []string{"Another."})
	report(t, b, key, tracker.Report{Run: "run-2", Body: "Done.\n\n- one\n- two"})
	equal(t, "reports", b.Reports(t, key), []string{"Done.\n\n- one\n- two"})
	before := b.Version(t, key)
	report(t, b, key, tracker.Report{Run: "run-2", Body: "Done.\n\n- one\n- two"})
	equal(t, "written again by the same report", b.Version(t, key), before)
}

func reportNotInBody(t *testing.T, h Harness) {
	b := h.New(t, []Seed{{Name: "one", Title: "One", Body: "Text."}, {Name: "two", Title: "Two"}})
	for n, key := range b.Keys {
		was := get(t, b, key)
		report(t, b, key, tracker.Report{Run: "run-1", Body: "# Heading of the report\n\nsecret-word"})
		is := get(t, b, key)
		equal(t, fmt.Sprint("body of issue ", n), is.Body, was.Body)
		equal(t, fmt.Sprint("title of issue ", n), is.Title, was.Title)
		for _, c := range is.Comments {
			if strings.Contains(c.Body, "secret-word") {
				t.Errorf("issue %d: ralph's report is among the comments", n)
			}
		}
	}
}

func changeIdempotent(t *testing.T, h Harness) {
	b := h.New(t, []Seed{{Name: "one", Title: "One", Labels: []string{"no-human", "bug"}}})
	key := b.Keys[0]
	c := tracker.Change{AddLabels: []string{"needs review", "type: x, y"}, RemoveLabels: []string{"no-human", "absent"}}
	change(t, b, key, c)
	equal(t, "labels", sorted(get(t, b, key).Labels...), sorted("bug", "needs review", "type: x, y"))
	before := b.Version(t, key)
	change(t, b, key, c)
	change(t, b, key, tracker.Change{})
	equal(t, "written by a change that changes nothing", b.Version(t, key), before)
}

func changeIgnoreCase(t *testing.T, h Harness) {
	b := h.New(t, []Seed{{Name: "one", Title: "One", Labels: []string{"No-Human", "Bug"}}})
	key := b.Keys[0]
	change(t, b, key, tracker.Change{AddLabels: []string{"bug"}, RemoveLabels: []string{"NO-HUMAN"}})
	equal(t, "labels", get(t, b, key).Labels, []string{"Bug"})
	change(t, b, key, tracker.Change{RemoveLabels: []string{"bug"}})
	equal(t, "number of labels", len(get(t, b, key).Labels), 0)
	change(t, b, key, tracker.Change{AddLabels: []string{"again"}})
	equal(t, "labels", get(t, b, key).Labels, []string{"again"})
}

func closeIssue(t *testing.T, h Harness) {
	b := h.New(t, []Seed{{Name: "one", Title: "One", Labels: []string{"a"}}, {Name: "two", Title: "Two"}})
	change(t, b, b.Keys[0], tracker.Change{Close: true, AddLabels: []string{"done"}})
	i := get(t, b, b.Keys[0])
	equal(t, "open", i.Open, false)
	equal(t, "labels", sorted(i.Labels...), []string{"a", "done"})
	equal(t, "listed", matching(t, b), []string{b.Keys[1]})
	before := b.Version(t, b.Keys[0])
	change(t, b, b.Keys[0], tracker.Change{Close: true})
	equal(t, "written by closing again", b.Version(t, b.Keys[0]), before)
	report(t, b, b.Keys[0], tracker.Report{Run: "run-1", Body: "Closed."})
	equal(t, "open after a report", get(t, b, b.Keys[0]).Open, false)
	change(t, b, b.Keys[0], tracker.Change{Reopen: true, RemoveLabels: []string{"done"}})
	i = get(t, b, b.Keys[0])
	equal(t, "open after it was reopened", i.Open, true)
	equal(t, "labels after it was reopened", sorted(i.Labels...), []string{"a"})
	before = b.Version(t, b.Keys[0])
	change(t, b, b.Keys[0], tracker.Change{Reopen: true})
	equal(t, "written by reopening again", b.Version(t, b.Keys[0]), before)
}

// blocked seeds an issue that is blocked by an open and by a closed one.
func blocked(t *testing.T, h Harness) (Backlog, []tracker.Blocker) {
	t.Helper()
	b := h.New(t, []Seed{
		{Name: "first", Title: "First"},
		{Name: "second", Title: "Second", Closed: true},
		{Name: "third", Title: "Third", BlockedBy: []int{0, 1}},
	})
	return b, []tracker.Blocker{{Key: b.Keys[0], Open: true}, {Key: b.Keys[1], Open: false}}
}

func blockers(t *testing.T, h Harness) {
	b, want := blocked(t, h)
	equal(t, "Get", get(t, b, b.Keys[2]).BlockedBy, want)
	for _, i := range list(t, b) {
		if i.Key == b.Keys[2] {
			equal(t, "List", i.BlockedBy, want)
		}
	}
}

func blockerCloses(t *testing.T, h Harness) {
	b, want := blocked(t, h)
	change(t, b, b.Keys[0], tracker.Change{Close: true})
	want[0].Open = false
	equal(t, "after closing the blocker", get(t, b, b.Keys[2]).BlockedBy, want)
}

// concurrent writes to two issues from many goroutines: in the end, every change and one report must be there.
func concurrent(t *testing.T, h Harness) {
	b := h.New(t, []Seed{
		{Name: "one", Title: "One", Body: "Text.", Labels: []string{"old-0", "old-1", "old-2", "old-3", "keep"}},
		{Name: "two", Title: "Two"},
	})
	var wg sync.WaitGroup
	for n := range 4 {
		for _, key := range b.Keys {
			wg.Go(func() {
				c := tracker.Change{AddLabels: []string{fmt.Sprint("new-", n)}, RemoveLabels: []string{fmt.Sprint("old-", n)}}
				if err := b.Tracker.Change(t.Context(), key, c); err != nil {
					t.Errorf("Change: %v", err)
				}
			})
			wg.Go(func() {
				for _, text := range []string{"Working.", fmt.Sprint("Done ", n)} {
					if err := b.Tracker.Report(t.Context(), key, tracker.Report{Run: fmt.Sprint("run-", n), Body: text}); err != nil {
						t.Errorf("Report: %v", err)
					}
				}
			})
		}
	}
	wg.Wait()
	labels := []string{"new-0", "new-1", "new-2", "new-3"}
	equal(t, "labels of one", sorted(get(t, b, b.Keys[0]).Labels...), sorted(append([]string{"keep"}, labels...)...))
	equal(t, "labels of two", sorted(get(t, b, b.Keys[1]).Labels...), labels)
	for _, key := range b.Keys {
		if got := b.Reports(t, key); len(got) != 1 || !strings.HasPrefix(got[0], "Done ") {
			t.Errorf("reports %q, want one that is done", got)
		}
	}
	equal(t, "body of one", get(t, b, b.Keys[0]).Body, "Text.")
}

func cancelled(t *testing.T, h Harness) {
	b := h.New(t, []Seed{{Name: "one", Title: "One"}})
	key := b.Keys[0]
	cause := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	check := func(name string, err error) {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, cause) {
			t.Errorf("%s with a cancelled context = %v, want its error or cause", name, err)
		}
	}
	_, err := b.Tracker.List(ctx, tracker.Query{})
	check("List", err)
	_, err = b.Tracker.Get(ctx, key)
	check("Get", err)
	if h.ReadOnly {
		return
	}
	before := b.Version(t, key)
	check("Report", b.Tracker.Report(ctx, key, tracker.Report{Run: "r", Body: "x"}))
	check("Change", b.Tracker.Change(ctx, key, tracker.Change{Close: true}))
	equal(t, "written with a cancelled context", b.Version(t, key), before)
}
