package pool_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// A commit that a person has removed from the base does not come back with a merge.
func TestMergeLeavesOutWhatTheBaseHasLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		runs int
		late bool // the base has gone on, and loses its commits after the last run
	}{{1, false}, {2, false}, {2, true}} {
		runs := c.runs
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; echo a >> a.txt; git add a.txt; git commit -qm work`+done)
			f.write("unwanted", "x\n")
			f.commit("unwanted")
			f.issue("a")
			f.one()
			lose := func() { f.git(f.repo, "reset", "-q", "--hard", ":/init") }
			if c.late {
				f.commit2()
			} else {
				lose()
			}
			if runs == 2 {
				f.write(filepath.Join(".ralph", "backlog", "a.md"), "---\ntitle: Do a\nlabels: [no-human]\n---\nOnce more.\n")
				f.one()
			}
			lose()
			r, err := f.pool().Merge(t.Context(), "a")
			if err != nil || r.Record.Verdict.Outcome != journal.Succeeded || r.Record.Commits != runs {
				t.Fatalf("%+v, %d commits, %v", r.Record.Verdict, r.Record.Commits, err)
			}
			if got := f.git(f.repo, "log", "--format=%s", "main"); strings.Contains(got, "unwanted") || strings.Count(got, "work") != runs || f.exists("unwanted") {
				t.Errorf("main:\n%s", got)
			}
			f.clean()
		})
	}
}

// Merge commits on what the base has lost are for a person at once: more attempts of the agent would meet the same conflict.
func TestLostBaseBelowMergeIsHandedOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `cat >/dev/null; git switch -qc side; echo s > s; git add s; git commit -qm side; git switch -q ralph/a
		echo m > m; git add m; git commit -qm m; git merge -q --no-ff --no-edit side`+done)
	f.Config.Run.Publish = journal.PublishMerge
	f.write("unwanted", "x\n")
	f.commit("unwanted")
	f.issue("a")
	f.onStage(journal.StageVerify, func(journal.Record) { f.git(f.repo, "reset", "-q", "--hard", "HEAD~1") })
	if r := f.one(); !r.Verdict.Final || r.Verdict.Reason.Code != journal.ReasonConflict || len(r.Facts.Solve) != 1 ||
		!strings.HasSuffix(r.Verdict.Reason.Detail, strings.TrimPrefix(r.Facts.Solve[0], "git ")) || !strings.Contains(f.text("a"), r.Facts.Solve[0]) {
		t.Errorf("%+v, %q\n%s", r.Verdict, r.Facts.Solve, f.text("a"))
	}
	f.clean()
}
