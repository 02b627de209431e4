// Package session runs commands over one workspace in a sandbox of any provider and collects the results: prepare, run,
// collect, cleanup.
//
// It is for programs that use ralph's sandboxes without ralph's loop. [Prepare] opens the sandbox, [Session.Run] runs a
// command in it, [Session.Collect] gathers the diff, the logs and the named output files, and [Session.Cleanup] ends it.
// [Workspace] reads and writes files of the workspace on the host. Where the provider mounts the workspace, or works in
// it, both sides see every change at once. Where it copies files ([sandboxes.Copy]), they are copied in when the sandbox
// opens; after that, [Session.Send] and [Session.Fetch] move files, and Collect fetches the output files.
//
// Everything that comes back was made by the commands inside. It is data, limited in size, and the host runs none of it.
// A Session is safe for use by several goroutines.
package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Config describes a session. Provider and Spec.Worktree are needed.
type Config struct {
	// Provider makes the sandbox.
	Provider sandboxes.Provider
	// Spec is what the sandbox is opened with. Its Worktree is the workspace and is made when it is missing. Its Run is
	// chosen when it is empty. Its Name becomes the sandbox's own name.
	Spec sandboxes.Spec
	// Branch is the git branch that commands work on. Prepare switches the workspace's repository to it, inside the
	// sandbox, and creates it when it is missing. Empty: the branch that is checked out.
	Branch string
	// Logins are login files of this host that every command may read, as paths below the home folder, such as
	// ".codex/auth.json". They are copied to the same place below the home inside. Inside they are no secret any more:
	// a provider that keeps credentials outside is the better choice, and [Session.Notices] says so.
	Logins []string
	// Home is the home folder of this host; default that of the user.
	Home string
	// Outputs are the files that Collect returns, as patterns for [Workspace.ListFiles].
	Outputs []string
	// Metadata is passed on to the artefacts.
	Metadata map[string]string
	// NoDiff leaves the diff out; the sandbox then needs neither a shell nor git.
	NoDiff bool
	// Record is called before each command and may change it, such as where its output goes. The function it returns is
	// called with the result and the error of Run; its own error is added to that. Nil: nothing is called.
	Record func(*sandboxes.Command) (func(Result, error) error, error)

	MaxOutput int   // bytes kept of each command's stdout, and as many of stderr; default 1 MiB
	MaxDiff   int64 // bytes of the diff; default 16 MiB
	MaxFile   int64 // bytes of one file that is read; default 64 MiB
	MaxFiles  int64 // bytes of all output files together; default 256 MiB
}

// Session is a workspace with a sandbox around it.
type Session struct {
	// Workspace is the files that commands work on, as the host has them. Cleanup closes it.
	Workspace *Workspace

	config Config
	box    sandboxes.Sandbox
	base   string // the tree or commit that the diff starts from; empty: none
	gitDir string // the repository inside that has the base; empty: the workspace's own
	noBase string // why there is no base

	cleaning sync.Mutex
	cleaned  bool // guarded by cleaning

	mu      sync.Mutex
	logs    []Result           // guarded by mu
	notices []sandboxes.Notice // guarded by mu
	secrets []string           // of logins; set by Prepare only
}

// Prepare makes the workspace where it is missing, opens the sandbox, copies logins in, switches to the branch, and notes
// the commit that the diff will start from.
func Prepare(ctx context.Context, c Config) (*Session, error) {
	s, err := prepare(ctx, c.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("prepare the session: %w", err)
	}
	return s, nil
}

func prepare(ctx context.Context, c Config) (*Session, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Spec.Worktree, 0o700); err != nil {
		return nil, fmt.Errorf("make the workspace: %w", err)
	}
	w, err := OpenWorkspace(c.Spec.Worktree, c.MaxFile)
	if err != nil {
		return nil, err
	}
	box, err := c.Provider.Open(ctx, c.Spec)
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	s := &Session{Workspace: w, config: c, box: box, noBase: "the session was asked for no diff"}
	for _, step := range []func(context.Context) error{s.logIn, s.switchBranch, s.noteBase} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, s.Cleanup(context.WithoutCancel(ctx)))
		}
	}
	return s, nil
}

