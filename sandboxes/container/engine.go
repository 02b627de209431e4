package container

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ralph-pool/ralph/sandboxes/container/describe"
	"github.com/ralph-pool/ralph/sandboxes/engine"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// Engine is a program that runs containers, by its command line. Start from [Docker] or [Podman], and change what is
// different, for one with the same command line.
type Engine struct {
	// Name is the provider's name.
	Name string
	// Command is the program, and the arguments that come before its own; default Name.
	Command []string
	// Dialect is the command line that it understands.
	Dialect Dialect
}

// Dialect is a command line.
type Dialect string

const (
	DialectDocker Dialect = "docker"
	DialectPodman Dialect = "podman"
)

// Docker is the docker program.
func Docker() Engine { return Engine{Name: "docker", Dialect: DialectDocker} }

// Podman is the podman program.
func Podman() Engine { return Engine{Name: "podman", Dialect: DialectPodman} }

// dialect is how one command line differs from the other.
type dialect struct {
	info     []string // prints the input of describe
	describe func([]byte) (describe.Engine, error)
	run      []string          // for every container
	remove   []string          // removes containers by force, at once
	owned    func(user) string // the options of a tmpfs that give it to a user
	// resolve gives the arguments that make names lead to loopback without a mounted file; the volume has such a file.
	resolve func(ctx context.Context, pl *plan, volume string) ([]string, error)
	hosts   bool   // it copies the host's /etc/hosts, and the host's address, into containers
	bare    string // the option of a volume that leaves out the image's files at that place
	relabel string // the option of a mount that sets its SELinux label; empty: there is none
}

func (e Engine) dialect() dialect {
	if e.Dialect == DialectPodman {
		return dialect{
			info:     []string{"info", "--format", "json"},
			describe: describe.Podman,
			run: []string{
				"--http-proxy=false",      // or the host's proxy, with its password, is visible inside
				"--read-only-tmpfs=false", // or there are unbounded ones
			},
			remove:  []string{"rm", "--force", "--time", "0", "--volumes"},
			owned:   func(user) string { return "U,notmpcopyup" },
			resolve: resolveByFile,
			hosts:   true,
			relabel: "relabel=",
		}
	}
	return dialect{
		info:     []string{"info", "--format", "{{json .}}"},
		describe: describe.Docker,
		// The user's docker configuration may hold a proxy with its password, which docker passes to every container that
		// has no value of its own.
		run: []string{
			"--env", "HTTP_PROXY=", "--env", "http_proxy=", "--env", "HTTPS_PROXY=", "--env", "https_proxy=",
			"--env", "FTP_PROXY=", "--env", "ftp_proxy=", "--env", "ALL_PROXY=", "--env", "all_proxy=",
			"--env", "NO_PROXY=", "--env", "no_proxy=",
		},
		remove:  []string{"rm", "--force", "--volumes"},
		resolve: resolveByDNS,
		bare:    "volume-nocopy",
		owned:   func(u user) string { return fmt.Sprintf("uid=%d,gid=%d", u.uid, u.gid) },
	}
}

// program is the engine's program.
func (p *Provider) program() engine.Program {
	command := p.engine.Command
	if len(command) == 0 {
		command = []string{p.engine.Name}
	}
	return engine.Program{
		Name: p.engine.Name, Command: command, Env: p.config.HostEnv,
		Missing: "install it",
	}
}

// call runs the engine's program and returns its output.
func (p *Provider) call(ctx context.Context, args ...string) (string, error) {
	return p.program().Limit(p.patience.call).Call(ctx, args...)
}

// helper is the command line of ralph's own program inside.
func helper(args ...string) []string {
	return append([]string{helperPath}, reexec.Args(role, args...)...)
}

const (
	endRounds = 50
	endPause  = 50 * time.Millisecond
)

// user is a numeric user and group.
type user struct{ uid, gid int }

func (u user) String() string { return strconv.Itoa(u.uid) + ":" + strconv.Itoa(u.gid) }
