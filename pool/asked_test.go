package pool_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The remote is asked once for what a run of a new issue starts from; again for an issue that somebody had before.
func TestRemoteIsAskedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, `echo "<no-change>nothing to do</no-change>"`)
	f.withRemote()
	asked := filepath.Join(t.TempDir(), "asked")
	program := filepath.Join(t.TempDir(), "upload-pack")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho x >>'"+asked+"'\nexec git-upload-pack \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.git(f.repo, "config", "remote.origin.uploadpack", program)
	f.issue("a")
	p := f.pool()
	for _, want := range []int{1, 5} { // the second time also for the claim that was there
		if _, err := p.Work(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(asked); err != nil || strings.Count(string(text), "x") != want {
			t.Errorf("%v; asked %q, want %d times", err, text, want)
		}
		f.write(".ralph/backlog/a.md", strings.Replace(f.text("a"), "labels: [", "labels: [no-human, ", 1))
	}
}