func (c Config) withDefaults() Config {
	c.Spec.Run = cmp.Or(c.Spec.Run, "session-"+strings.ToLower(rand.Text()))
	c.Outputs, c.Logins, c.Metadata = slices.Clone(c.Outputs), slices.Clone(c.Logins), maps.Clone(c.Metadata)
	c.MaxOutput = cmp.Or(c.MaxOutput, 1<<20)
	c.MaxDiff = cmp.Or(c.MaxDiff, 16<<20)
	c.MaxFile = cmp.Or(c.MaxFile, defaultMaxFile)
	c.MaxFiles = cmp.Or(c.MaxFiles, 256<<20)
	return c
}

// check refuses values that no provider could use.
func (c Config) check() error {
	switch {
	case c.Provider == nil:
		return errors.New("no provider is named")
	case !filepath.IsAbs(c.Spec.Worktree):
		return fmt.Errorf("workspace %q is not an absolute path", c.Spec.Worktree)
	case c.MaxOutput < 0 || c.MaxDiff < 0 || c.MaxFile < 0 || c.MaxFiles < 0:
		return errors.New("a limit is negative")
	case strings.HasPrefix(c.Branch, "-") || strings.ContainsRune(c.Branch, 0):
		return fmt.Errorf("%q is not the name of a branch", c.Branch)
	case len(c.Logins) > 0 && c.Provider.Capabilities().Files == sandboxes.InPlace:
		return fmt.Errorf("sandbox %s has no home of its own: %w; commands use the logins of this host already",
			c.Provider.Name(), sandboxes.ErrUnsupported)
	}
	for _, p := range c.Outputs {
		if err := checkPattern(p); err != nil {
			return err
		}
	}
	return nil
}

// Name is the id of the run. A [sandboxes.Reaper] finds by it what a crash has left behind.
func (s *Session) Name() string { return s.config.Spec.Run }

// Workdir is the path of the workspace as commands see it.
func (s *Session) Workdir() string { return s.box.Workdir() }

// Base is the commit that the diff starts from, or the empty tree in a repository without commits; empty when there is no
// diff. Where files are copied without a Spec.GitDir, it is the tree of the workspace's files at Prepare, without ignored
// ones.
func (s *Session) Base() string { return s.base }

// CommandPrefix returns the words to put before a command's argv so that any program of the host can run it inside. A
// provider without such words gives [sandboxes.ErrUnsupported]; Run works with all of them.
func (s *Session) CommandPrefix() ([]string, error) {
	name := s.config.Provider.Name()
	p, ok := sandboxes.As[sandboxes.Prefixer](s.box)
	if !ok {
		return nil, fmt.Errorf("sandbox %s has no command prefix: %w; run the command through the session", name, sandboxes.ErrUnsupported)
	}
	prefix, err := p.CommandPrefix()
	if err != nil {
		return nil, fmt.Errorf("command prefix of sandbox %s: %w", name, err)
	}
	return prefix, nil
}

// Notices lists what was lost to limits so far, which files could not be fetched, and which logins are
// inside. The list is complete after Cleanup.
func (s *Session) Notices() []sandboxes.Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.notices, sandboxes.NoticesOf(s.box))
}

func (s *Session) notice(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := (sandboxes.Notice{Text: printable(fmt.Sprintf(format, args...))}); !slices.Contains(s.notices, n) {
		s.notices = append(s.notices, n)
	}
}

// Secrets are the values of the login files that were copied in, for keeping them out of logs.
func (s *Session) Secrets() []string { return slices.Clone(s.secrets) }

// Cleanup ends all commands and frees the sandbox. The workspace stays. It may be called again, also after an error.
func (s *Session) Cleanup(ctx context.Context) error {
	s.cleaning.Lock()
	defer s.cleaning.Unlock()
	if s.cleaned { // the run's id may be another session's by now
		return nil
	}
	err := s.box.Close(ctx)
	if err == nil {
		err = s.dropCopies(ctx)
	}
	if err != nil {
		return fmt.Errorf("clean up the session: %w", err)
	}
	s.cleaned = true
	return s.Workspace.Close()
}

// dropCopies removes copied files for good: after a sandbox that broke, Close leaves them for an Open of the same run, which
// no session does.
func (s *Session) dropCopies(ctx context.Context) error {
	p := s.config.Provider
	if r, ok := sandboxes.As[sandboxes.Reaper](p); ok && p.Capabilities().Files == sandboxes.Copy {
		return r.Reap(ctx, s.Name())
	}
	return nil
}
