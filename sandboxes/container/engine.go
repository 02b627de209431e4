package container

import (
	"context"
	"fmt"
	"slices"
	"strconv"
)

// Engine is a program that runs containers, by its command line. Start from [Docker] or [Podman], and change what is
// different, for one that speaks as they do.
type Engine struct {
	// Name is the provider's name.
	Name string
	// Command is the program, and the arguments that come before its own; default Name.
	Command []string
	// Dialect is whose command line it understands.
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

// tongue is how one dialect says what the other says differently.
type tongue struct {
	info   []string          // prints what readInfo reads
	run    []string          // for every container
	remove []string          // removes containers by force, at once
	owned  func(user) string // the options of a tmpfs that give it to a user
	// resolve is what makes names lead to loopback without a mounted file; the volume holds one.
	resolve func(ctx context.Context, p *Provider, volume string) ([]string, error)
	bare    string // the option of a volume that keeps out of it what the image has there, and its owner
	relabel string // the option of a mount that sets its SELinux label; empty: there is none
}

func (e Engine) tongue() tongue {
	if e.Dialect == DialectPodman {
		return tongue{
			info: []string{"info", "--format", "json"},
			run: []string{
				"--http-proxy=false",      // or the host's proxy, with its password, is told inside
				"--read-only-tmpfs=false", // or there are unbounded ones
			},
			remove:  []string{"rm", "--force", "--time", "0", "--volumes"},
			owned:   func(user) string { return "U,notmpcopyup" },
			resolve: resolveByFile,
			relabel: ",relabel=",
		}
	}
	return tongue{
		info: []string{"info", "--format", "{{json .}}"},
		// The user's docker configuration may hold a proxy with its password, which docker tells every container
		// that has no value of its own.
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

// argv is a command line of the engine.
func (e Engine) argv(args ...string) []string {
	command := e.Command
	if len(command) == 0 {
		command = []string{e.Name}
	}
	return slices.Concat(command, args)
}

// user is a numeric user and group.
type user struct{ uid, gid int }

func (u user) String() string { return strconv.Itoa(u.uid) + ":" + strconv.Itoa(u.gid) }
