package native_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// When memory is short, the kernel kills a command or its children before the sandbox's init process.
func TestCommandsGoFirst(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	box, err := native.New(native.Config{}).Open(t.Context(), sandboxes.Spec{Run: "score-" + dir, Worktree: dir})
	if err != nil {
		t.Fatal(err)
	}
	// While the init process starts a command, it has the command's score.
	const line = `(cat /proc/self/oom_score_adj); cat /proc/self/oom_score_adj
		for i in $(seq 500); do [ "$(cat /proc/1/oom_score_adj)" = 500 ] && sleep 0.01 || break; done; cat /proc/1/oom_score_adj`
	for range 20 {
		var out bytes.Buffer
		exit, err := box.Exec(t.Context(), sandboxes.Command{
			Argv: []string{"sh", "-c", line}, Stdout: &out,
		})
		if want := "500\n500\n" + string(own); err != nil || !exit.OK() || out.String() != want {
			t.Fatalf("%+v, %v, scores %q, want %q", exit, err, &out, want)
		}
	}
	if err := box.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
