package session_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/session"
)

// copied is a provider with Copy files: its sandboxes work on a copy of the workspace, and have a home of their own.
type copied struct{ *sandboxes.None }

func (copied) Capabilities() sandboxes.Capabilities {
	return sandboxes.Capabilities{Files: sandboxes.Copy, Weaker: "it is a test's"}
}

func (p copied) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	inside, err := os.MkdirTemp(filepath.Dir(spec.Worktree), "inside-")
	if err == nil {
		err = os.CopyFS(inside, os.DirFS(spec.Worktree))
	}
	if err != nil {
		return nil, err
	}
	spec.Worktree, spec.Env = inside, append(spec.Env, "HOME="+inside+"-home")
	box, err := p.None.Open(ctx, spec)
	return &copiedBox{box}, err
}

type copiedBox struct{ sandboxes.Sandbox }

// Fetch copies regular files, and refuses one name.
func (b *copiedBox) Fetch(_ context.Context, paths []string, into *os.Root, limits sandboxes.FetchLimits) error {
	refused, room := 0, limits.Bytes
	for _, p := range paths {
		if strings.HasSuffix(p, "refused") {
			refused++
			continue
		}
		from, name := filepath.Join(b.Workdir(), p), p
		if filepath.IsAbs(p) {
			from, name = p, "."
		}
		err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			rest, relErr := filepath.Rel(from, path)
			to := filepath.Join(name, rest)
			if room -= int64(len(content)); room < 0 {
				return fmt.Errorf("more than %d bytes", limits.Bytes)
			}
			return errors.Join(err, relErr, into.MkdirAll(filepath.Dir(to), 0o755), into.WriteFile(to, content, 0o644))
		})
		if err != nil {
			return err
		}
	}
	if refused > 0 {
		return &sandboxes.RefusedError{Count: refused, First: "refused: \x1b[31m no"}
	}
	return nil
}

