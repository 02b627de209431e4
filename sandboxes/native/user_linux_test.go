package native_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// asUser is set in the environment of the test program that runs as an ordinary user.
const asUser = "NATIVE_TEST_AS_USER"

// ordinary is the user of that program.
const ordinary = 65534

// TestAsOrdinaryUser runs the whole package again without root's rights, when it has them.
func TestAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		return // all the other tests are this one
	}
	dir, err := os.MkdirTemp("", "native-user-") //nolint:usetesting // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tmp := filepath.Join(dir, "tmp")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(tmp, 0o755), os.Chown(tmp, ordinary, ordinary)); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "native.test")
	sandboxtest.CopyProgram(t, program)
	cmd := exec.CommandContext(t.Context(), program, "-test.timeout=600s", "-test.shuffle=on")
	if testing.Short() {
		cmd.Args = append(cmd.Args, "-test.short")
	}
	cmd.Dir = tmp
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + tmp, "TMPDIR=" + tmp, asUser + "=1", "GORACE=" + os.Getenv("GORACE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as user %d: %v\n%s", ordinary, err, out)
	}
}
