// Package runner opens a sandbox of any provider for one workspace, runs commands in it, and records them in a folder of
// artefacts.
//
// It is for programs that use ralph's sandboxes without ralph's loop, with all settings in one [Config]: mounts, limits,
// the host's variables that commands get, the network, and an image that is rebuilt when its content changes. A setting
// that the provider does not support fails with [sandboxes.ErrUnsupported]. An [Instance] is a [session.Session] that
// records its commands, and is safe for concurrent use.
//
// The folder of artefacts contains sandbox.json (the sandbox, without values of the environment), commands.jsonl (one line
// per command), logs (the output of each command, with secrets redacted), build.log (if an image was built), and files, in
// which commands may leave results. Treat those as untrusted data.
package runner

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/session"
)

// filesInside is the path of the artefacts' folder "files" in isolating sandboxes.
const filesInside = "/artefacts"

// Config configures Start. Artefacts, Session.Spec.Worktree, and one of Session.Provider and Image are required.
type Config struct {
	// Session is the workspace, its sandbox, and its limits. A runner makes a diff only if Diff is set, and ignores
	// Session.Record.
	Session session.Config
	// Diff adds a diff to the artefacts of Collect. The sandbox then needs a shell and git.
	Diff bool
	// Image replaces Session.Provider. It is built first if it is missing.
	Image *Image
	// Artefacts is the absolute path of a folder for this run alone. It is created if missing.
	Artefacts string
	// EnvAllow lists the names of HostEnv variables that commands get; Session.Spec.Env takes precedence. Commands also get
	// the provider's own base environment, which for "none" is that of sandboxes.NoneConfig.
	EnvAllow []string
	// HostEnv is the host's environment ("K=V"); nil means that of this process.
	HostEnv []string
	// Network selects what the sandbox may reach; default NetworkNone.
	Network Network
	// Secrets lists variables whose values are redacted in logs, in addition to those with secret-looking names, such as
	// API_TOKEN. Values shorter than 8 bytes are not redacted.
	Secrets []string
	// MaxLog is the maximum number of bytes in each log; default 64 MiB.
	MaxLog int64
}

// Network selects what a sandbox may reach.
type Network string

const (
	// NetworkNone allows nothing.
	NetworkNone Network = "none"
	// NetworkAllowed allows the hosts that the egress proxy at Spec.Egress allows.
	NetworkAllowed Network = "allow-list"
	// NetworkOpen allows everything. It needs a provider without an egress allow-list.
	NetworkOpen Network = "open"
)

// Instance is an open sandbox. Its Run records each command.
type Instance struct {
	*session.Session
	files  string // path inside of the artefacts' folder "files"
	record *record
	count  atomic.Int64
	config Config
}

// Start builds the image if one is configured and missing, opens the sandbox, and writes sandbox.json.
func Start(ctx context.Context, c Config) (*Instance, error) {
	in, err := start(ctx, c.withDefaults())
	if err != nil {
		return nil, fmt.Errorf("start the sandbox: %w", err)
	}
	return in, nil
}

func start(ctx context.Context, c Config) (*Instance, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	r, err := openRecord(c.Artefacts, c.Session.Spec.Worktree)
	if err != nil {
		return nil, err
	}
	in, err := open(ctx, c, r)
	if err != nil {
		return nil, errors.Join(err, r.close())
	}
	return in, nil
}

func open(ctx context.Context, c Config, r *record) (*Instance, error) {
	s, tag := &c.Session, ""
	if c.Image != nil {
		var err error
		if s.Provider, tag, err = c.Image.ready(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := c.unsupported(); err != nil {
		return nil, err
	}
	in := &Instance{files: filepath.Join(c.Artefacts, filesName), record: r}
	if s.Provider.Capabilities().Files != sandboxes.InPlace {
		s.Spec.Mounts = append(slices.Clip(s.Spec.Mounts), sandboxes.Mount{Host: in.files, Inside: filesInside, Exclusive: true})
		in.files = filesInside
	}
	s.Spec.Env = slices.Concat(pickVariables(c.HostEnv, c.EnvAllow), s.Spec.Env)
	s.NoDiff, s.Record = !c.Diff, in.log
	in.config = c
	var err error
	if in.Session, err = session.Prepare(ctx, *s); err != nil {
		return nil, err
	}
	if err := r.writeStart(in, tag); err != nil {
		return nil, errors.Join(err, in.Cleanup(context.WithoutCancel(ctx)))
	}
	return in, nil
}

func (c Config) withDefaults() Config {
	s := &c.Session
	s.Spec.Run = cmp.Or(s.Spec.Run, "runner-"+strings.ToLower(rand.Text()))
	s.MaxOutput = cmp.Or(s.MaxOutput, 64<<10) // the logs contain everything
	c.Network = cmp.Or(c.Network, NetworkNone)
	c.MaxLog = cmp.Or(c.MaxLog, 64<<20)
	if c.HostEnv == nil {
		c.HostEnv = os.Environ()
	}
	return c
}

// Exec is Run with only the Exit as result. It also returns an error of the record: nil means that the command ran and its
// output, up to MaxLog, is on disk.
func (in *Instance) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	r, err := in.Run(ctx, cmd)
	return r.Exit, err
}

// Files returns the path inside of the artefacts' folder that commands may write to.
func (in *Instance) Files() string { return in.files }

// Close fetches the artefacts' files if the provider copies files, ends all commands, closes the sandbox, and completes
// sandbox.json. It keeps workspace and artefacts. It may be called again, also after an error. If files cannot be fetched,
// the sandbox stays open until Cleanup, which abandons the files.
func (in *Instance) Close(ctx context.Context) error {
	if err := in.fetchFiles(ctx); err != nil {
		return err
	}
	if err := in.Cleanup(ctx); err != nil {
		return err
	}
	return in.record.complete(in.Notices())
}

func (in *Instance) fetchFiles(ctx context.Context) error {
	to, err := in.record.root.OpenRoot(filesName)
	if errors.Is(err, os.ErrClosed) {
		return nil // Close has succeeded before
	}
	if err != nil {
		return fmt.Errorf("open the artefacts' files: %w", err)
	}
	return errors.Join(in.FetchFolder(ctx, in.files, to), to.Close())
}
