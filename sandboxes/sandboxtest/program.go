package sandboxtest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
)

// CopyProgram copies this test program to a place where other users can run it. A separate process writes the copy: while
// this process had it open for writing, its forks would hold it open, too, and the start would fail with ETXTBSY.
func CopyProgram(t *testing.T, to string) {
	t.Helper()
	from, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := proc.Run(t.Context(), proc.Spec{Argv: []string{"cp", from, to}, Env: os.Environ(), Stdout: &out, Stderr: &out})
	if err != nil || exit.Code != 0 {
		t.Fatalf("cp: %+v, %v\n%s", exit, err, &out)
	}
	if err := os.Chmod(to, 0o755); err != nil {
		t.Fatal(err)
	}
}

// Ordinary is the id of an unprivileged user and group.
const Ordinary = 65534

// AsOrdinaryUser runs the matching tests of this program again as [Ordinary]. Without root it does nothing: the tests
// already run as an ordinary user.
func AsOrdinaryUser(t *testing.T, tests string) {
	t.Helper()
	if os.Getuid() != 0 {
		return
	}
	dir, err := os.MkdirTemp("", "sandbox-user-") //nolint:usetesting // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tmp := filepath.Join(dir, "tmp")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(tmp, 0o755), os.Chown(tmp, Ordinary, Ordinary)); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "sandbox.test")
	CopyProgram(t, program)
	cmd := exec.CommandContext(t.Context(), program, "-test.timeout=600s", "-test.shuffle=on", "-test.run="+tests)
	if testing.Short() {
		cmd.Args = append(cmd.Args, "-test.short")
	}
	cmd.Dir = tmp
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp, "GORACE=" + os.Getenv("GORACE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Ordinary, Gid: Ordinary}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as user %d: %v\n%s", Ordinary, err, out)
	}
}
