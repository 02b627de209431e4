package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
)

// callLimit is the longest that one call of the engine's program may take. None takes a second when all is well.
const callLimit = 2 * time.Minute

// callError is a call of the engine's program that did not succeed.
type callError struct {
	command string // such as "docker image inspect"
	code    int
	said    string // the last line of its standard error
}

func (e *callError) Error() string {
	if e.said == "" {
		return fmt.Sprintf("%s: exit status %d", e.command, e.code)
	}
	return e.command + ": " + e.said
}

// call runs the engine's program and returns what it prints.
func (p *Provider) call(ctx context.Context, args ...string) (string, error) {
	return p.callWith(ctx, input{limit: callLimit}, args...)
}

// input is what a call of the engine's program may have to read.
type input struct {
	from  io.Reader
	temp  string // where the program puts what it cannot hold; empty: where it likes
	limit time.Duration
}

func (p *Provider) callWith(ctx context.Context, in input, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, in.limit,
		fmt.Errorf("%s %s has not answered for %s", p.engine.Name, args[0], in.limit))
	defer cancel()
	env := p.config.HostEnv
	if in.temp != "" {
		env = append(slices.Clip(env), "TMPDIR="+in.temp)
	}
	var out bytes.Buffer
	errs := proc.NewTail(4 << 10)
	// No mark: podman's monitor of a container descends from this call and has to outlive it.
	exit, err := proc.Run(ctx, proc.Spec{
		Argv: p.engine.argv(args...), Dir: "/", Env: env, Stdin: in.from, Stdout: &out, Stderr: errs,
	})
	if err != nil {
		return "", p.startError(err)
	}
	if exit.Code != 0 {
		verb := args[0]
		if verb == "image" {
			verb += " " + args[1]
		}
		return "", &callError{command: p.engine.Name + " " + verb, code: exit.Code, said: lastLine(errs.String())}
	}
	return out.String(), nil
}

// startError says what is missing when the engine's program cannot be started.
func (p *Provider) startError(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is not installed: install it, or choose another sandbox with --sandbox: %w", p.engine.Name, err)
	}
	return err
}

// explain says why the engine does not answer, by trying its socket where that is a local one.
func (p *Provider) explain(ctx context.Context, err error) error {
	var call *callError
	if !errors.As(err, &call) || p.engine.Dialect != DialectDocker {
		return err
	}
	socket, local := p.socket()
	if !local {
		return fmt.Errorf("%w; it has to answer: docker info", err)
	}
	var d net.Dialer
	conn, dialErr := d.DialContext(ctx, "unix", socket)
	switch {
	case dialErr == nil:
		_ = conn.Close()
		return err
	case errors.Is(dialErr, syscall.EACCES):
		return fmt.Errorf("%s's socket %s is not yours to use: join its group with "+
			"sudo usermod -aG docker $USER and log in again (that group is as good as root), or use podman", p.engine.Name, socket)
	case errors.Is(dialErr, syscall.ENOENT), errors.Is(dialErr, syscall.ECONNREFUSED):
		return fmt.Errorf("%s's daemon does not run (nobody listens on %s): start it with "+
			"sudo systemctl start docker, or Docker Desktop", p.engine.Name, socket)
	}
	return fmt.Errorf("reach %s: %w", p.engine.Name, dialErr)
}

// socket is the unix socket that the docker program speaks to, when it is certain.
func (p *Provider) socket() (path string, local bool) {
	path = "/var/run/docker.sock"
	for _, e := range p.config.HostEnv {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case name == "DOCKER_CONTEXT" && value != "":
			return "", false
		case name == "DOCKER_HOST" && value != "":
			if path, local = strings.CutPrefix(value, "unix://"); !local {
				return "", false
			}
		}
	}
	return path, true
}

// explainImage says why an image cannot be looked at: the engine is away, or the image is.
func (p *Provider) explainImage(ctx context.Context, err error) error {
	var call *callError
	if !errors.As(err, &call) {
		return err
	}
	if _, infoErr := p.call(ctx, p.engine.tongue().info...); infoErr != nil {
		return p.explain(ctx, infoErr)
	}
	return fmt.Errorf("%s has no image %s; build it with: ralph image build --engine %s",
		p.engine.Name, p.config.Image, p.engine.Name)
}

// lastLine is the last line with something on it: programs say the cause last. Docker's advice on its help comes after it.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for len(lines) > 1 {
		last := strings.TrimSpace(lines[len(lines)-1])
		if last != "" && !(strings.HasPrefix(last, "Run '") && strings.HasSuffix(last, "--help' for more information")) {
			break
		}
		lines = lines[:len(lines)-1]
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
