package runner_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// Commands run as the owner of the workspace, who may write to the artefacts' files. Files in both are on the host at the
// end.
func TestContainers(t *testing.T) {
	containertest.Run(t, func(t *testing.T, p sandboxes.Provider) {
		c := config(t, p)
		containertest.Readable(t, c.Session.Spec.Worktree)
		containertest.Readable(t, filepath.Dir(c.Artefacts))
		if err := os.Chown(c.Session.Spec.Worktree, 4321, 4321); err != nil {
			t.Fatal(err)
		}
		dir := containertest.Readable(t, t.TempDir())
		write(t, filepath.Join(dir, "f"), "mounted")
		c.Session.Spec.Mounts = []sandboxes.Mount{{Host: dir, Inside: "/data", ReadOnly: true}}
		c.Session.Spec.Limits = sandboxes.Limits{Memory: 64 << 20, PIDs: 64}
		c.EnvAllow = []string{"API_TOKEN"}
		in := start(t, c)
		if got := sh(t, in, `id -u; cat /data/f; echo " $API_TOKEN"; echo made >made; echo out >`+in.Files()+`/out`); got != "4321\nmounted host-token-1\n" {
			t.Errorf("output is %q", got)
		}
		if err := in.Fetch(t.Context(), "made"); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c.Session.Spec.Worktree, "made") + read(t, c.Artefacts, "logs/0001.stdout"); got != "made\n4321\nmounted [secret]\n" {
			t.Errorf("file and log are %q", got)
		}
		prefix, err := in.CommandPrefix()
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		exit, err := proc.Run(t.Context(), proc.Spec{
			Argv: append(prefix, "sh", "-c", `id -u; pwd; echo "$API_TOKEN"; echo prefixed >made; ln -s /etc/passwd `+in.Files()+`/evil; echo late >`+in.Files()+`/late`),
			Dir:  "/", Env: os.Environ(), Stdout: &out, Stderr: &out,
		})
		if want := "4321\n" + in.Workdir() + "\nhost-token-1\n"; err != nil || exit.Code != 0 || out.String() != want {
			t.Errorf("by the command prefix: %+v, %v, %q, want %q", exit, err, &out, want)
		}
		if err := errors.Join(in.Fetch(t.Context(), "made"), in.Close(t.Context())); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c.Artefacts, "files/out") + read(t, c.Artefacts, "files/late") + read(t, c.Session.Spec.Worktree, "made"); got != "out\nlate\nprefixed\n" {
			t.Errorf("after Close the files are %q", got)
		}
	})
}

// The record includes a process that was killed at a limit.
func TestNoticesOfContainers(t *testing.T) {
	containertest.Run(t, func(t *testing.T, p sandboxes.Provider) {
		c := config(t, p)
		containertest.Readable(t, c.Session.Spec.Worktree)
		if err := os.Chown(c.Session.Spec.Worktree, 4321, 4321); err != nil {
			t.Fatal(err)
		}
		c.Session.Spec.Limits = sandboxes.Limits{Memory: 64 << 20}
		in := start(t, c)
		// The kernel may kill either process, so any Exit is fine.
		if _, err := in.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "head -c 100000000 /dev/zero | tail"}}); err != nil {
			t.Fatal(err)
		}
		if err := in.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Notices []sandboxes.Notice `json:"notices"`
		}
		if err := json.Unmarshal([]byte(read(t, c.Artefacts, "sandbox.json")), &got); err != nil || !sandboxtest.Killed(got.Notices, 64<<20) {
			t.Errorf("notices are %v, %v", got, err)
		}
	})
}
