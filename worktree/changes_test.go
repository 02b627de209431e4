package worktree

import (
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Every commit counts: an addition that a later commit removes is found in paths, lines and messages.
func TestChangesOfEveryCommit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base := f.git("rev-parse", "HEAD")
	f.commit(f.dir, "a file.txt", "one\n++ two\nthe secret\n", "Add; token in the message")
	f.git("mv", "a file.txt", "ünlaut.txt")
	f.git("commit", "-qm", "Move")
	f.commit(f.dir, "ünlaut.txt", "one\n", "Take it away")
	f.write(f.dir, "bin", "x\x00the hidden\x00\n")
	f.git("add", "bin")
	f.git("commit", "-qm", "Binary")
	var lines []string
	c, err := f.repo.Changes(t.Context(), []string{base}, f.git("rev-parse", "HEAD"), func(path string, line []byte) {
		lines = append(lines, path+": "+string(line))
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(c.Paths)
	if want := []string{"a file.txt", "bin", "ünlaut.txt"}; !slices.Equal(c.Paths, want) {
		t.Errorf("paths %q, want %q", c.Paths, want)
	}
	all := strings.Join(lines, "\n")
	for _, want := range []string{"a file.txt: ++ two", "a file.txt: the secret", "the hidden"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q among the added lines:\n%s", want, all)
		}
	}
	if len(c.Objects) != 4 {
		t.Errorf("%d commits, want 4", len(c.Objects))
	}
	for _, m := range c.Objects {
		if strings.Contains(m, "token in the message") {
			return
		}
	}
	t.Errorf("messages %q", c.Objects)
}

// Added lines are returned unchanged: in data a carriage return is an ordinary byte.
func TestChangesKeepCarriageReturns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base := f.git("rev-parse", "HEAD")
	const content = "one\r\n\r\n\x00\r\r\n+\r\nlast\r"
	f.commit(f.dir, "data", content, "Data")
	var lines []string
	_, err := f.repo.Changes(t.Context(), []string{base}, f.git("rev-parse", "HEAD"), func(_ string, line []byte) {
		lines = append(lines, string(line))
	})
	if got := strings.Join(lines, "\n"); err != nil || got != content {
		t.Errorf("%q, want %q (%v)", got, content, err)
	}
}

// hiding commits a file, and then another one in its place. It returns the commits before and after.
func (f *fixture) hiding() (base, tip string) {
	base = f.git("rev-parse", "HEAD")
	f.commit(f.dir, "hidden", "secret\n", "Hide")
	f.git("rm", "-q", "hidden")
	return base, f.commit(f.dir, "shown", "x\n", "Show")
}

// A graft file that an agent has left in the repository hides no commit from the check.
func TestChangesBehindGrafts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base, tip := f.hiding()
	f.write(f.dir, ".git/info/grafts", tip+" "+base+"\n")
	c, err := f.repo.Changes(t.Context(), []string{base}, tip, func(string, []byte) {})
	if err != nil || !slices.Contains(c.Paths, "hidden") {
		t.Errorf("paths %q, %v", c.Paths, err)
	}
}

// A shallow boundary placed before the last commit hides none either: it is an error.
func TestChangesBehindAnEdge(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base, tip := f.hiding()
	f.write(f.dir, ".git/shallow", tip+"\n")
	c, err := f.repo.Changes(t.Context(), []string{base}, tip, func(string, []byte) {})
	if err == nil || !strings.Contains(err.Error(), "shallow") {
		t.Errorf("paths %q, %v", c.Paths, err)
	}
}

// In a shallow clone, new commits are checked as usual.
func TestChangesInAShallowClone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.commit(f.dir, "second", "x\n", "Second")
	from := f.dir
	f.dir, f.state = filepath.Join(realDir(t), "clone"), filepath.Join(realDir(t), "state")
	f.sh("", "git", "clone", "-q", "--depth=1", "file://"+from, f.dir)
	f.open(Options{})
	base := f.git("rev-parse", "HEAD")
	tip := f.commit(f.dir, "new", "x\n", "New")
	c, err := f.repo.Changes(t.Context(), []string{base}, tip, func(string, []byte) {})
	if err != nil || !slices.Equal(c.Paths, []string{"new"}) {
		t.Errorf("paths %q, %v", c.Paths, err)
	}
}

// A setting that hides submodules from people does not hide them from the check.
func TestChangesOfSubmodulesAreNeverIgnored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	base := f.git("rev-parse", "HEAD")
	f.git("update-index", "--add", "--cacheinfo", "160000,"+base+",sub")
	f.git("commit", "-qm", "Link")
	f.git("config", "diff.ignoreSubmodules", "all")
	c, err := f.repo.Changes(t.Context(), []string{base}, f.git("rev-parse", "HEAD"), func(string, []byte) {})
	if err != nil || !slices.Contains(c.Paths, "sub") {
		t.Errorf("paths %q, %v", c.Paths, err)
	}
}

// Links and submodules are distinguished from files, on either side of a change or merge.
func TestChangesTellLinks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.sh(f.dir, "ln", "-s", "a.txt", "was")
	f.git("add", "was")
	f.git("commit", "-qm", "Link")
	base := f.git("rev-parse", "HEAD")
	f.git("rm", "-q", "was")
	f.commit(f.dir, "was", "a file\n", "A file now")
	f.git("update-index", "--add", "--cacheinfo", "160000,"+base+",sub")
	f.git("commit", "-qm", "Submodule")
	f.git("switch", "-qc", "side", base)
	f.commit(f.dir, "side", "x\n", "Side")
	f.git("merge", "-q", "--no-commit", "main")
	f.sh(f.dir, "ln", "-s", "side", "merged")
	f.git("add", "merged")
	f.git("commit", "-qm", "Merge")
	c, err := f.repo.Changes(t.Context(), []string{base}, f.git("rev-parse", "HEAD"), func(string, []byte) {})
	if want := []string{"merged", "sub", "was"}; err != nil || !slices.Equal(c.Links, want) {
		t.Errorf("links %q, want %q; %v", c.Links, want, err)
	}
	slices.Sort(c.Paths)
	if want := []string{"merged", "side", "sub", "was"}; !slices.Equal(c.Paths, want) {
		t.Errorf("paths %q, want %q", c.Paths, want)
	}
}

// A git that reads an agent's commits has a memory limit.
func TestGitHasBoundedMemory(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the system limits no other process")
	}
	f := newFixture(t)
	var limit strings.Builder
	err := f.repo.Git().Pipe(t.Context(), strings.NewReader("go\n"), &limit, "-c", `alias.limit=!read go; grep "Max data size" "/proc/$PPID/limits"`, "limit")
	if want := strconv.Itoa(git.AgentMemory); err != nil || !strings.Contains(limit.String(), want) {
		t.Errorf("git has %q, %v, want %s", limit.String(), err, want)
	}
}
