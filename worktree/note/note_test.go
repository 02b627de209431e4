package note

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/gittest"
	"github.com/ralph-pool/ralph/worktree/git"
)

func TestMain(m *testing.M) {
	gittest.Isolate()
	goleak.VerifyTestMain(m)
}

// site is one clone of a bare repository.
type site struct {
	*testing.T
	dir, bare string
	Store
}

func newSite(t *testing.T) *site {
	t.Helper()
	bare := filepath.Join(t.TempDir(), "origin.git")
	s := &site{T: t, dir: t.TempDir(), bare: bare}
	s.git("init", "-q", "--bare", "-b", "main", bare)
	s.git("init", "-q", "-b", "main")
	s.git("commit", "-q", "--allow-empty", "-m", "first")
	s.git("remote", "add", "origin", bare)
	s.git("push", "-q", "origin", "main")
	s.open()
	return s
}

func (s *site) clone() *site {
	s.Helper()
	c := &site{T: s.T, dir: s.TempDir(), bare: s.bare}
	c.git("clone", "-q", s.bare, ".")
	c.open()
	return c
}

func (s *site) open() {
	common := filepath.Join(s.dir, ".git")
	runner := git.New(s.dir).Pin(common, common, s.dir)
	s.Store = Store{Git: runner, Objects: git.Store{Dir: filepath.Join(common, "objects")}, RemoteGit: runner, Remote: "origin"}
}

// git runs git as the user does.
func (s *site) git(args ...string) string {
	s.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (s *site) commit() string {
	s.Helper()
	s.git("commit", "-q", "--allow-empty", "-m", "more")
	return s.git("rev-parse", "HEAD")
}

// here returns the note in this repository, there the one on the remote.
func (s *site) here(commit string) []string {
	s.Helper()
	at, err := s.LocalHead(s.Context())
	return s.read(at, commit, err)
}

func (s *site) there(commit string) []string {
	s.Helper()
	at, _, err := s.RemoteHead(s.Context())
	return s.read(at, commit, err)
}

func (s *site) read(at, commit string, err error) []string {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
	got, err := s.Read(s.Context(), at, commit)
	if err != nil {
		s.Fatal(err)
	}
	return got
}

func (s *site) want(got []string, want ...string) {
	s.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("the note is %q, want %q", got, want)
	}
}

func TestAddAndRead(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tip := s.commit()
	s.want(s.here(tip))
	for _, line := range []string{"one", "two", "one"} {
		if err := s.Add(t.Context(), tip, line); err != nil {
			t.Fatal(err)
		}
	}
	s.want(s.here(tip), "one", "two")
	s.want(s.here(s.git("rev-parse", "HEAD^")))
	if got := s.git("notes", "--ref=ralph", "show", tip); got != "one\ntwo" {
		t.Errorf("git shows %q", got)
	}
}

