package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// smallDisk mounts a file system of this size in the machine's folder.
func (m machine) smallDisk(t *testing.T, size string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may mount; CI is root")
	}
	dir := filepath.Join(m.root, "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,"+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFullDiskIsNamed checks that one line names the full disk and what frees space, however many writes fail.
func TestFullDiskIsNamed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\nDo it.\n")
	m.commit(t)
	filler := m.program(t, "filler", "cat /dev/zero >junk; exit 3\n") + "/filler"
	args := []string{
		"--sandbox=none", "--agent-command=" + filler, "--gate=true", "--commit-author=A <a@b.c>",
		"--state-dir=" + m.smallDisk(t, "size=12m") + "/state",
	}
	const want = "the disk of ROOT/small is full; free some space by hand, then `ralph clean` removes what ended runs have left; min-free-mb ends runs before a disk is full\n"
	noFloor := func(h *compose.Host) { h.Env = append(h.Env, "RALPH_MIN_FREE_MB=0") }
	got := m.run(t, noFloor, append([]string{"work"}, args...)...)
	if got.status != exit.Parked || strings.Count(got.stderr, want) != 1 || strings.Count(got.stderr, "journal not written") > 1 || strings.Contains(got.stderr, "{") {
		t.Errorf("work: %+v", got)
	}
	if got := m.run(t, noFloor, append([]string{"run", "--prompt=hi"}, args...)...); strings.Count(got.stderr, want) != 1 {
		t.Errorf("run: %+v", got)
	}
}

// TestReadOnlyState checks that commands that only read work with a state folder that nobody can write.
func TestReadOnlyState(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\nDo it.\n")
	m.commit(t)
	agent := m.program(t, "agent", "echo working; exit 3\n") + "/agent"
	disk := m.smallDisk(t, "size=12m")
	state := "--state-dir=" + disk + "/state"
	noFloor := func(h *compose.Host) { h.Env = append(h.Env, "RALPH_MIN_FREE_MB=0") }
	_ = m.run(t, noFloor, "work", "--sandbox=none", "--agent-command="+agent, "--gate=true", "--commit-author=A <a@b.c>", state)
	temp, err := filepath.Glob(filepath.Join(disk, "state", "*", "tmp"))
	if err != nil || len(temp) != 1 {
		t.Fatal(temp, err)
	}
	if err := os.RemoveAll(temp[0]); err != nil { // the folder of this process would do
		t.Fatal(err)
	}
	look := func(where string) {
		for _, args := range [][]string{{"status"}, {"status", "one"}, {"show", "one"}, {"cost"}, {"logs", "one"}} {
			if got := m.run(t, nil, append(args, state)...); got.status != 0 || got.stdout == "" || got.stderr != "" {
				t.Errorf("%s: %q: %+v", where, args, got)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(disk, "junk"), make([]byte, 16<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	look("full disk")
	if err := unix.Mount("", disk, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	look("read-only disk")
}

// TestPlaceOfTheSandbox checks the hint for a path that a sandbox replaces by its own files.
func TestPlaceOfTheSandbox(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/.keep", "")
	m.commit(t)
	state, err := os.MkdirTemp("/dev/shm", "ralph-test-") //nolint:usetesting // it has to be there
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(state) })
	doctor := []string{"doctor", "--sandbox=native", "--agent-command=true"}
	if got := m.run(t, nil, doctor...); !strings.Contains(got.stdout, "native: works") {
		t.Skip("native does not work here")
	}
	got := m.run(t, nil, append(doctor, "--state-dir="+state)...)
	const want = "is in a place that the sandbox needs for itself; move it out of /dev, /proc and /sys (the worktrees are in state-dir), or choose another sandbox with --sandbox"
	if !strings.Contains(strings.Join(strings.Fields(got.stdout), " "), want) {
		t.Errorf("%+v", got)
	}
}

// TestNewOnAFullDisk checks that no issue without its text is left.
func TestNewOnAFullDisk(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	backlog := filepath.Join(m.smallDisk(t, "size=1m"), "backlog")
	if err := os.Mkdir(backlog, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(backlog), "junk"), make([]byte, 2<<20), 0o600); err == nil {
		t.Fatal("the disk is not full")
	}
	got := m.run(t, nil, "new", "One", "--body=x", "--local-dir="+backlog)
	if left, err := os.ReadDir(backlog); got.status == 0 || err != nil || len(left) > 0 {
		t.Errorf("%+v: %v, %v", got, left, err)
	}
}

// TestDiskWithoutInodes checks that a disk without free inodes is not called full.
func TestDiskWithoutInodes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	backlog := filepath.Join(m.smallDisk(t, "size=64m,nr_inodes=16"), "backlog")
	if err := os.Mkdir(backlog, 0o700); err != nil {
		t.Fatal(err)
	}
	for n := range 16 {
		_ = os.WriteFile(filepath.Join(filepath.Dir(backlog), strconv.Itoa(n)), nil, 0o600) // until no file can be created
	}
	const want = "the disk of ROOT/small has no free inodes (df -i)"
	if got := m.run(t, nil, "new", "One", "--body=x", "--local-dir="+backlog); got.status != exit.Failed || !strings.Contains(got.stderr, want) {
		t.Errorf("%+v", got)
	}
}

// TestUnwritableState checks that every command prints the same hint for a state folder that cannot be created.
func TestUnwritableState(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\nDo it.\n")
	m.commit(t)
	const want = "make it writable for your user, or choose another folder with state-dir or XDG_STATE_HOME\n"
	for _, command := range []string{"work", "status", "doctor"} {
		got := m.run(t, nil, command, "--state-dir=/dev/null/x")
		if got.status != exit.Failed || strings.Count(got.stdout+got.stderr, want) != 1 {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// TestRepositoryOnASmallDisk checks that the repository's disk is checked like that of the state folder.
func TestRepositoryOnASmallDisk(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.repo = m.smallDisk(t, "size=64m")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "--quiet", m.repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.write(t, ".ralph/backlog/one.md", "---\ntitle: One\nlabels: [no-human]\n---\nDo it.\n")
	m.commit(t)
	const want, enough = "less than 1024 MiB is free in ROOT/small/.git", "--min-free-mb=8"
	if got := m.run(t, nil, "doctor"); strings.Count(got.stdout, "fail  disk          "+want+"\n") != 1 || strings.Count(got.stdout, "ok    disk") != 1 {
		t.Errorf("doctor: %+v", got)
	}
	if got := m.run(t, nil, "doctor", enough); strings.Count(got.stdout, "ok    disk") != 2 || !strings.Contains(got.stdout, "free for commits in ROOT/small/.git") {
		t.Errorf("doctor with enough: %+v", got)
	}
	work := []string{"work", "--sandbox=none", "--agent-command=false", "--gate=true", "--commit-author=A <a@b.c>", "--max-attempts=1"}
	if got := m.run(t, nil, work...); got.status != exit.Parked || !strings.Contains(got.stderr, want) || !strings.Contains(got.stderr, "free some space there") {
		t.Errorf("work: %+v", got)
	}
	if got := m.run(t, nil, append(work, enough)...); got.status != exit.Incomplete || strings.Contains(got.stderr, "MiB is free") {
		t.Errorf("work with enough: %+v", got)
	}
}
