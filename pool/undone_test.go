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

// A user who switches to the base while it moves, and commits the old files at once, undoes the merge. The issue stays open for a
// person. Not parallel: it replaces git.
func TestMergeUndoneByTheUser(t *testing.T) {
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	f := newFixture(t, commits)
	f.issue("a")
	f.git(f.repo, "switch", "-q", "-c", "feature")
	f.Config.Run.Base, f.Config.Run.Publish = "main", journal.PublishMerge
	script := fmt.Sprintf(`#!/bin/sh
%[1]s "$@"; status=$?
user() { env -i PATH=/nowhere GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 %[1]s -C '%[2]s' -c user.name=a -c user.email=a@b "$@"; }
case "$*" in *update-ref*)
	if [ "$(user rev-parse main)" != %[3]s ] && [ "$(user symbolic-ref HEAD)" = refs/heads/feature ]; then
		user symbolic-ref HEAD refs/heads/main && echo mine >'%[2]s/own' && user add own && user commit -qm mine
	fi
esac
exit $status
`, program, f.repo, f.git(f.repo, "rev-parse", "main"))
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	r := f.one()
	if r.Verdict.Outcome != journal.Failed || !r.Verdict.Final || r.Verdict.Reason.Code != journal.ReasonUndone {
		t.Errorf("%+v, %q", r.Verdict, r.Warnings)
	}
	if files := f.git(f.repo, "ls-tree", "--name-only", "main"); strings.Contains(files, "a.txt") || !strings.Contains(files, "own") {
		t.Fatalf("the user has not undone the merge: %s", files)
	}
	text := f.text("a")
	if l := f.labels("a"); strings.Contains(text, "state: closed") || !strings.Contains(l, "needs-human") || !strings.Contains(text, "undoes the merge") {
		t.Errorf("labels %s\n%s", l, text)
	}
	if !strings.Contains(text, "\nNext: bring back what is missing") {
		t.Error(text)
	}
}
