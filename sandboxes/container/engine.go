package container

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ralph-pool/ralph/sandboxes/container/internal/describe"
	"github.com/ralph-pool/ralph/sandboxes/internal/engine"
	"github.com/ralph-pool/ralph/sandboxes/reexec"
)

// Engine describes a program that runs containers. For another program with the same command line, start from [Docker] or
// [Podman] and change the differing fields.
type Engine struct {
	// Name is the provider's name.
	Name string
	// Command is the program and its leading arguments; default Name.
	Command []string
	// Dialect is the program's CLI dialect.
	Dialect Dialect
}

// Dialect names a CLI dialect.
type Dialect string

const (
	DialectDocker Dialect = "docker"
	DialectPodman Dialect = "podman"
)

// Docker returns the engine of the docker program.
func Docker() Engine { return Engine{Name: "docker", Dialect: DialectDocker} }

// Podman returns the engine of the podman program.
func Podman() Engine { return Engine{Name: "podman", Dialect: DialectPodman} }

// dialect describes the differences between CLI dialects.
type dialect struct {
	info         []string // arguments that print the input of describe
	describe     func([]byte) (describe.Engine, error)
	run          []string          // arguments of every container
	remove       []string          // arguments that remove containers by force, at once
	ownerOptions func(user) string // tmpfs options that set the owner
	// resolve returns arguments that make names resolve to loopback without host files; the volume contains such files.
	resolve      func(ctx context.Context, pl *plan, volume string) ([]string, error)
	hosts        bool   // it copies the host's /etc/hosts and address into containers
	noCopyOption string // volume option against copying the image's files into it
	relabel      string // mount option for the SELinux label; "": there is none
}

func (e Engine) dialect() dialect {
	if e.Dialect == DialectPodman {
		return dialect{
			info:     []string{"info", "--format", "json"},
			describe: describe.Podman,
			run: []string{
				"--http-proxy=false",      // otherwise the host's proxy, with its password, is visible inside
				"--read-only-tmpfs=false", // otherwise unlimited tmpfs mounts exist
			},
			remove:       []string{"rm", "--force", "--time", "0", "--volumes"},
			ownerOptions: func(user) string { return "U,notmpcopyup" },
			resolve:      resolveByFile,
			hosts:        true,
			relabel:      "relabel=",
		}
	}
	return dialect{
		info:     []string{"info", "--format", "{{json .}}"},
		describe: describe.Docker,
		// The user's docker configuration may contain a proxy with its password. Docker passes it to every container
		// without a value of its own.
		run: []string{
			"--env", "HTTP_PROXY=", "--env", "http_proxy=", "--env", "HTTPS_PROXY=", "--env", "https_proxy=",
			"--env", "FTP_PROXY=", "--env", "ftp_proxy=", "--env", "ALL_PROXY=", "--env", "all_proxy=",
			"--env", "NO_PROXY=", "--env", "no_proxy=",
		},
		remove:       []string{"rm", "--force", "--volumes"},
		resolve:      resolveByDNS,
		noCopyOption: "volume-nocopy",
		ownerOptions: func(u user) string { return fmt.Sprintf("uid=%d,gid=%d", u.uid, u.gid) },
	}
}

// program returns the engine's program.
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
	return p.program().Limit(p.timeouts.call).Call(ctx, args...)
}

// helper returns the command line of ralph's own program inside.
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
