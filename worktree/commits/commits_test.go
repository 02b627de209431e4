package commits

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
)

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var out strings.Builder
	exit, err := proc.Run(t.Context(), proc.Spec{
		Argv: append([]string{"git"}, args...), Dir: dir, Stdout: &out, Stderr: &out,
		Env: append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@b"),
	})
	if err != nil || exit.Code != 0 {
		t.Fatalf("git %q: %v\n%s", args, err, &out)
	}
	return strings.TrimSpace(out.String())
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// The package agrees with git about commits and counts, also in a linked worktree and after the base has moved.
func TestCommits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	write(t, dir, "a", "one\ntwo\n")
	write(t, dir, "gone", "x\n")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "First")
	gitIn(t, dir, "switch", "-qc", "ralph/1")
	write(t, dir, "a", "one\n2\nthree\n")
	gitIn(t, dir, "commit", "-qam", "Change a\n\nbody")
	gitIn(t, dir, "rm", "-q", "gone")
	write(t, dir, "big", strings.Repeat("line\n", 300_000))
	write(t, dir, "bin", "\x00\x01")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "Add files")
	tip := gitIn(t, dir, "rev-parse", "HEAD")
	gitIn(t, dir, "switch", "-q", "main")
	write(t, dir, "later", "x\n")
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "Later")
	base := gitIn(t, dir, "rev-parse", "HEAD")
	linked := filepath.Join(t.TempDir(), "tree")
	gitIn(t, dir, "worktree", "add", "-q", linked, "ralph/1")

	for _, at := range []string{dir, linked} {
		r, err := Open(at)
		if err != nil {
			t.Fatal(err)
		}
		commits, err := r.Commits(t.Context(), base, tip)
		if err != nil || len(commits) != 2 || commits[0].Subject != "Change a" || commits[1].SHA != tip {
			t.Errorf("commits %+v, %v", commits, err)
		}
		s, err := r.Stat(t.Context(), base, tip)
		if err != nil || s.Insertions != 2 || s.Deletions != 2 || len(s.Files) != 4 || s.Uncounted != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

// Stat lists the same files as git for folders that are added, deleted or moved, or that replace files.
func TestStatOfFolders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	for _, name := range []string{"same/deep/a", "edited/deep/a", "edited/b", "gone/deep/a", "moved/deep/a", "file", "folder/a", "folder/b"} {
		write(t, dir, name, "the text of "+name+"\n")
	}
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "First")
	base := gitIn(t, dir, "rev-parse", "HEAD")
	gitIn(t, dir, "rm", "-qr", "gone", "file", "folder")
	gitIn(t, dir, "mv", "moved", "here")
	for _, name := range []string{"edited/deep/a", "file/inside/a", "folder", "new/deep/a"} {
		write(t, dir, name, "another text for "+name+"\n")
	}
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "Second")
	tip := gitIn(t, dir, "rev-parse", "HEAD")
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Stat(t.Context(), base, tip)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range got.Files {
		lines = append(lines, fmt.Sprintf("%d\t%d\t%s", f.Insertions, f.Deletions, f.Path))
	}
	slices.Sort(lines)
	want := strings.Split(gitIn(t, dir, "diff", "--numstat", "--no-renames", base, tip), "\n")
	// A moved file counts once, at its new path.
	want = slices.DeleteFunc(want, func(line string) bool { return strings.HasSuffix(line, "moved/deep/a") })
	want[slices.Index(want, "1\t0\there/deep/a")] = "0\t0\there/deep/a"
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}

// Equal files count as renames, one for each deleted file. A file that was moved and changed does not: finding it means
// comparing each file with each.
func TestStatOfRenames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gitIn(t, dir, "init", "-q", "-b", "main")
	text := strings.Repeat("line\n", 20)
	for _, name := range []string{"old/1", "old/2", "old/3"} {
		write(t, dir, name, text)
	}
	write(t, dir, "edited", "first\n"+text)
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "First")
	base := gitIn(t, dir, "rev-parse", "HEAD")
	gitIn(t, dir, "rm", "-qr", "old/1", "old/2", "edited")
	for _, name := range []string{"new/1", "new/2", "new/3"} {
		write(t, dir, name, text)
	}
	write(t, dir, "now", "other\n"+text)
	gitIn(t, dir, "add", ".")
	gitIn(t, dir, "commit", "-qm", "Second")
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Stat(t.Context(), base, gitIn(t, dir, "rev-parse", "HEAD"))
	want := []File{{"edited", 0, 21}, {"new/1", 0, 0}, {"new/2", 0, 0}, {"new/3", 20, 0}, {"now", 21, 0}}
	if err != nil || !slices.Equal(got.Files, want) {
		t.Errorf("%v, %v, want %v", got.Files, err, want)
	}
}

// Missing objects cause errors, not panics.
func TestMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Open(dir); err == nil {
		t.Error("a folder without a repository was opened")
	}
	gitIn(t, dir, "init", "-q", "-b", "main")
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	zero := strings.Repeat("0", 40)
	if _, err := r.Commits(t.Context(), zero, zero); err == nil {
		t.Error("missing commits were listed")
	}
	if _, err := r.Stat(t.Context(), zero, zero); err == nil {
		t.Error("missing commits were counted")
	}
}
