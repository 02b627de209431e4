package container_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container"
	"github.com/ralph-pool/ralph/sandboxes/escapetest"
)

// TestNothingEscapes makes every attack of the suite.
func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docker", "podman", "docker" + copying, "podman" + copying, "runsc", "podman-rootless"} {
		t.Run(name, func(t *testing.T) {
			require(t, name)
			if name == "podman-rootless" && os.Getuid() == 0 {
				asUser(t, os.Getenv(rootlessVar))
				return
			}
			r := rigs()[name]
			c := r.config(t)
			o := escapetest.Options{Weak: weak(r)}
			if os.Getuid() == 0 {
				o.Owner = owner
			}
			if r.unbounded {
				// Here the engine cannot bound anything; the bombs would be the machine's.
				o.Unheld = []string{"exhaust/processes", "exhaust/processes that nobody waits for", "exhaust/memory"}
			}
			if r.runtime == "runsc" {
				// Its first process can be killed, and what the engine bounds is gVisor with all it runs: any of it may end.
				o.Unheld = []string{
					"exhaust/processes", "exhaust/processes that nobody waits for", "exhaust/memory",
					"helper/signals to the first process", "helper/commands that hold its attention",
				}
			}
			if r.files == sandboxes.Copy {
				o.Shared = share(t, &c)
			}
			o.Program = filepath.Join(scratch, "attacker-"+name)
			copyProgram(t, o.Program)
			p := container.New(r.engine, c)
			escapetest.Run(t, func(*testing.T) sandboxes.Provider { return p }, o)
		})
	}
}

// weak are the attacks that an engine's wall does not hold against, each told of in docs/sandboxes.md.
func weak(r rig) map[string][]string {
	if r.runtime == "runsc" {
		return nil
	}
	return map[string][]string{
		// What the kernel counts is the user's, of containers and host alike.
		"exhaust/watchers of files": {"inotify instances", "inotify watches"},
		// The names of the kernel's functions, without their addresses.
		"privileges/settings of the machine": {"read /proc/kallsyms"},
	}
}

// owner is who commands run as.
const owner = 1000

// A command that asks its helper to trace it ends as it would without, where the engine's filter is all there is.
func TestTracedCommand(t *testing.T) {
	t.Parallel()
	const name = "docker"
	require(t, name)
	r := rigs()[name]
	c := r.config(t)
	c.Args = []string{"--security-opt", "seccomp=unconfined"}
	program := filepath.Join(scratch, "traced")
	copyProgram(t, program)
	box := enter(t, container.New(r.engine, c), sandboxes.Spec{
		Worktree: folder(t), Mounts: []sandboxes.Mount{{Host: program, Inside: "/srv/traced", ReadOnly: true}},
	})
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"/srv/traced", tracedMark}, Stdout: &out, Stderr: &out})
	if err != nil || exit.Code != 7 || exit.Signal != "" || out.String() != "traced\n" {
		t.Errorf("%+v, %v, %s", exit, err, &out)
	}
}

const tracedMark = "be-traced"

// traced asks the parent to trace this process, and becomes a shell.
func traced() error {
	runtime.LockOSThread()
	if _, _, errno := unix.Syscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0); errno != 0 {
		return errno
	}
	return unix.Exec("/bin/sh", []string{"sh", "-c", "echo traced; exit 7"}, os.Environ())
}

// attack makes this program the attacker when it was started to be one.
func attack() (status int, inside bool) {
	if len(os.Args) == 2 && os.Args[1] == tracedMark {
		fmt.Println(traced())
		return 1, true
	}
	return escapetest.Attack(os.Args, os.Stdout)
}
