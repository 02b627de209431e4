package diff

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Undoing a change restores the file, whatever the change was; links in the commit are not followed.
func TestFilesAndCommit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sh := func(script string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	sh(`git init -q -b main .; for f in changed gone moved kept; do seq 1 20 | sed "s/^/$f /" > $f; done; mkdir d; echo x > d/x
		printf '#!/bin/sh' > run; chmod +x run; git add .; git commit -qm base`)
	base := sh("git rev-parse HEAD")
	outside := t.TempDir()
	sh(`echo more >> changed; git rm -q gone; git mv moved 'new name'; echo y > added; rm -r d; ln -s ` + outside + ` d; chmod -x run; git add -A; git commit -qm tip`)
	tip := sh("git rev-parse HEAD")

	g := git.New(dir)
	files, err := Files(t.Context(), g, base, tip)
	if err != nil {
		t.Fatal(err)
	}
	var entries []Entry
	var undo []Edit
	what := map[string]string{}
	for _, f := range files {
		entries = append(entries, f.Old, f.New)
		undo = append(undo, f.Undo()...)
		switch {
		case f.OldPath != "":
			what[f.Path] = "from " + f.OldPath
		case !f.Old.Exists():
			what[f.Path] = "added"
		case !f.New.Exists():
			what[f.Path] = "removed"
		default:
			what[f.Path] = "changed"
		}
	}
	for path, want := range map[string]string{
		"changed": "changed", "gone": "removed", "new name": "from moved", "added": "added", "d": "added", "d/x": "removed", "run": "changed",
	} {
		if what[path] != want {
			t.Errorf("%s is %q, want %q", path, what[path], want)
		}
	}
	texts, err := Texts(t.Context(), g, entries, Limit{10, 1000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Texts(t.Context(), g, entries, Limit{10, 20}); !errors.Is(err, ErrTooMuch) {
		t.Errorf("too much: %v", err)
	}
	for _, f := range files {
		if f.Path == "changed" && string(texts[f.Old.ID]) != "changed 1\nc" {
			t.Errorf("text %q", texts[f.Old.ID])
		}
		if f.Path == "added" && string(texts[f.New.ID]) != "y\n" {
			t.Errorf("text %q", texts[f.New.ID])
		}
	}
	undone, err := Commit(t.Context(), g, tip, undo, "as before")
	if err != nil {
		t.Fatal(err)
	}
	if diff := sh("git diff --raw " + base + " " + undone); diff != "" {
		t.Errorf("not as before:\n%s", diff)
	}
	planted, err := Commit(t.Context(), g, tip, []Edit{{Path: "d/canary", Content: []byte("c")}, {Path: "new name"}}, "planted")
	if err != nil {
		t.Fatal(err)
	}
	if got := sh("git show " + planted + ":d/canary; git ls-tree -r --name-only " + planted); got != "cadded\nchanged\nd/canary\nkept\nrun" {
		t.Errorf("planted: %q", got)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("written outside: %v, %v", left, err)
	}
	if got := sh("git status --porcelain"); got != "" {
		t.Errorf("the checkout has changed: %s", got)
	}
	if _, err := os.Stat(filepath.Join(dir, ".git", "index.lock")); err == nil {
		t.Error("a lock is left")
	}
}
