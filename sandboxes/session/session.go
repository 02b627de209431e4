// Package session runs commands over one workspace in a sandbox of any provider and collects what came of them: prepare,
// run, collect, cleanup.
//
// It is for programs that use ralph's sandboxes without ralph's loop. [Prepare] opens the sandbox, [Session.Run] runs a
// command in it, [Session.Collect] gathers the diff, the logs and the named output files, and [Session.Cleanup] ends it.
// Files go in and out by [Workspace]. All that comes back was made by whatever ran inside: it is data, bounded in size,
// and no program of the host acts on it. A Session is safe for use by several goroutines.
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

// Config says what to prepare. Provider and Spec.Worktree are needed.
type Config struct {
	// Provider makes the sandbox. With Copy files, what a command has written is in the workspace when Run returns, and
	// what is put into the workspace meanwhile is there for the next command.
	Provider sandboxes.Provider
	// Spec is what the sandbox is opened with. Its Worktree is the workspace, which is made when there is none; an id of
	// the run is chosen when it names none. With Copy files, commands find a git repository inside only when its GitDir
	// names one, and the Pack what that one borrows.
	Spec sandboxes.Spec
	// Outputs are the files that Collect returns, as patterns for [Workspace.ListFiles].
	Outputs []string
	// Metadata is handed on to the artefacts.
	Metadata map[string]string

	MaxOutput int   // bytes kept of each command's stdout, and as many of stderr; default 1 MiB
	MaxDiff   int64 // bytes of the diff; default 16 MiB
	MaxFile   int64 // bytes of one file that is read; default 64 MiB
	MaxFiles  int64 // bytes of all output files together; default 256 MiB
}

// Session is a workspace with a sandbox around it.
type Session struct {
	// Workspace is the files that commands work on. It is closed by Cleanup.
	Workspace *Workspace

	config Config
	box    sandboxes.Sandbox
	base   string // the tree or commit that the diff starts from; empty: there is none
	gitDir string // where inside the repository is that the base is in; empty: the workspace's own
	noBase string // why there is none

	mu   sync.Mutex
	logs []Result // guarded by mu
}

// Prepare makes the workspace where it is missing, opens the sandbox, and notes the commit that the diff will start from.
func Prepare(ctx context.Context, c Config) (*Session, error) {
	s, err := prepare(ctx, c.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("prepare the session: %w", err)
	}
	return s, nil
}

func prepare(ctx context.Context, c Config) (*Session, error) {
	if err := c.problem(); err != nil {
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
	s := &Session{Workspace: w, config: c, box: box}
	if err := s.noteBase(ctx); err != nil {
		return nil, errors.Join(err, s.Cleanup(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (c Config) withDefaults() Config {
	c.Spec.Run = cmp.Or(c.Spec.Run, "session-"+strings.ToLower(rand.Text()))
	c.Outputs = slices.Clone(c.Outputs)
	c.Metadata = maps.Clone(c.Metadata)
	c.MaxOutput = cmp.Or(c.MaxOutput, 1<<20)
	c.MaxDiff = cmp.Or(c.MaxDiff, 16<<20)
	c.MaxFile = cmp.Or(c.MaxFile, defaultMaxFile)
	c.MaxFiles = cmp.Or(c.MaxFiles, 256<<20)
	return c
}

// problem is what is wrong with the values.
func (c Config) problem() error {
	switch {
	case c.Provider == nil:
		return errors.New("no provider is named")
	case !filepath.IsAbs(c.Spec.Worktree):
		return fmt.Errorf("workspace %q is not an absolute path", c.Spec.Worktree)
	case c.MaxOutput < 0 || c.MaxDiff < 0 || c.MaxFile < 0 || c.MaxFiles < 0:
		return errors.New("a limit is negative")
	}
	for _, p := range c.Outputs {
		if err := checkPattern(p); err != nil {
			return err
		}
	}
	return nil
}

// Name is the id of the run, by which what a crash leaves behind is found (sandboxes.Reaper).
func (s *Session) Name() string { return s.config.Spec.Run }

// Base is the commit that the diff starts from, or the empty tree in a repository without commits; empty when the
// workspace is in no repository. With Copy files and no Spec.GitDir it is the tree of the workspace's files at Prepare,
// without ignored ones.
func (s *Session) Base() string { return s.base }

// Notices says what the sandbox's limits have cost so far, each in one line. It is complete after Cleanup.
func (s *Session) Notices() []string { return sandboxes.NoticesOf(s.box) }

// Left says, in one line, which files of a sandbox with Copy files were refused when they were last copied back; empty
// when all are in the workspace. It is complete after Cleanup.
func (s *Session) Left() string { return sandboxes.LeftIn(s.box) }

// Cleanup ends what runs and frees the sandbox. The workspace stays. It may be called again, also after an error.
func (s *Session) Cleanup(ctx context.Context) error {
	if err := s.box.Close(ctx); err != nil {
		return fmt.Errorf("clean up the session: %w", err)
	}
	return s.Workspace.Close()
}
