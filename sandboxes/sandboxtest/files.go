package sandboxtest

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/sandboxes"
)

// FilesOfCommands tests that the limit of open files of commands is half of ralph's.
func FilesOfCommands(t *testing.T, p sandboxes.Provider) {
	t.Helper()
	dir := t.TempDir()
	box := openBox(t.Context(), t, p, sandboxes.Spec{Run: "files-" + dir, Worktree: dir})
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "ulimit -Sn; ulimit -Hn"}, Stdout: &out, Stderr: &out})
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &own); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%d\n%d\n", min(own.Max/2, 1<<16), own.Max/2)
	if err != nil || exit.Code != 0 || out.String() != want {
		t.Errorf("limits %q, want %q; %+v, %v", out.String(), want, exit, err)
	}
}
