package local

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/trackertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	t.Parallel()
	trackertest.Run(t, trackertest.Harness{New: seeded})
}

// TestFilters: assignees are a text or a list, under either key; case does not matter.
func TestFilters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, front := range map[string]string{
		"a": "assignee: grace\nmilestone: v1", "b": "assignees: [bob, Grace]\nmilestone: 'V1'",
		"c": "assignee: bob, grace\nmilestone: 2", "d": "author: [\n",
	} {
		write(t, dir, name+".md", "---\n"+front+"\n---\n")
	}
	for want, c := range map[string]Config{
		"a b c": {Assignee: "GRACE"},
		"b c":   {Assignee: "bob"},
		"a b":   {Milestone: "v1"},
		"c":     {Milestone: "2"},
		"b":     {Milestone: "v1", Assignee: "bob"},
		"":      {Milestone: "v3"},
	} {
		c.Dir = dir
		tr, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		l, err := tr.List(t.Context(), tracker.Query{})
		var keys []string
		for _, i := range l.Issues {
			keys = append(keys, i.Key)
		}
		if got := strings.Join(keys, " "); err != nil || got != want || len(l.Problems) != 1 {
			t.Errorf("%+v lists %q, %v, %v; want %q", c, got, l.Problems, err, want)
		}
	}
}

// seeded writes each issue in one of several common styles.
func seeded(t *testing.T, seeds []trackertest.Seed) trackertest.Backlog {
	dir := t.TempDir()
	b := trackertest.Backlog{Tracker: open(t, dir)}
	for n, s := range seeds {
		var front strings.Builder
		fmt.Fprintf(&front, "# an issue\ntitle: %s\n", formatItem(s.Title))
		if s.Closed {
			front.WriteString("state: 'closed' # by hand\n")
		}
		if len(s.Labels) > 0 {
			var items []string
			for _, l := range s.Labels {
				items = append(items, formatItem(l))
			}
			if n%2 == 0 {
				fmt.Fprintf(&front, "labels: [%s]\n", strings.Join(items, ", "))
			} else {
				fmt.Fprintf(&front, "labels:\n  - %s\n", strings.Join(items, "\n  - "))
			}
		}
		if s.Priority != 0 {
			fmt.Fprintf(&front, "priority: %d\n", s.Priority)
		}
		if s.Author != "" {
			fmt.Fprintf(&front, "author: %s\n", s.Author)
		}
		if !s.Created.IsZero() {
			fmt.Fprintf(&front, "created: %s\n", s.Created.Format(time.RFC3339))
		}
		if len(s.BlockedBy) > 0 {
			front.WriteString("blocked_by:\n")
			for _, i := range s.BlockedBy {
				fmt.Fprintf(&front, "- %s.md\n", seeds[i].Name)
			}
		}
		write(t, dir, s.Name+".md", "---\n"+front.String()+"---\n\n"+s.Body)
		b.Keys = append(b.Keys, tracker.Key(s.Name))
	}
	b.Reports = func(t *testing.T, key string) []string { return reports(t, filepath.Join(dir, key+".md")) }
	b.Version = func(t *testing.T, key string) string {
		info, err := os.Stat(filepath.Join(dir, key+".md"))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(info.ModTime(), info.Sys().(*syscall.Stat_t).Ino)
	}
	return b
}

// reports parses the reports without the code under test.
func reports(t *testing.T, path string) []string {
	var all []string
	_, below, _ := strings.Cut(read(t, path), "\n<!-- ralph:reports")
	parts := strings.Split(below, "<!-- ralph:report ")
	for _, p := range parts[1:] {
		run, rest, _ := strings.Cut(p, " -->\n")
		text, _, ok := strings.Cut(rest, "\n<!-- ralph:end "+run+" -->\n")
		if !ok {
			t.Errorf("report of %s has no end: %q", run, rest)
		}
		all = append(all, text)
	}
	return all
}

func open(t *testing.T, dir string) *Tracker {
	t.Helper()
	tr, err := New(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
