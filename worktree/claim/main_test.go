package claim

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/worktree/git"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	// Every step writes real objects; for a longer run: go test -rapid.checks=1000
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const (
	ttl    = time.Hour
	prefix = "refs/ralph/claims/"
)

// site is a repository with its claims, on one machine.
type site struct {
	*testing.T
	dir   string
	store *Store
}

// newSite makes a repository that stores its claims itself, or on a bare remote.
func newSite(t *testing.T, remote bool) *site {
	t.Helper()
	s := &site{T: t, dir: filepath.Join(t.TempDir(), "project")}
	s.sh("git", "init", "-q", "-b", "main", s.dir)
	s.git("commit", "-q", "--allow-empty", "-m", "first")
	if remote {
		s.sh("git", "init", "-q", "--bare", "-b", "main", s.bare())
		s.git("remote", "add", "origin", s.bare())
		s.git("push", "-q", "origin", "main")
	}
	s.store = s.open(remote)
	return s
}

func (s *site) bare() string { return filepath.Join(filepath.Dir(s.dir), "origin.git") }

func (s *site) open(remote bool) *Store {
	s.Helper()
	common := filepath.Join(s.dir, ".git")
	me, err := Self()
	if err != nil {
		s.Fatal(err)
	}
	c := Config{
		Self:    me,
		Git:     git.New(s.dir).Pin(common, common, s.dir),
		Objects: git.Store{Dir: filepath.Join(common, "objects")},
		Prefix:  prefix,
	}
	if remote {
		c.Remote = "origin"
	}
	return New(c)
}

// clone makes another machine's clone of the same remote.
func (s *site) clone(host string) *site {
	s.Helper()
	c := &site{T: s.T, dir: filepath.Join(s.TempDir(), "clone")}
	s.sh("git", "clone", "-q", s.bare(), c.dir)
	c.store = c.open(true)
	c.store.self.Host = host
	return c
}

func (s *site) sh(name string, args ...string) string {
	s.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		s.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// git runs git as the user does.
func (s *site) git(args ...string) string {
	s.Helper()
	return s.sh("git", append([]string{"-C", s.dir}, args...)...)
}

func (s *site) script(path, content string) {
	s.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+content+"\n"), 0o755); err != nil {
		s.Fatal(err)
	}
}

// everywhere runs a test with claims in the repository and with claims on a remote.
func everywhere(t *testing.T, test func(s *site)) {
	t.Parallel()
	for name, remote := range map[string]bool{"local": false, "remote": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newSite(t, remote))
		})
	}
}

// claimed takes the claim on "k".
func claimed(t testing.TB, s *Store, run string) *Claim {
	t.Helper()
	c, err := s.Claim(t.Context(), "k", Holder{Owner: run, Run: run}, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// state returns the state of the claim on "k".
func (s *site) state(store *Store) State {
	s.Helper()
	states, err := store.List(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return states["k"]
}

// crashed returns the store as seen by another process of the host when all others are dead.
func (s *Store) crashed() *Store {
	c := *s
	c.alive = func(int, string) bool { return false }
	return &c
}

// later returns the store as seen after some time.
func (s *Store) later(d time.Duration) *Store {
	c := *s
	c.now = func() time.Time { return time.Now().Add(d) }
	c.uptime = func() time.Duration { return uptime() + d }
	return &c
}
