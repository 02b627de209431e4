package container_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	attacks "github.com/ralph-pool/ralph/internal/attack"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/escape"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// TestNothingEscapes runs every attack of the suite on each engine. With copied files it leaves out attacks that do not
// involve files; `make soak` runs all.
func TestNothingEscapes(t *testing.T) {
	t.Parallel()
	names := []string{"docker", "podman", "docker" + copySuffix, "runsc", "podman-rootless"}
	if everything() {
		names = append(names, "podman"+copySuffix)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			require(t, name)
			if name == "podman-rootless" && os.Getuid() == 0 {
				asUser(t, os.Getenv(rootlessVar))
				return
			}
			r := rigs()[name]
			c := r.config(t)
			o := escape.Options{Weak: escape.Documented(sandboxes.Container)}
			if os.Getuid() == 0 {
				o.Owner = owner
			}
			if r.unbounded {
				// This engine cannot enforce limits, so the bombs would hit the machine.
				o.Unsafe = []string{"exhaust/processes", "exhaust/processes that nobody waits for", "exhaust/memory"}
			}
			if r.runtime == "runsc" {
				o.Weak = nil
				// Its first process can be killed, and the engine's limits apply to gVisor as a whole: any of its processes
				// may be killed.
				o.Unsafe = []string{
					"exhaust/processes", "exhaust/processes that nobody waits for", "exhaust/memory",
					"helper/signals to the first process", "helper/commands that hold its attention",
				}
			}
			if r.copies {
				o.Shared = share(t, &c)
			}
			o.Program = c.Helper // without the race detector it starts faster, especially in gVisor
			p := r.provider(c)
			escape.Run(t, slices.DeleteFunc(attacks.All(), r.same), func(escape.T) sandboxes.Provider { return p }, o)
		})
	}
}

// same reports whether the attack tests nothing in this rig that another rig does not test.
func (r rig) same(a escape.Attack) bool {
	kind, _, _ := strings.Cut(a.Name, "/")
	switch {
	case everything():
		return false
	case a.Name == "exhaust/half a gigabyte of output": // tests the engine's program, and takes as long as many other attacks
		return r.copies || r.runtime != "" || r.unbounded
	}
	return r.copies && slices.Contains([]string{"exhaust", "helper", "network", "privileges", "secrets", "service"}, kind)
}

// A command that makes its helper its tracer ends as usual, if only the engine's filter is active.
func TestTracedCommand(t *testing.T) {
	t.Parallel()
	const name = "docker"
	require(t, name)
	r := rigs()[name]
	c := r.config(t)
	c.Args = []string{"--security-opt", "seccomp=unconfined"}
	program := filepath.Join(scratch, "traced")
	sandboxtest.CopyProgram(t, program)
	box := enter(t, r.provider(c), sandboxes.Spec{
		Worktree: folder(t), Mounts: []sandboxes.Mount{{Host: program, Inside: "/srv/traced", ReadOnly: true}},
	})
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"/srv/traced", tracedMark}, Stdout: &out, Stderr: &out})
	if err != nil || exit.Code != 7 || exit.Signal != "" || out.String() != "traced\n" {
		t.Errorf("%+v, %v, %s", exit, err, &out)
	}
}

const tracedMark = "be-traced"

// traced makes the parent this process's tracer, and executes a shell.
func traced() error {
	runtime.LockOSThread()
	if _, _, errno := unix.Syscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0); errno != 0 {
		return errno
	}
	return unix.Exec("/bin/sh", []string{"sh", "-c", "echo traced; exit 7"}, os.Environ())
}

// traces runs this program as the traced command, if its arguments say so.
func traces() (status int, inside bool) {
	if len(os.Args) == 2 && os.Args[1] == tracedMark {
		fmt.Println(traced())
		return 1, true
	}
	return 0, false
}
