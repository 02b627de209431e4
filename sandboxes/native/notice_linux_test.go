package native_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// A process that a limit has cost is told of, although the command goes on without it.
func TestNotices(t *testing.T) {
	t.Parallel()
	for script, want := range map[string][]string{
		"true": nil,
		`(x=$(head -c 300000000 /dev/zero | tr '\0' x); echo ${#x}) || echo went on`: {"1 process was killed at the memory limit of 64 MB (memory-mb)"},
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
		if err != nil || !exit.OK() || want != nil && out.String() != "went on\n" {
			t.Errorf("%+v, %v, %s", exit, err, &out)
		}
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if got := sandboxes.NoticesOf(box); !slices.Equal(got, want) {
			t.Errorf("%s: notices %q, want %q", script, got, want)
		}
		if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		if got := sandboxes.NoticesOf(box); !slices.Equal(got, want) {
			t.Errorf("closed again: notices %q", got)
		}
	}
}