// Notes written by git are read and extended, however many there are.
func TestNotesOfGit(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	first := s.commit()
	s.git("notes", "--ref=ralph", "add", "-m", "by hand", first)
	if err := s.Add(t.Context(), first, "by ralph"); err != nil {
		t.Fatal(err)
	}
	s.want(s.here(first), "by hand", "by ralph")
	if got := s.git("ls-tree", "-r", "--name-only", Ref); got != first[:2]+"/"+first[2:] {
		t.Errorf("the tree has %q", got)
	}
	s.git("notes", "--ref=ralph", "append", "-m", "by hand again", first)
	s.want(s.here(first), "by hand", "by ralph", "by hand again")
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tip := s.commit()
	s.git("push", "-q", "origin", "main")
	var all []string
	var wait sync.WaitGroup
	for i := range 3 {
		c := s.clone()
		for n := range 3 {
			line := fmt.Sprintf("clone %d line %d", i, n)
			all = append(all, line)
			wait.Go(func() {
				if err := errors.Join(c.Add(t.Context(), tip, line), c.Push(t.Context(), tip)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	s.want(s.there(tip), all...)
	if err := s.Add(t.Context(), tip, "last"); err != nil {
		t.Fatal(err)
	}
	if err := s.Push(t.Context(), tip); err != nil {
		t.Fatal(err)
	}
	s.want(s.here(tip), append(all, "last")...)
}

// A notes commit of the remote that is here without its tree, because another process is just fetching it, is fetched as
// well.
func TestHalfFetched(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tip := s.commit()
	s.git("push", "-q", "origin", "main")
	c := s.clone()
	if err := errors.Join(s.Add(t.Context(), tip, "line"), s.Push(t.Context(), tip), c.Add(t.Context(), tip, "other")); err != nil {
		t.Fatal(err)
	}
	text, err := s.Git.Output(t.Context(), "cat-file", "commit", Ref)
	if err != nil {
		t.Fatal(err)
	}
	half, err := c.Objects.Write("commit", []byte(text+"\n"))
	if err != nil || half != s.git("rev-parse", Ref) {
		t.Fatalf("%s, %v", half, err)
	}
	if err := c.Push(t.Context(), tip); err != nil {
		t.Fatal(err)
	}
	s.want(c.here(tip), "line", "other")
}

// After a join, notes on different commits that were written apart are all there.
func TestJoin(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	a, b := s.commit(), s.commit()
	s.git("push", "-q", "origin", "main")
	other := s.clone()
	for _, add := range []struct {
		at     *site
		commit string
		line   string
	}{{s, a, "here"}, {s, b, "both 1"}, {other, b, "both 2"}} {
		if err := errors.Join(add.at.Add(t.Context(), add.commit, add.line)); err != nil {
			t.Fatal(err)
		}
	}
	for _, share := range []struct {
		at     *site
		commit string
	}{{s, a}, {s, b}, {other, b}, {s, b}} {
		if err := share.at.Push(t.Context(), share.commit); err != nil {
			t.Fatal(err)
		}
	}
	s.want(s.there(a), "here")
	s.want(s.there(b), "both 1", "both 2")
	if s.git("rev-parse", Ref) != other.git("rev-parse", Ref) {
		t.Error("the two repositories differ")
	}
}

// The remote gets only the note to be shared, not those of commits that stay here.
func TestShareSendsOneNote(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	stays, goes, later := s.commit(), s.commit(), s.commit()
	for _, commit := range []string{stays, goes, later} {
		if err := s.Add(t.Context(), commit, "on "+commit); err != nil {
			t.Fatal(err)
		}
	}
	for _, commit := range []string{goes, later} {
		if err := s.Push(t.Context(), commit); err != nil {
			t.Fatal(err)
		}
		s.want(s.there(commit), "on "+commit)
	}
	s.want(s.there(stays))
	if log := s.git("--git-dir", s.bare, "log", "--all", "--format=%B", Ref); strings.Contains(log, stays) {
		t.Errorf("the history of the remote's notes names the commit that stays:\n%s", log)
	}
	s.want(s.here(stays), "on "+stays)
	s.git("push", "-q", "origin", Ref) // sending all notes is possible by hand
	s.want(s.there(stays), "on "+stays)
}

func TestDeclined(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tip := s.commit()
	hook := filepath.Join(s.bare, "hooks", "update")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(t.Context(), tip, "line"); err != nil {
		t.Fatal(err)
	}
	if err := s.Push(t.Context(), tip); !errors.Is(err, git.ErrDeclined) {
		t.Errorf("the error is %v", err)
	}
	s.want(s.here(tip), "line")
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tip := s.commit()
	if err := s.Add(t.Context(), tip, strings.Repeat("x", MaxSize)); !errors.Is(err, ErrSize) {
		t.Errorf("adding: %v", err)
	}
	large := filepath.Join(s.dir, "large")
	if err := os.WriteFile(large, make([]byte, MaxSize+1), 0o600); err != nil {
		t.Fatal(err)
	}
	s.git("notes", "--ref=ralph", "add", "-F", large, tip)
	at, err := s.LocalHead(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), at, tip); !errors.Is(err, ErrSize) {
		t.Errorf("reading: %v", err)
	}
}

// Anybody with push access can write a note of many short lines, which ralph has to compare with each other.
func TestManyLines(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	tip := s.commit()
	var text strings.Builder
	lines := 0
	for ; text.Len() < MaxSize-8; lines++ {
		fmt.Fprintf(&text, "%x\n", lines)
	}
	file := filepath.Join(s.dir, "many")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s.git("notes", "--ref=ralph", "add", "-F", file, tip)
	if got := s.here(tip); len(got) != lines {
		t.Errorf("%d of %d lines", len(got), lines)
	}
}
