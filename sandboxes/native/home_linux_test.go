package native_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// The home is one mount over its layer, and none of its parts is visible. The tests of changes to the home are in the suite
// for all providers.
func TestHomeMount(t *testing.T) {
	t.Parallel()
	box, err := native.New(native.Config{}).Open(t.Context(), sandboxes.Spec{Run: "home-mount-" + t.TempDir(), Worktree: t.TempDir(), Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	var out bytes.Buffer
	exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{
		"sh", "-c", `grep -c overlay /proc/self/mounts; ls -d /.layer ~/upper 2>&1 | grep -c cannot`,
	}, Stdout: &out, Stderr: &out})
	if err != nil || !exit.OK() || strings.TrimSpace(out.String()) != "1\n2" {
		t.Errorf("%+v, %v, %s", exit, err, &out)
	}
}
