package sbx_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/sbx"
)

// lifeline creates a FIFO in the worktree. held reports whether a process has it open.
func lifeline(t *testing.T, dir string) (held func() bool) {
	t.Helper()
	path := filepath.Join(dir, "lifeline")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return func() bool {
		_, err := unix.Read(fd, make([]byte, 1))
		return err == unix.EAGAIN
	}
}

// A process left by a command is killed however it hides: it drops its environment, session and parent, and is nearly
// always in the middle of a fork or an exec.
func TestEndsWhatHides(t *testing.T) {
	t.Parallel()
	p, _ := withShim(t, nil)
	dir := t.TempDir()
	box, err := p.Open(t.Context(), sandboxes.Spec{Run: "hides", Worktree: dir})
	if err != nil {
		t.Fatal(err)
	}
	held := lifeline(t, dir)
	const script = `exec 9>lifeline
hide='n=0; while [ $n -lt 3 ]; do env -i setsid sh -c "exec env -i sh -c :" & n=$((n + 1)); wait; n=0; done'
for i in 1 2 3; do
	(env -i setsid sh -c "echo ready; $hide" &)
done | { read -r a; read -r b; read -r c; }
exit 5`
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", script}})
	if err != nil || exit.Code != 5 {
		t.Errorf("ended with %+v, %v", exit, err)
	}
	if held() {
		t.Error("a process has outlived the command")
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A client that ends while the command runs is an error, and all processes of the command end.
func TestEndsWithoutClient(t *testing.T) {
	t.Parallel()
	p, shim := withShim(t, nil)
	dir := t.TempDir()
	box, err := p.Open(t.Context(), sandboxes.Spec{Run: "lost", Worktree: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(shim.path("drop"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	held := lifeline(t, dir)
	_, err = box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "exec 9>lifeline; echo ready; sleep 1000"}})
	if err == nil || !strings.Contains(err.Error(), "sbx ended without saying how the command did: ERROR: connection lost") {
		t.Errorf("Exec: %v", err)
	}
	if held() {
		t.Error("the command has outlived its client")
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// If root has too few capabilities, it gets more to create namespaces, but the command does not.
func TestCommandHasUsersRights(t *testing.T) {
	t.Parallel()
	p, shim := withShim(t, nil)
	if err := os.WriteFile(shim.path("strict"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	want := "0 0 "
	if os.Getuid() == 0 { // otherwise only one user is available
		want = "4242 4242 4242 /home/agent"
		if err := os.WriteFile(shim.path("agent"), []byte("4242"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const dir = "/tmp" // open to every user, unlike a test's own folder; nothing is written there
	box, err := p.Open(t.Context(), sandboxes.Spec{Run: "user", Worktree: dir})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Stdout: &out, Stderr: &out, Argv: []string{"sh", "-c", `set -e
		echo $(id -u) $(id -g) $(id -G) "$HOME"; test -w .; umask; sed -n 's/^CapBnd:\s*//p' /proc/self/status`}})
	if err != nil || !exit.OK() {
		t.Fatalf("%+v, %v: %s", exit, err, &out)
	}
	var bounds uint64
	got, rest, _ := strings.Cut(out.String(), "\n")
	if _, err := fmt.Sscanf(rest, "0022\n%x", &bounds); err != nil {
		t.Errorf("umask and capabilities are %q: %v", rest, err)
	}
	if !strings.HasPrefix(got, want) {
		t.Errorf("it runs as %q, want %q", got, want)
	}
	if bounds&(1<<unix.CAP_SYS_ADMIN) != 0 || bounds&(1<<unix.CAP_CHOWN) == 0 {
		t.Errorf("its capabilities are bounded by %x", bounds)
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// The user inside cannot exceed the limit of processes.
func TestHoldsProcesses(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can play a microVM with a second user, and root has no limit")
	}
	p, shim := withShim(t, nil)
	agent := strconv.Itoa(1_000_000 + os.Getpid()) // a user that no other test has
	if err := os.WriteFile(shim.path("agent"), []byte(agent), 0o644); err != nil {
		t.Fatal(err)
	}
	box, err := p.Open(t.Context(), sandboxes.Spec{Run: "many", Worktree: "/tmp", Limits: sandboxes.Limits{PIDs: 20}})
	if err != nil {
		t.Fatal(err)
	}
	for want, n := range map[int]string{0: "10", 2: "30"} {
		var out bytes.Buffer
		exit, err := box.Exec(t.Context(), sandboxes.Command{Stdout: &out, Stderr: &out, Argv: []string{
			"sh", "-c", `n=0; while [ $n -lt "$1" ]; do sleep 1000 & n=$((n + 1)); done`, "sh", n}})
		if err != nil || exit.OK() != (want == 0) {
			t.Errorf("%s processes: %+v, %v: %s", n, exit, err, &out)
		}
	}
	if err := box.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Open fails if the template lacks a required program, so that a run does not fail later.
func TestOpenNeedsNamespaces(t *testing.T) {
	t.Parallel()
	var state string
	p, shim := withShim(t, func(c *sbx.Config) { state = c.StateDir })
	shim.answer(t, "exec --user", "unshare: not found\n", 127)
	_, err := p.Open(t.Context(), sandboxes.Spec{Run: "poor", Worktree: t.TempDir()})
	const want = "root inside cannot make namespaces for commands: sbx exec: unshare: not found; the template needs util-linux"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open: %v", err)
	}
	if left, _ := os.ReadDir(state); len(left) > 0 {
		t.Errorf("left in the state folder: %v", left)
	}
}
