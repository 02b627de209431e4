// Package runner starts a sandbox of any provider for one workspace, runs commands in it, and leaves a record in a folder
// of artefacts: start, command prefix or exec, close.
//
// It is for programs that use ralph's sandboxes without ralph's loop, and want to say everything in one [Config]: mounts,
// limits, which of the host's variables go in, which network, and an image that is built when its content changed. What
// a provider cannot do is refused with [sandboxes.ErrUnsupported]. An [Instance] is safe for use by several goroutines.
//
// With Copy files the workspace and the artefacts' files are on the host whenever an Exec returns.
//
// The folder of artefacts holds sandbox.json (what was started, without a value of the environment), commands.jsonl (one
// line a command), logs (what each command printed, secrets masked), build.log (when an image was built), and files,
// where commands inside leave what they like: it is data that nobody vouches for.
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
)

// filesInside is where commands in an isolating sandbox find the artefacts' folder "files".
const filesInside = "/artefacts"

// Config says what to start. Spec.Worktree, Artefacts, and one of Provider and Image are needed.
type Config struct {
	// Provider makes the sandbox.
	Provider sandboxes.Provider
	// Image, in the place of Provider, is built first where it is missing.
	Image *Image
	// Spec is what the sandbox is opened with: the workspace as Worktree, Mounts, Limits, and with Env what is set over
	// the allowed variables. An id of the run is chosen when it names none.
	Spec sandboxes.Spec
	// Artefacts is the absolute path of a folder for this run alone, which is made when there is none.
	Artefacts string
	// EnvAllow are the variables of HostEnv that go in, by their exact names. A sandbox always has its provider's own
	// base too, which for "none" is what it was made with (sandboxes.NoneConfig).
	EnvAllow []string
	// HostEnv is the host's environment ("K=V"); nil means that of this process.
	HostEnv []string
	// Network is what the sandbox may reach; default NetworkNone.
	Network Network
	// Secrets are names of variables whose values are masked in logs, besides those whose names tell that they are
	// secret, such as API_TOKEN.
	Secrets []string
	// MaxLog is how many bytes of each output are logged; default 64 MiB.
	MaxLog int64
}

// Network is what a sandbox may reach.
type Network string

const (
	// NetworkNone: nothing.
	NetworkNone Network = "none"
	// NetworkAllowed: what the egress proxy at Spec.Egress lets through.
	NetworkAllowed Network = "allow-list"
	// NetworkOpen: what the provider leaves open; it must be one that closes nothing.
	NetworkOpen Network = "open"
)

// Prefixer is implemented by sandboxes that a host program can enter by a command line of its own.
type Prefixer interface {
	// CommandPrefix is what to put before a command's argv to run it inside, such as docker exec and its arguments. What
	// is started in this way is not ended before the sandbox is.
	CommandPrefix() ([]string, error)
}

// Instance is a sandbox that was started.
type Instance struct {
	box      sandboxes.Sandbox
	provider string
	files    string // the artefacts' folder "files", as commands see it
	record   *record
	env      []string // that secrets are taken from
	secrets  []string // names of more of them
	maxLog   int64
	count    atomic.Int64
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
	if err := c.problem(); err != nil {
		return nil, err
	}
	r, err := openRecord(c.Artefacts, c.Spec.Worktree)
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
	provider, tag := c.Provider, ""
	if c.Image != nil {
		var err error
		if provider, tag, err = c.Image.ready(ctx, r); err != nil {
			return nil, err
		}
	}
	if err := c.unsupported(provider); err != nil {
		return nil, err
	}
	files := filepath.Join(c.Artefacts, "files")
	if provider.Capabilities().Files != sandboxes.InPlace {
		c.Spec.Mounts = append(slices.Clip(c.Spec.Mounts), sandboxes.Mount{Host: files, Inside: filesInside, Own: true})
		files = filesInside
	}
	c.Spec.Env = slices.Concat(allowed(c.HostEnv, c.EnvAllow), c.Spec.Env)
	box, err := provider.Open(ctx, c.Spec)
	if err != nil {
		return nil, err
	}
	in := &Instance{
		box: box, provider: provider.Name(), files: files, record: r, maxLog: c.MaxLog,
		env: slices.Concat(c.HostEnv, c.Spec.Env), secrets: slices.Clone(c.Secrets),
	}
	if err := r.started(c, provider, tag, box.Workdir()); err != nil {
		return nil, errors.Join(err, box.Close(context.WithoutCancel(ctx)))
	}
	return in, nil
}

func (c Config) withDefaults() Config {
	c.Spec.Run = cmp.Or(c.Spec.Run, "runner-"+strings.ToLower(rand.Text()))
	c.Network = cmp.Or(c.Network, NetworkNone)
	c.MaxLog = cmp.Or(c.MaxLog, 64<<20)
	if c.HostEnv == nil {
		c.HostEnv = os.Environ()
	}
	return c
}

// Name is the id of the run, by which what a crash leaves behind is found (sandboxes.Reaper).
func (in *Instance) Name() string { return in.record.sandbox.Run }

// Workdir is the path of the workspace as commands see it.
func (in *Instance) Workdir() string { return in.box.Workdir() }

// Files is the path, as commands see it, of the artefacts' folder that they may write to.
func (in *Instance) Files() string { return in.files }

// CommandPrefix is what to put before a command's argv to run it inside from any host program. A provider without such
// a command line gives ErrUnsupported; Exec works with all of them. With Copy files, what such a command has written is
// on the host after the next Exec, or after Close.
func (in *Instance) CommandPrefix() ([]string, error) {
	p, ok := in.box.(Prefixer)
	if !ok {
		return nil, fmt.Errorf("sandbox %s has no command prefix: %w; use Exec", in.provider, sandboxes.ErrUnsupported)
	}
	prefix, err := p.CommandPrefix()
	if err != nil {
		return nil, fmt.Errorf("command prefix of sandbox %s: %w", in.provider, err)
	}
	return prefix, nil
}

// Notices says what the sandbox's limits have cost so far, each in one line. It is complete after Close, and in
// sandbox.json then.
func (in *Instance) Notices() []string { return sandboxes.NoticesOf(in.box) }

// Left says, in one line, which files of a sandbox with Copy files were refused when they were last copied back; empty
// when all are on the host. It is complete after Close, and in sandbox.json then.
func (in *Instance) Left() string { return sandboxes.LeftIn(in.box) }

// Close ends everything that runs inside, frees the sandbox and completes sandbox.json. Workspace and artefacts stay. It
// may be called again, also after an error.
func (in *Instance) Close(ctx context.Context) error {
	if err := in.box.Close(ctx); err != nil {
		return err
	}
	return in.record.closed(in.Notices(), in.Left())
}
