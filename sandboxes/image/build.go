package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
)

// Engine is a container engine's command-line program.
type Engine struct {
	// Name is its name for people, such as "docker".
	Name string
	// Command is the program and its leading arguments; default Name.
	Command []string
	// Env is its environment; nil means that of this process.
	Env []string
	// Stdout and Stderr receive its output as it comes; nil discards it.
	Stdout, Stderr io.Writer
	// Interrupt asks it to end when it closes.
	Interrupt <-chan struct{}
}

// ExitError means that the engine ran and failed. Its output on Stderr has the reason.
type ExitError struct {
	Command string // such as "docker build"
	Code    int
}

func (e *ExitError) Error() string { return fmt.Sprintf("%s: exit status %d", e.Command, e.Code) }

// Build describes an image to build.
type Build struct {
	File    string // the build file
	Tag     string
	Context string   // the folder from which the build file copies
	Args    []string // build arguments, "KEY=VALUE"; see Args
	NoCache bool
	Pull    bool // ask the registry for a newer base image
}

// Build builds the image. If the engine fails, the error is an *ExitError.
func (e Engine) Build(ctx context.Context, b Build) error {
	argv := []string{"build", "--file", b.File, "--tag", b.Tag}
	for _, a := range b.Args {
		argv = append(argv, "--build-arg", a)
	}
	if b.NoCache {
		argv = append(argv, "--no-cache")
	}
	if b.Pull {
		argv = append(argv, "--pull")
	}
	return e.run(ctx, append(argv, "--", b.Context)...)
}

// ErrNoImage is returned by Remove when the engine has no such image.
var ErrNoImage = errors.New("there is no such image")

// Remove removes the image. If the engine fails, the error is an *ExitError.
func (e Engine) Remove(ctx context.Context, tag string) error {
	if e.isImageMissing(ctx, tag) {
		return ErrNoImage
	}
	return e.run(ctx, "rmi", "--", tag)
}

// isImageMissing reports whether the engine says that it has no such image. Any other problem shows when the image is removed.
func (e Engine) isImageMissing(ctx context.Context, tag string) bool {
	said := proc.NewTail(4 << 10)
	quiet := e
	quiet.Stdout, quiet.Stderr = nil, said
	if quiet.run(ctx, "image", "inspect", "--", tag) == nil {
		return false
	}
	text := strings.ToLower(said.String())
	return strings.Contains(text, "no such image") || strings.Contains(text, "image not known")
}

func (e Engine) run(ctx context.Context, args ...string) error {
	command := e.Command
	if len(command) == 0 {
		command = []string{e.Name}
	}
	env := e.Env
	if env == nil {
		env = os.Environ()
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("run %s: %w", e.Name, err)
	}
	exit, err := proc.Run(ctx, proc.Spec{
		Argv: slices.Concat(command, args), Dir: dir, Env: env,
		Stdout: e.Stdout, Stderr: e.Stderr, Interrupt: e.Interrupt,
	})
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s is not installed: %w", e.Name, err)
	case err != nil:
		return err
	case exit.Code != 0:
		return &ExitError{Command: e.Name + " " + args[0], Code: exit.Code}
	}
	return nil
}

// Args returns the build arguments, sorted: AGENT_UID and AGENT_GID of the current user (1000 for root, because an agent
// does not run as root), and the given "KEY=VALUE" arguments, which override them. The last of several with one key wins.
func Args(given []string) ([]string, error) {
	uid, gid := os.Getuid(), os.Getgid()
	if uid <= 0 {
		uid, gid = 1000, 1000
	}
	all := map[string]string{"AGENT_UID": strconv.Itoa(uid), "AGENT_GID": strconv.Itoa(gid)}
	for _, g := range given {
		key, value, ok := strings.Cut(g, "=")
		switch {
		case !ok:
			return nil, fmt.Errorf("build argument %q is not KEY=VALUE", g)
		case key == "":
			return nil, fmt.Errorf("build argument %q has no key", g)
		}
		all[key] = value
	}
	args := make([]string, 0, len(all))
	for _, key := range slices.Sorted(maps.Keys(all)) {
		args = append(args, key+"="+all[key])
	}
	return args, nil
}
