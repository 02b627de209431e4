package tempdir_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/tempdir"
)

// holder makes the test binary hold a folder until it is killed.
const holder = "TEMPDIR_TEST_HOLDER"

const prefix = "test-held-"

func TestMain(m *testing.M) {
	if os.Getenv(holder) == "" {
		os.Exit(m.Run())
	}
	dir, _, err := tempdir.Held(prefix)
	fmt.Println(dir, err)
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// startHolder starts a process that holds a folder. kill ends it like a crash.
func startHolder(t *testing.T) (dir string, kill func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), holder+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		_, _, _ = cmd.Process.Kill(), cmd.Wait(), in.Close()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	dir, said, _ := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || said != "<nil>" {
		t.Fatalf("the holder says %q, %v", line, err)
	}
	return dir, kill
}

// Held removes the folders of dead processes, but neither those of living ones nor folders with another prefix.
func TestHeldRemovesWhatIsLeft(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dead, kill := startHolder(t)
	if err := os.WriteFile(filepath.Join(dead, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	alive, _ := startHolder(t)
	other := filepath.Join(temp, "test-other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	kill()
	dir, remove, err := tempdir.Held(prefix)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{dead: false, alive: true, other: true, dir: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", path, err, want)
		}
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it is still there")
	}
}

// A link in place of the folder, which another user could have created, is neither used nor followed.
func TestForRunTrustsNoLink(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir, _, err := tempdir.ForRun("run-1")
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if other, _, err := tempdir.ForRun("run-2"); err != nil || other == dir {
		t.Errorf("another run has %s too, %v", other, err)
	}
	again, remove, err := tempdir.ForRun("run-1")
	if err != nil || again != dir {
		t.Errorf("after a crash: %s, %v", again, err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
	if err := tempdir.RemoveRun("run-1"); err != nil {
		t.Error(err)
	}
	if err := tempdir.RemoveRun("run-1"); err != nil {
		t.Errorf("nothing is left: %v", err)
	}
	precious := filepath.Join(temp, "precious")
	if err := os.Mkdir(precious, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, dir); err != nil {
		t.Fatal(err)
	}
	if got, _, err := tempdir.ForRun("run-1"); err == nil || !strings.Contains(err.Error(), "not ours") {
		t.Errorf("%s, %v", got, err)
	}
	if err := tempdir.RemoveRun("run-1"); err != nil {
		t.Error(err)
	}
	for _, path := range []string{precious, dir} {
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

// Another user's folder is neither used nor removed.
func TestForRunTrustsNobodyElse(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make another user's folder")
	}
	t.Setenv("TMPDIR", t.TempDir())
	dir, _, err := tempdir.ForRun("run")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if got, _, err := tempdir.ForRun("run"); err == nil {
		t.Errorf("%s is used", got)
	}
	if err := tempdir.RemoveRun("run"); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

// A folder that was not removed at the end of its run is removed by a later sweep. The folder of an active run stays.
func TestSweep(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	left, remove, err := tempdir.ForRun("left")
	if err != nil {
		t.Fatal(err)
	}
	open, _, err := tempdir.ForRun("open")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(left, "egress"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	aside := filepath.Join(temp, "aside")
	if err := os.Rename(left, aside); err != nil {
		t.Fatal(err)
	}
	if err := remove(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(aside, left); err != nil { // simulates a failed removal
		t.Fatal(err)
	}
	tempdir.Sweep()
	for path, want := range map[string]bool{left: false, open: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", path, err, want)
		}
	}
}

// A sweep that is removing the folder of a dead run does not remove the folder of the run that continues it.
func TestForRunDuringASweep(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	left, _, err := tempdir.ForRun("run")
	if err != nil {
		t.Fatal(err)
	}
	if err := tempdir.RemoveRun("run"); err != nil || os.Mkdir(left, 0o700) != nil {
		t.Fatal(err)
	}
	sweeper, err := os.Open(left)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(sweeper.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	swept := make(chan error)
	go func() { swept <- errors.Join(os.RemoveAll(left), sweeper.Close()) }()
	dir, remove, err := tempdir.ForRun("run") // before, during or after the removal
	if err := errors.Join(err, <-swept); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
	if err := remove(); err != nil {
		t.Error(err)
	}
}

// TestHeldSaysWhatNamesThePlace is not parallel, because the environment belongs to the whole process.
func TestHeldSaysWhatNamesThePlace(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	if _, _, err := tempdir.Held("ralph-test-"); err == nil || !strings.Contains(err.Error(), "TMPDIR") {
		t.Error(err)
	}
}

// If no folder can be created, the error names the variable to set.
func TestNoPlace(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	for name, fold := range map[string]func(string) (string, func() error, error){"a run": tempdir.ForRun, "a process": tempdir.Held} {
		if _, _, err := fold("a"); err == nil || !strings.HasSuffix(err.Error(), "; TMPDIR names another place") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
