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

// CopyProgram copies this program to where others may run it. Another process writes it: while this one has it open for
// writing, so has whatever it forks, and then nobody can start it.
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

// Ordinary is a user without rights.
const Ordinary = 65534

// AsOrdinaryUser runs the tests of this program whose names match once more, as [Ordinary]. Without root's rights it does
// nothing: then all tests are such.
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
