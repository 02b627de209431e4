package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ordinary is the user id with which root's tests of landlock run.
const ordinary = 65534

// TestRealAgentsInLandlock: the real agents work a backlog in landlock, even if root runs the tests.
func TestRealAgentsInLandlock(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		return // covered by TestRealAgentsIsolated
	}
	agentProgram(t, "claude") // skips the test, or says what to install
	asOrdinary(t, "TestRealAgentsIsolated", "_in_landlock$", 2)
}

// asOrdinary runs a test of this program as an ordinary user, because landlock does not work for root. n parts of the test
// must pass. It never skips if the kernel has what landlock needs.
func asOrdinary(t *testing.T, test, part string, n int) {
	t.Helper()
	if !hasLandlock() {
		t.Skip("this kernel has no Landlock of ABI 6: it is older than Linux 6.12, or has it switched off")
	}
	dir, err := os.MkdirTemp("", "ralph-e2e-") //nolint:usetesting // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	here, tmp := filepath.Join(dir, "e2e"), filepath.Join(dir, "tmp")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(here, 0o755), os.Mkdir(tmp, 0o700), os.Chown(tmp, ordinary, ordinary)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(here, "e2e.test")
	copyOut(t, self, program)
	if _, err := os.Stat("../.tools/npm"); err == nil {
		copyOut(t, "../.tools/npm/", filepath.Join(dir, ".tools/npm"))
	}
	cmd := exec.CommandContext(t.Context(), program, "-test.v", "-test.timeout=300s", "-test.run=^"+test+"$/"+part)
	cmd.Dir = here
	cmd.Env = append(gitEnv(), "PATH="+os.Getenv("PATH"), "GORACE="+os.Getenv("GORACE"), "HOME="+tmp, "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinary, Gid: ordinary}}
	out, err := cmd.CombinedOutput()
	if passed := strings.Count(string(out), "--- PASS: "+test+"/"); err != nil || passed != n {
		t.Errorf("as user %d: %v, %d parts passed, want %d\n%s", ordinary, err, passed, n, out)
	}
}

// hasLandlock reports whether this kernel has the version of Landlock that the sandbox needs.
func hasLandlock() bool {
	const needed = 6
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0 && abi >= needed
}

// copyOut copies a file or folder to where other users can read it, with hard links if possible. Another process does it:
// while this process has a program open for writing, its forked children do, too, and then the program cannot be started.
func copyOut(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if exec.CommandContext(t.Context(), "cp", "--archive", "--link", from, to).Run() == nil {
		return
	}
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", `rm -rf "$2" && cp -R -P "$1" "$2"`, "sh", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v\n%s", from, err, out)
	}
}
