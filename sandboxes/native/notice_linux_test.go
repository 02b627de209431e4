package native_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// A process killed at a limit is reported although the command continues without it.
func TestNotices(t *testing.T) {
	t.Parallel()
	for script, killed := range map[string]bool{
		"true": false,
		`(x=$(head -c 300000000 /dev/zero | tr '\0' x); echo ${#x}) || echo went on`: true,
	} {
		dir := t.TempDir()
		box, err := native.New(native.Config{}).Open(t.Context(), sandboxes.Spec{
			Run: "notices-" + dir, Worktree: dir, Limits: sandboxes.Limits{Memory: 64 << 20},
		})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", script}, Stdout: &out})
		if err != nil || !exit.OK() || killed && out.String() != "went on\n" {
			t.Errorf("%+v, %v, %s", exit, err, &out)
		}
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		got := sandboxes.NoticesOf(box)
		if sandboxtest.Killed(got, 64<<20) != killed || !killed && len(got) > 0 {
			t.Errorf("%s: notices %q", script, got)
		}
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if again := sandboxes.NoticesOf(box); !slices.Equal(again, got) {
			t.Errorf("closed again: notices %q", again)
		}
	}
}

// No process is killed at the process limit, because the kernel refuses new ones. A notice reports that, where ralph may make a
// control group that counts processes.
func TestNoticeOfRefusedProcesses(t *testing.T) {
	t.Parallel()
	for script, full := range map[string]bool{
		"true": false,
		`i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done`: true,
	} {
		dir := t.TempDir()
		box, err := native.New(native.Config{}).Open(t.Context(), sandboxes.Spec{
			Run: "refused-" + dir, Worktree: dir, Limits: sandboxes.Limits{PIDs: 40},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", script}}); err != nil {
			t.Error(err)
		}
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		var want []sandboxes.Notice
		if _, counted := cgroup.Find()["pids"]; full && counted {
			want = []sandboxes.Notice{sandboxes.PIDsReached(40)}
		}
		if got := sandboxes.NoticesOf(box); !slices.Equal(got, want) {
			t.Errorf("%s: notices %q", script, got)
		}
	}
}
