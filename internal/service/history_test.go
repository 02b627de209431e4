package service_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ralph-pool/ralph/internal/service"
	"github.com/ralph-pool/ralph/internal/service/servicetest"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree/git"
)

// The diff of another machine's run is shown after its branch is fetched.
func TestDiffElsewhere(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 0)
	far := t.TempDir()
	out := func(dir string, args ...string) string {
		t.Helper()
		text, err := git.New(dir).Output(t.Context(), args...)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(text)
	}
	out(far, "clone", "-q", p.Repo(), ".")
	if err := os.WriteFile(filepath.Join(far, "new"), []byte("far\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out(far, "add", "new")
	out(far, "commit", "-q", "-m", "far")
	there := false
	p.Fetch = func(_ context.Context, branch string) error {
		if there {
			out(p.Repo(), "fetch", "-q", far, branch)
		}
		return nil
	}
	s, _ := start(t, 0, p)
	until(t, s, "p", in(service.Waiting))
	r := journal.Record{Run: journal.Run{ID: "far", Branch: "main", Base: "main"}, State: journal.State{Tip: out(far, "rev-parse", "HEAD")}}
	if _, _, _, err := s.Diff(t.Context(), "p", r, 1000); !errors.Is(err, service.ErrElsewhere) {
		t.Errorf("what nobody has: %v", err)
	}
	there = true
	if text, _, _, err := s.Diff(t.Context(), "p", r, 1000); err != nil || !strings.Contains(string(text), "+far") {
		t.Errorf("%v\n%s", err, text)
	}
	if err := os.WriteFile(filepath.Join(p.Repo(), "mine"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out(p.Repo(), "stash", "push", "-q", "--include-untracked")
	for _, name := range []string{"stash@{0}", "stash^3", "HEAD", "-h"} { // only a commit id is accepted
		r.Tip = name
		if text, _, _, err := s.Diff(t.Context(), "p", r, 1000); !errors.Is(err, service.ErrNoCommits) {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// The diff of a run is shown, and feedback on it makes the issue be worked again.
func TestDiffAndFix(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	p.Set("agent", `cat > told; `+servicetest.Commits)
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventEnded, 1)
	diff := func(limit int) (string, bool) {
		t.Helper()
		runs, err := s.Runs(t.Context(), "p", journal.Query{Limit: 1})
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err)
		}
		text, _, cut, err := s.Diff(t.Context(), "p", runs[0], limit)
		if err != nil {
			t.Fatal(err)
		}
		return string(text), cut
	}
	if text, cut := diff(1 << 20); cut || !strings.Contains(text, "+++ b/task-1.txt\n@@ -0,0 +1 @@\n+work\n") {
		t.Errorf("cut %t\n%s", cut, text)
	}
	if text, cut := diff(100); !cut || len(text) != 100 {
		t.Errorf("of a limit of 100: cut %t, %d bytes", cut, len(text))
	}
	for _, text := range []string{"", " \n", "\u200b"} {
		if err := s.Fix(t.Context(), "p", "task-1", "Ada", text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	if err := s.Fix(t.Context(), "p", "task-1", "Ada", "Use a table,\n/ralph stop and no loop"); err != nil {
		t.Fatal(err)
	}
	w.Until(t, "p", journal.EventEnded, 2)
	if text, _ := diff(1 << 20); !strings.Contains(text, "Use a table,") || !strings.Contains(text, "and no loop") {
		t.Errorf("the agent was not told\n%s", text)
	}
	totals, err := s.Totals(t.Context(), "p", time.Time{})
	runs := 0
	for _, total := range totals {
		runs += total.Runs
	}
	if err != nil || runs != 2 {
		t.Errorf("totals %+v, %v", totals, err)
	}
	if _, _, _, err := s.Diff(t.Context(), "p", journal.Record{}, 1); !errors.Is(err, service.ErrNoCommits) {
		t.Errorf("without commits: %v", err)
	}
	if _, _, _, err := s.Diff(t.Context(), "none", journal.Record{}, 1); !errors.Is(err, service.ErrNoProject) {
		t.Errorf("of no project: %v", err)
	}
}

// Many files and large ones do not push the code out of a diff, and each is counted.
func TestDiffShowsCodeFirst(t *testing.T) {
	t.Parallel()
	p := servicetest.New(t, "p", 1)
	p.Set("agent", `yes | head -c 2000000 >a_big.txt; yes | head -c 2000000 >b_big.py; mkdir -p d; for n in $(seq 300); do echo "$n" >"d/$n.txt"; done
printf 'UTF\0\n' >'z[1]*
.sql'; echo evil >zz_evil.py; printf '#!/bin/sh\n' >zz; chmod +x zz; `+servicetest.Commits)
	s, w := start(t, 0, p)
	w.Until(t, "p", journal.EventEnded, 1)
	runs, err := s.Runs(t.Context(), "p", journal.Query{Limit: 1})
	if err != nil || len(runs) != 1 {
		t.Fatal(runs, err)
	}
	text, files, cut, err := s.Diff(t.Context(), "p", runs[0], 1<<20)
	const first = "-\t-\t\"z[1]*\\n.sql\"\n1\t0\tzz\n1\t0\tzz_evil.py\n1\t0\td/1.txt\n"
	if err != nil || !cut || files != 306 || !strings.HasPrefix(string(text), first) {
		t.Errorf("%v, cut %t, %d files\n%.300s", err, cut, files, text)
	}
	for _, want := range []string{"\ttask-1.txt\n1000000\t0\tb_big.py\n1000000\t0\ta_big.txt\n", "\n+evil\n", "+++ b/d/300.txt\n", "+++ b/b_big.py\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q", want)
		}
	}
	if text, files, _, err = s.Diff(t.Context(), "p", runs[0], 4000); err != nil || files != 306 || !strings.Contains(string(text), "\n+evil\n") {
		t.Errorf("%v, %d files\n%s", err, files, text)
	}
}
