package statedir

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

// fixture is a folder for repositories, and one for their state.
type fixture struct {
	*testing.T
	dir, root string
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	f := fixture{t, dir, filepath.Join(dir, "state [a")} // the name must not work as a pattern
	f.sh("git init -q project")
	return f
}

func (f fixture) sh(script string) {
	f.Helper()
	cmd := exec.Command("sh", "-ec", script)
	cmd.Dir = f.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// find returns the name of a repository's state folder.
func (f fixture) find(name string) string {
	f.Helper()
	p, err := git.Locate(f.Context(), filepath.Join(f.dir, name))
	if err != nil {
		f.Fatal(err)
	}
	dir, err := Find(f.Context(), f.root, p)
	if info, errDir := os.Stat(dir); err != nil || errDir != nil || info.Mode().Perm() != 0o700 || filepath.Dir(dir) != f.root {
		f.Errorf("%s: %s, %v", name, dir, err)
	}
	return filepath.Base(dir)
}

func TestFind(t *testing.T) {
	t.Parallel()
	const used = "git -C project -c user.name=A -c user.email=a@b commit -q --allow-empty -m x; git -C project update-ref refs/ralph/work/k HEAD; "
	for name, c := range map[string]struct {
		script, then string // then is the name of the repository
		same         bool
	}{
		"again":                {"true", "project", true},
		"moved":                {"mv project moved", "moved", true},
		"moved, another comes": {"mv project moved; git init -q project; printf 'AAAAAAAAAAAAAAAAAAAAAAAAAA\n' >project/.git/ralph-id", "moved", true},
		"copied":               {"cp -R project copy", "copy", false},
		"made again":           {"rm -rf project; git init -q project", "project", false},
		"mark is lost":         {used + "rm project/.git/ralph-id", "project", true},
		"mark is damaged":      {used + "printf ABC >project/.git/ralph-id", "project", true},
		"never used":           {"printf ABC >project/.git/ralph-id", "project", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first := f.find("project")
			f.sh(c.script)
			if got := f.find(c.then); (got == first) != c.same {
				t.Errorf("%s, and before %s", got, first)
			} else if again := f.find(c.then); again != got {
				t.Errorf("the next time %s, not %s", again, got)
			}
		})
	}
}

// A repository on a disk that was away for a while does not share the folder that its copy has got.
func TestBackAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.find("project")
	f.sh("cp -R project copy; mv project away")
	if got := f.find("copy"); got != first {
		t.Fatalf("the copy has %s", got)
	}
	f.sh("mv away project")
	if got := f.find("project"); got == first || got != f.find("project") {
		t.Errorf("it has %s", got)
	}
	if got := f.find("copy"); got != first {
		t.Errorf("then the copy has %s", got)
	}
}

// Each user of a shared repository has a state folder, and all read the same mark.
func TestMarkIsReadable(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.find("project")
	info, err := os.Stat(filepath.Join(f.dir, "project", ".git", markFile))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
}

// A home that cannot be written, such as a read-only one, has its own error, for which callers have advice.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p, err := git.Locate(t.Context(), filepath.Join(f.dir, "project"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), filepath.Join(p.Common, "HEAD", "state"), p); !errors.Is(err, ErrFolder) {
		t.Error(err)
	}
}

func TestTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	found := make([]string, 8)
	var calls sync.WaitGroup
	for i := range found {
		calls.Go(func() { found[i] = f.find("project") })
	}
	calls.Wait()
	if unique := slices.Compact(found); len(unique) != 1 {
		t.Errorf("calls at once find %q", unique)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script, then string // then is the name of the second repository
		refused      bool
	}{
		"again":           {"true", "project", false},
		"another":         {"git init -q other", "other", true},
		"moved":           {"mv project moved", "moved", false},
		"copied":          {"cp -R project copy; printf 'AAAAAAAAAAAAAAAAAAAAAAAAAA\n' >copy/.git/ralph-id", "copy", true},
		"made again":      {"rm -rf project; git init -q project", "project", true},
		"owner is broken": {"echo x >'state [a/repository'", "project", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			own := func(name string) error {
				p, err := git.Locate(t.Context(), filepath.Join(f.dir, name))
				if err != nil {
					t.Fatal(err)
				}
				dir, err := Open(t.Context(), f.root, p, "a")
				if _, errDir := os.Stat(filepath.Join(f.root, "a")); err == nil && (errDir != nil || dir != f.root) {
					t.Errorf("%s, %v", dir, errDir)
				}
				return err
			}
			if err := own("project"); err != nil {
				t.Fatal(err)
			}
			f.sh(c.script)
			if err := own(c.then); (err != nil) != c.refused {
				t.Error(err)
			}
		})
	}
}

// A state folder in the checkout would be untracked files there, which git status shows and git clean deletes.
func TestOpenInTheCheckout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state   string
		refused bool
	}{
		"beside":                {"project-state", false},
		"inside":                {"project/state", true},
		"inside, through links": {"link/state", true},
		"ignored":               {"project/ignored/state", false},
		"in git's folder":       {"project/.git/state", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.sh("echo ignored/ > project/.gitignore; ln -s project link")
			p, err := git.Locate(t.Context(), filepath.Join(f.dir, "project"))
			if err != nil {
				t.Fatal(err)
			}
			_, foundErr := Find(t.Context(), filepath.Join(f.dir, c.state), p)
			_, err = Open(t.Context(), filepath.Join(f.dir, c.state), p, "locks")
			for _, err := range []error{foundErr, err} {
				if refused := errors.Is(err, ErrInCheckout); refused != c.refused || err != nil && !refused {
					t.Errorf("%v", err)
				}
			}
			if _, err := os.Stat(filepath.Join(f.dir, c.state)); errors.Is(err, fs.ErrNotExist) != c.refused {
				t.Errorf("the folder: %v", err)
			}
		})
	}
}