// Copied files reach the host with Fetch, and the sandbox with Send.
func TestCopiedFiles(t *testing.T) {
	t.Parallel()
	dir := repository(t, map[string]string{"given": "1\n"})
	s := prepare(t, session.Config{
		Provider: copied{sandboxes.NewNone(sandboxes.NoneConfig{})}, Spec: spec(dir), Outputs: []string{"out/**", "given"},
	})
	if err := s.Workspace.PutFile("in/sent", "sent\n"); err != nil {
		t.Fatal(err)
	}
	if err := s.Send(t.Context(), "in/sent"); err != nil {
		t.Fatal(err)
	}
	sh(t, s, "cat in/sent >>given; mkdir -p out/.git other; echo o >out/o; echo r >out/refused; echo f >out/.git/f; echo p >other/p; ln -s /etc/passwd out/link")
	if got, err := s.Workspace.GetFile("given"); err != nil || got != "1\n" {
		t.Errorf("before fetching the host has %q, %v", got, err)
	}
	a := collect(t, s)
	var got []string
	for _, f := range a.Files {
		got = append(got, f.Path+"="+string(f.Content))
	}
	if want := "given=1\nsent\n out/o=o\n"; strings.Join(got, " ") != want {
		t.Errorf("files %q, want %q", got, want)
	}
	if want := "1 of the sandbox's files were refused; first: refused: [31m no"; len(a.Notices) != 1 || a.Notices[0].Text != want || a.Weaker == "" {
		t.Errorf("notices %q, weaker %q", a.Notices, a.Weaker)
	}
	if !strings.Contains(string(a.Diff.Text), "+++ b/other/p") {
		t.Errorf("%+v\n%s", a.Diff, a.Diff.Text)
	}
	if err := s.Fetch(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Workspace.GetFile("other/p"); err != nil || got != "p\n" {
		t.Errorf("after fetching the host has %q, %v", got, err)
	}
	for _, path := range []string{"../x", ".git", "/etc"} {
		if err := s.Fetch(t.Context(), path); !errors.Is(err, session.ErrPath) {
			t.Errorf("fetch %s: %v", path, err)
		}
	}
	if err := s.Send(t.Context(), "no-such"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("send a missing file: %v", err)
	}
}

// Output files beyond the limit stay inside, and a notice says so.
func TestCopiedFilesAreBounded(t *testing.T) {
	t.Parallel()
	s := prepare(t, session.Config{
		Provider: copied{sandboxes.NewNone(sandboxes.NoneConfig{})}, Spec: spec(t.TempDir()), Outputs: []string{"*"}, MaxFiles: 5000, NoDiff: true,
	})
	sh(t, s, "i=100; while [ $i -lt 700 ]; do printf 0123456789 >f$i; i=$((i+1)); done")
	a := collect(t, s)
	if len(a.Notices) != 1 || !strings.HasPrefix(a.Notices[0].Text, "not every output file was fetched: fetch files: more than ") {
		t.Errorf("notices %q", a.Notices)
	}
	if n := len(a.Files); n != 500 {
		t.Errorf("%d files", n)
	}
}

// A login of the host is copied only to the home inside, readable for its owner only, and a notice says so.
func TestLogins(t *testing.T) {
	t.Parallel()
	home, dir := t.TempDir(), filepath.Join(t.TempDir(), "workspace")
	write(t, filepath.Join(home, ".codex/auth.json"), `{"tokens":{"access_token":"secret-token-of-codex"}}`)
	write(t, filepath.Join(home, "large"), strings.Repeat("x", 2<<20))
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	c := session.Config{Spec: spec(dir), Home: home, Logins: []string{".codex/auth.json"}}
	for _, c.Provider = range append(providers()[1:], copied{none}) {
		s := prepare(t, c)
		if got := sh(t, s, `cd ~; cat .codex/auth.json; ls -l .codex/auth.json | cut -c 1-10`).Stdout; !strings.Contains(string(got), "secret-token-of-codex") || !strings.HasSuffix(string(got), "}-rw-------\n") {
			t.Errorf("in %s it is %s", c.Provider.Name(), got)
		}
		if got := s.Notices(); len(got) != 1 || got[0].Text != "the login .codex/auth.json is in the sandbox, where every command can read it" {
			t.Errorf("notices %q", got)
		}
		if got := s.Secrets(); len(got) != 1 || got[0] != "secret-token-of-codex" {
			t.Errorf("secrets %q", got)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
			t.Errorf("in the workspace are %q", left)
		}
	}
	for login, want := range map[string]error{"../auth.json": nil, "/etc/passwd": nil, "gone": fs.ErrNotExist, "large": session.ErrTooLarge} {
		c.Logins = []string{login}
		if _, err := session.Prepare(t.Context(), c); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("login %s: %v", login, err)
		}
	}
	c.Provider, c.Logins = none, []string{".codex/auth.json"}
	if _, err := session.Prepare(t.Context(), c); !errors.Is(err, sandboxes.ErrUnsupported) {
		t.Errorf("a login for the host itself: %v", err)
	}
}

// reaped is a provider with Copy files that records the calls at the end.
type reaped struct {
	copied
	calls *[]string
	fails error
}

func (p reaped) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	box, err := p.copied.Open(ctx, spec)
	return &reapedBox{box, p.calls}, err
}

func (p reaped) Reap(_ context.Context, run string) error {
	*p.calls = append(*p.calls, "reap "+run)
	return p.fails
}

type reapedBox struct {
	sandboxes.Sandbox
	calls *[]string
}

func (b *reapedBox) Close(ctx context.Context) error {
	*b.calls = append(*b.calls, "close")
	return b.Sandbox.Close(ctx)
}

// Close keeps the copies of a broken sandbox for another Open; Cleanup removes them.
func TestCleanupDropsCopies(t *testing.T) {
	t.Parallel()
	var calls []string
	p := reaped{copied: copied{sandboxes.NewNone(sandboxes.NoneConfig{})}, calls: &calls}
	c := session.Config{Provider: p, Spec: spec(filepath.Join(t.TempDir(), "workspace")), NoDiff: true}
	c.Spec.Run = "broken"
	s := prepare(t, c)
	for range 2 {
		if err := s.Cleanup(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(calls, ", "); got != "close, reap broken" {
		t.Errorf("the provider sees %s", got)
	}
	p.fails = errors.New("the engine is gone")
	c.Provider = p
	s, err := session.Prepare(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Cleanup(t.Context()); !errors.Is(err, p.fails) {
		t.Errorf("Cleanup gives %v", err)
	}
	if _, err := s.Workspace.ListFiles("*"); err != nil {
		t.Errorf("the workspace is closed before the end: %v", err)
	}
	if err := s.Workspace.Close(); err != nil {
		t.Error(err)
	}
}
