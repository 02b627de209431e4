package disk

import (
	"bufio"
	"io"
	"os/exec"
	"slices"
	"testing"
)

// holder starts a shell that holds a deleted file of 3 MiB open until its input ends.
func holder(t *testing.T, mark string, argv ...string) (dir string) {
	t.Helper()
	const holds = `exec 3>junk; rm junk; head -c 3145728 /dev/zero >&3; echo up; read x`
	cmd := exec.Command(argv[0], append(argv[1:], "sh", "-c", holds)...)
	cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin", mark}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return cmd.Dir
}

// A deleted file that is still open counts for the run whose processes hold it, and for no other.
func TestHeld(t *testing.T) {
	t.Parallel()
	for name, argv := range map[string][]string{
		"marked": {"env"},
		"on an overlay": {"unshare", "--user", "--map-root-user", "--mount", "sh", "-ec",
			`mkdir low up work; mount -t overlay overlay -o userxattr,lowerdir=low,upperdir=up,workdir=work low; cd low; exec "$@"`, "sh"},
		"unmarked, in a space with it": {"unshare", "--user", "--map-root-user", "--pid", "--fork", "env", "-u", "RALPH_TEST_HELD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := "RALPH_TEST_HELD=" + t.TempDir()
			if slices.Contains(argv, "env") && argv[0] == "unshare" { // the first process of the namespace keeps the mark
				argv = append(argv[:len(argv)-3:len(argv)-3], "sh", "-c", `env -u RALPH_TEST_HELD "$@"; exit`, "sh")
			}
			dir := holder(t, mark, argv...)
			if got := heldByProcesses(t.Context(), dir, []string{mark}); got.Bytes != 3<<20 || got.Files != 1 || got.Cut {
				t.Errorf("%+v, want one file of 3 MiB", got)
			}
			if got := heldByProcesses(t.Context(), dir, []string{mark + "x"}); got != (Amount{}) {
				t.Errorf("another's: %+v", got)
			}
		})
	}
}
