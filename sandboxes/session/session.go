// Package session runs commands on one workspace in a sandbox of any provider and collects the results.
//
// It is for programs that use ralph's sandboxes without ralph's loop. [Prepare] opens the sandbox, [Session.Run] runs a
// command in it, [Session.Collect] gathers the diff, the logs and the configured output files, and [Session.Cleanup] closes
// it. [Workspace] reads and writes files of the workspace on the host. If the provider mounts the workspace, or works in
// it, both sides see each other's changes at once. If it copies files ([sandboxes.Copy]), Open copies them into the
// sandbox; later, [Session.Send] and [Session.Fetch] copy files, and Collect fetches the output files.
//
// All results come from the commands inside. They are untrusted data of limited size, and the host executes none of them. A
// Session is safe for concurrent use.
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

	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Config configures a session. Provider and Spec.Worktree are required.
type Config struct {
	// Provider opens the sandbox.
	Provider sandboxes.Provider
	// Spec is the spec of the sandbox. Its Worktree is the workspace, which is created if missing. An empty Run is replaced
	// by a random id. Its Name becomes the sandbox's own name.
	Spec sandboxes.Spec
	// Branch is the git branch for commands. Prepare switches the workspace's repository to it, inside the sandbox, and
	// creates it if missing. Empty: the current branch.
	Branch string
	// Logins lists login files of this host that every command may read, as paths below the home folder, such as
	// ".codex/auth.json". They are copied to the same path below the home inside. Inside they are not secret any more, and
	// [Session.Notices] says so; a provider that keeps credentials outside is the better choice.
	Logins []string
	// Home is the home folder on this host; default that of the user.
	Home string
	// Outputs lists the files that Collect returns, as patterns for [Workspace.ListFiles].
	Outputs []string
	// Metadata is copied to the artefacts.
	Metadata map[string]string
	// NoDiff omits the diff; the sandbox then needs neither a shell nor git.
	NoDiff bool
	// Record, if set, is called before each command and may change it, for example its writers. The returned function is
	// called with the result and the error of Run, and returns that error, joined with its own if any.
	Record func(*sandboxes.Command) (func(Result, error) error, error)

	MaxOutput int   // bytes kept of a command's stdout, and the same of its stderr; default 1 MiB
	MaxDiff   int64 // bytes of the diff; default 16 MiB
	MaxFile   int64 // bytes read of one file; default 64 MiB
	MaxFiles  int64 // bytes of all output files; default 256 MiB
}

// Session is a workspace with its open sandbox.
type Session struct {
	// Workspace accesses the commands' files on the host. Cleanup closes it.
	Workspace *Workspace

	config       Config
	box          sandboxes.Sandbox
	base         string // the tree or commit from which the diff starts; empty: none
	gitDir       string // the repository inside with the base; empty: the workspace's own
	noBaseReason string // the reason why there is no base

	cleaning sync.Mutex
	cleaned  bool // guarded by cleaning

	mu      sync.Mutex
	logs    []Result           // guarded by mu
	notices []sandboxes.Notice // guarded by mu
	secrets []string           // from logins; set only by Prepare
}

// Prepare creates the workspace if missing, opens the sandbox, copies the logins, switches to the branch, and records the
// start of the diff.
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
	s := &Session{Workspace: w, config: c, box: box, noBaseReason: "the session was asked for no diff"}
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

// check returns an error for values that no provider supports.
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

// Name returns the id of the run, with which a [sandboxes.Reaper] finds what a crash has left.
func (s *Session) Name() string { return s.config.Spec.Run }

// Workdir returns the path of the workspace inside.
func (s *Session) Workdir() string { return s.box.Workdir() }

// Base returns the commit from which the diff starts, or the empty tree in a repository without commits; empty if there is
// no diff. If files are copied without a Spec.GitDir, it is the tree of the workspace's files at Prepare, without ignored
// files.
func (s *Session) Base() string { return s.base }

// CommandPrefix returns the words to put before a command's argv to run it inside from any host program. A provider without
// such a prefix fails with [sandboxes.ErrUnsupported]; Run works with every provider.
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

// Notices lists what was killed at limits so far, which files could not be fetched, and which logins are inside. The list
// is complete after Cleanup.
func (s *Session) Notices() []sandboxes.Notice {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.notices, sandboxes.NoticesOf(s.box))
}

func (s *Session) notice(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := (sandboxes.Notice{Text: neutral.Line(fmt.Sprintf(format, args...))}); !slices.Contains(s.notices, n) {
		s.notices = append(s.notices, n)
	}
}

// Secrets returns the likely credentials in the copied login files, for redaction in logs.
func (s *Session) Secrets() []string { return slices.Clone(s.secrets) }

// Cleanup ends all commands and closes the sandbox. It keeps the workspace. It may be called again, also after an error.
func (s *Session) Cleanup(ctx context.Context) error {
	s.cleaning.Lock()
	defer s.cleaning.Unlock()
	if s.cleaned { // another session may use the run's id now
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

// dropCopies removes copied files permanently. After a sandbox has broken, Close keeps them for another Open of the same
// run, which a session never makes.
func (s *Session) dropCopies(ctx context.Context) error {
	p := s.config.Provider
	if r, ok := sandboxes.As[sandboxes.Reaper](p); ok && p.Capabilities().Files == sandboxes.Copy {
		return r.Reap(ctx, s.Name())
	}
	return nil
}
