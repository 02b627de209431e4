package e2e

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// age makes the lock files in the clones an hour older, because no process holds them any more.
func (k *soak) age(t *testing.T) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for _, r := range k.clones {
		for _, path := range files(t, filepath.Join(string(r), ".git"), "*.lock") {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// files lists the files and links below dir whose names match.
func files(t *testing.T, dir, pattern string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if ok, _ := filepath.Match(pattern, filepath.Base(path)); ok && err == nil && !d.IsDir() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// check checks the results when nothing is left to do, without ralph.
func (k *soak) check(t *testing.T) {
	t.Helper()
	for _, key := range k.keys {
		k.checkIssue(t, key)
	}
	k.checkCommits(t)
	if beside := files(t, k.scene.dir, "alone-*"); len(beside) > len(k.keys) {
		t.Errorf("agents of unknown issues: %q", beside)
	} else {
		for _, path := range beside {
			if text := k.read(filepath.Base(path)); text != "" {
				t.Errorf("two agents at the same time: %s", text)
			}
		}
	}
	k.checkLeftovers(t)
	for _, r := range append(slices.Clone(k.clones), k.remote) {
		for _, args := range [][]string{{"fsck", "--connectivity-only", "--no-dangling"}, {"gc", "--quiet", "--prune=now"}, {"fsck", "--no-dangling"}} {
			if out, err := r.try(args...); err != nil || out != "" {
				t.Errorf("%s: git %q: %v\n%s", r, args, err, out)
			}
		}
	}
}

// checkIssue checks that the issue has one outcome, one report of it, and one commit of the agent.
func (k *soak) checkIssue(t *testing.T, key string) {
	t.Helper()
	var claim struct {
		Expires string
		Record  struct {
			Outcome  string
			Tip      string
			Finished bool
		}
	}
	text := k.remote.git(t, "for-each-ref", "--format=%(contents:body)", "refs/ralph/claims/"+key)
	if err := json.Unmarshal([]byte(text), &claim); err != nil || claim.Record.Outcome != "succeeded" || !claim.Record.Finished || claim.Expires != "" {
		t.Errorf("%s: the record is %s, %v", key, text, err)
	}
	tip, err := k.remote.try("rev-parse", "--verify", "refs/heads/ralph/"+key)
	if err != nil || tip != claim.Record.Tip {
		t.Errorf("%s: its branch is at %s, the record says %s", key, tip, claim.Record.Tip)
	} else if got := k.remote.lines(t, "log", "--format=%s", "main..ralph/"+key); !slices.Equal(got, []string{"Do " + key}) {
		t.Errorf("%s: commits %q, want one", key, got)
	}
	// Each clone has its own copy of the issue. The report of a run may be in both.
	successes, all := map[string]bool{}, ""
	for _, r := range k.clones {
		b, err := os.ReadFile(filepath.Join(string(r), ".ralph", "backlog", key+".md"))
		if err != nil {
			t.Error(err)
		}
		all += string(b)
		runs := map[string]int{}
		for _, report := range strings.Split(string(b), "<!-- ralph:report ")[1:] {
			id, _, _ := strings.Cut(report, " ")
			runs[id]++
			if strings.Contains(report, "**ralph: succeeded**") {
				successes[id] = true
			}
			if runs[id] > 1 {
				t.Errorf("%s: two reports of run %s in %s:\n%s", key, id, r, b)
			}
		}
	}
	if len(successes) != 1 {
		t.Errorf("%s: the runs %v were reported as successes, want one:\n%s", key, successes, all)
	}
}

// checkCommits checks that every commit of an agent is on a ref.
func (k *soak) checkCommits(t *testing.T) {
	t.Helper()
	all := append(slices.Clone(k.clones), k.remote)
	for line := range strings.Lines(k.read("log")) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "commit" &&
			!slices.ContainsFunc(all, func(r repository) bool {
				out, err := r.try("for-each-ref", "--contains", f[2])
				return err == nil && out != ""
			}) {
			t.Errorf("%s: the commit %s is on no ref", f[1], f[2])
		}
	}
}

// checkLeftovers checks that no process, worktree, lock file or temporary file is left.
func (k *soak) checkLeftovers(t *testing.T) {
	t.Helper()
	noneLeft(t, k.mark)
	for _, r := range k.clones {
		if trees := r.lines(t, "worktree", "list"); len(trees) != 1 {
			t.Errorf("%s: worktrees are left: %q", r, trees)
		}
		if locks := files(t, filepath.Join(string(r), ".git"), "*.lock"); len(locks) > 0 {
			t.Errorf("lock files are left: %q", locks)
		}
	}
	for _, pattern := range []string{"tmp", "state/ralph/*/tmp", "state/ralph/*/trash", "state/ralph/*/worktrees", "state/ralph/*/repos",
		"state/ralph/*/given", "state/ralph/*/history"} {
		dirs, err := filepath.Glob(filepath.Join(k.dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			if left := files(t, dir, "*"); len(left) > 0 {
				t.Errorf("files are left: %q", left)
			}
		}
	}
}
