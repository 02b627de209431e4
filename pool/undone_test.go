package pool_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// undoing replaces git for a fixture. After the returned function is called, a user switches to the base while it moves, and commits
// the old files at once.
func undoing(t *testing.T) (f *fixture, begin func()) {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	install := func(script string) {
		if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	install("exec " + program + ` "$@"` + "\n")
	f = newFixture(t, commits)
	return f, func() {
		f.git(f.repo, "switch", "-q", "-c", "feature")
		f.Config.Run.Base = "main"
		// One git moves refs for a while, so the user acts before each of its answers.
		install(fmt.Sprintf(`user() { env -i PATH=/nowhere GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 %[1]s -C '%[2]s' -c user.name=a -c user.email=a@b "$@" </dev/null; }
act() {
	if [ "$(user rev-parse main)" != %[3]s ] && [ "$(user symbolic-ref HEAD)" = refs/heads/feature ]; then
		user symbolic-ref HEAD refs/heads/main && echo mine >'%[2]s/own' && user add own && user commit -qm mine
	fi
}
case "$*" in *update-ref*)
	%[1]s "$@" | while IFS= read -r line; do act; printf '%%s\n' "$line"; done
	exit
esac
exec %[1]s "$@"
`, program, f.repo, f.git(f.repo, "rev-parse", "main")))
	}
}

// leftUndone checks that the run has failed, and that its issue is open for a person.
func (f *fixture) leftUndone(key string, r journal.Record) {
	f.t.Helper()
	if r.Verdict.Outcome != journal.Failed || !r.Verdict.Final || r.Verdict.Reason.Code != journal.ReasonUndone {
		f.t.Errorf("%+v, %q", r.Verdict, r.Warnings)
	}
	if files := f.git(f.repo, "ls-tree", "--name-only", "main"); strings.Contains(files, key+".txt") || !strings.Contains(files, "own") {
		f.t.Fatalf("the user has not undone the merge: %s", files)
	}
	text := f.text(key)
	if l := f.labels(key); strings.Contains(text, "state: closed") || !strings.Contains(l, "needs-human") || !strings.Contains(text, "undoes the merge") {
		f.t.Errorf("labels %s\n%s", l, text)
	}
	if !strings.Contains(text, "\nNext: bring back what is missing") {
		f.t.Error(text)
	}
}

// A user who switches to the base while it moves, and commits the old files at once, undoes the merge. The issue stays open for a
// person. Not parallel: it replaces git.
func TestMergeUndoneByTheUser(t *testing.T) {
	f, begin := undoing(t)
	f.issue("a")
	begin()
	f.Config.Run.Publish = journal.PublishMerge
	f.leftUndone("a", f.one())
}

// The same for branches that are merged together.
func TestMergeAllUndoneByTheUser(t *testing.T) {
	f, begin := undoing(t)
	f.branches("true", "a", "b")
	begin()
	results := f.pool().MergeAll(t.Context(), []string{"a", "b"})
	if len(results) != 2 {
		t.Fatalf("%+v", results)
	}
	for _, r := range results {
		f.leftUndone(r.Issue.Key, r.Record)
	}
}
