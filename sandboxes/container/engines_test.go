package container_test

import (
	"bytes"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/container/containertest"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

func TestConforms(t *testing.T) {
	t.Parallel()
	for name, r := range rigs() {
		if r.copies && !everything() { // package sbx's tests cover the same wrapper
			continue
		}
		t.Run(name, func(t *testing.T) {
			require(t, name)
			if strings.HasPrefix(name, "podman-rootless") && os.Getuid() == 0 {
				asUser(t, os.Getenv(rootlessVar))
				return
			}
			c, o := r.config(t), sandboxtest.Options{Worktree: folder}
			if r.copies {
				o.Shared = share(t, &c)
			}
			p := r.provider(c)
			sandboxtest.Run(t, func(*testing.T) sandboxes.Provider { return p }, o)
		})
	}
}

// asUser runs this test again as another user of the machine.
func asUser(t *testing.T, name string) {
	t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	path, err := helper()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(scratch, "tests-"+strings.ReplaceAll(t.Name(), "/", "-"))
	sandboxtest.CopyProgram(t, binary)
	var out bytes.Buffer
	exit, err := proc.Run(t.Context(), proc.Spec{
		Argv: []string{
			"setpriv", "--reuid", u.Uid, "--regid", u.Gid, "--init-groups",
			binary, "-test.run=^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$", "-test.v", "-test.timeout=900s",
		},
		Dir: "/",
		Env: []string{
			"HOME=" + u.HomeDir, "PATH=" + os.Getenv("PATH"), "XDG_RUNTIME_DIR=/run/user/" + u.Uid, helperVar + "=" + path,
			containertest.EnginesVar + "=podman-rootless", containertest.ImageVar + "=" + os.Getenv(containertest.ImageVar),
		},
		Stdout: &out, Stderr: &out,
	})
	if err != nil || exit.Code != 0 || !strings.Contains(out.String(), "--- PASS: "+t.Name()) {
		t.Fatalf("as %s: %+v, %v\n%s", name, exit, err, &out)
	}
}
