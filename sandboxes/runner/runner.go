// Package runner starts a sandbox of any provider for one workspace, runs commands in it, and leaves a record in a folder
// of artefacts: start, command prefix or exec, close.
//
// It is for programs that use ralph's sandboxes without ralph's loop and want to say everything in one [Config]: mounts,
// limits, which variables of the host go in, which network, and an image that is built when its content has changed. What
// a provider cannot do is refused with [sandboxes.ErrUnsupported]. An [Instance] is a [session.Session] that records, and
// is safe for use by several goroutines.
//
// The folder of artefacts holds sandbox.json (the sandbox, without values of the environment), commands.jsonl (one line
// for each command), logs (the output of each command, with secrets redacted), build.log (when an image was built), and
// files, where commands inside leave any results. Treat those as untrusted data.
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

// filesInside is where commands in an isolating sandbox find the artefacts' folder "files".
const filesInside = "/artefacts"

// Config describes what to start. Artefacts, Session.Spec.Worktree, and one of Session.Provider and Image are needed.
type Config struct {
	// Session is the workspace, the sandbox around it, and its limits. A runner makes a diff only with Diff set, and
	// ignores Session.Record.
	Session session.Config
	// Diff makes the artefacts of Collect have a diff, for which the sandbox needs a shell and git.
	Diff bool
	// Image, in place of Session.Provider, is built first when it is missing.
	Image *Image
	// Artefacts is the absolute path of a folder for this run alone. It is made when it is missing.
	Artefacts string
	// EnvAllow are the variables of HostEnv that go in, by their exact names; Session.Spec.Env wins over them. A sandbox
	// always has its provider's own base too, which for "none" is what it was made with (sandboxes.NoneConfig).
	EnvAllow []string
	// HostEnv is the host's environment ("K=V"); nil means that of this process.
	HostEnv []string
	// Network is what the sandbox may reach; default NetworkNone.
	Network Network
	// Secrets are names of variables whose values are redacted in logs, besides those whose names say that they are
	// secret, such as API_TOKEN. Values with fewer than 8 bytes are not redacted.
	Secrets []string
	// MaxLog is how many bytes of each output are logged; default 64 MiB.
	MaxLog int64
}

// Network is what a sandbox may reach.
type Network string

const (
	// NetworkNone: nothing.
	NetworkNone Network = "none"
	// NetworkAllowed: hosts that the egress proxy at Spec.Egress allows.
	NetworkAllowed Network = "allow-list"
	// NetworkOpen: everything that the provider does not block; it must be one without an egress allow-list.
	NetworkOpen Network = "open"
)

// Instance is a sandbox that was started. Its Run records each command.
type Instance struct {
	*session.Session
	files  string // the artefacts' folder "files", as commands see it
	record *record
	count  atomic.Int64
	config Config
}

// Start builds the image if one is asked for and missing, opens the sandbox, and writes sandbox.json.
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
		s.Spec.Mounts = append(slices.Clip(s.Spec.Mounts), sandboxes.Mount{Host: in.files, Inside: filesInside, Own: true})
		in.files = filesInside
	}
	s.Spec.Env = slices.Concat(allowed(c.HostEnv, c.EnvAllow), s.Spec.Env)
	s.NoDiff, s.Record = !c.Diff, in.log
	in.config = c
	var err error
	if in.Session, err = session.Prepare(ctx, *s); err != nil {
		return nil, err
	}
	if err := r.started(in, tag); err != nil {
		return nil, errors.Join(err, in.Cleanup(context.WithoutCancel(ctx)))
	}
	return in, nil
}

func (c Config) withDefaults() Config {
	s := &c.Session
	s.Spec.Run = cmp.Or(s.Spec.Run, "runner-"+strings.ToLower(rand.Text()))
	s.MaxOutput = cmp.Or(s.MaxOutput, 64<<10) // all of it is in the logs
	c.Network = cmp.Or(c.Network, NetworkNone)
	c.MaxLog = cmp.Or(c.MaxLog, 64<<20)
	if c.HostEnv == nil {
		c.HostEnv = os.Environ()
	}
	return c
}

// Exec is Run for callers who only want to know how the command ended. An error of the record is returned too: nil means
// that the command ran and all of its output is on disk.
func (in *Instance) Exec(ctx context.Context, cmd sandboxes.Command) (sandboxes.Exit, error) {
	r, err := in.Run(ctx, cmd)
	return r.Exit, err
}

// Files is the path, as commands see it, of the artefacts' folder that they may write to.
func (in *Instance) Files() string { return in.files }

// Close fetches the artefacts' files where the provider copies files, ends everything that runs inside, frees the sandbox
// and completes sandbox.json. Workspace and artefacts stay. It may be called again, also after an error: when files cannot
// be fetched the sandbox stays open, until Cleanup gives the files up.
func (in *Instance) Close(ctx context.Context) error {
	if err := in.fetchFiles(ctx); err != nil {
		return err
	}
	if err := in.Cleanup(ctx); err != nil {
		return err
	}
	return in.record.closed(in.Notices())
}

func (in *Instance) fetchFiles(ctx context.Context) error {
	to, err := in.record.root.OpenRoot(filesName)
	if errors.Is(err, os.ErrClosed) {
		return nil // Close has done its work
	}
	if err != nil {
		return fmt.Errorf("open the artefacts' files: %w", err)
	}
	return errors.Join(in.FetchFolder(ctx, in.files, to), to.Close())
}
