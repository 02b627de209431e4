package sandboxes_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

// failing is a writer that always fails and counts its calls.
type failing struct{ calls int }

func (f *failing) Write([]byte) (int, error) { f.calls++; return 0, errors.New("full") }

// A command's own writers get everything that the log gets, and the failure of one affects no other.
func TestTee(t *testing.T) {
	t.Parallel()
	none := sandboxes.NewNone(sandboxes.NoneConfig{})
	box, err := none.Open(t.Context(), sandboxes.Spec{Run: "tee", Worktree: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close(t.Context()) })
	run := func(to, toErr io.Writer) (out, errs string) {
		t.Helper()
		var logs [2]bytes.Buffer
		cmd := sandboxes.Command{Argv: []string{"sh", "-c", "for i in 1 2 3; do echo out; echo err >&2; done"}, Stdout: to, Stderr: toErr}
		if exit, err := box.Exec(t.Context(), sandboxes.Tee(cmd, &logs[0], &logs[1])); err != nil || !exit.OK() {
			t.Fatal(exit, err)
		}
		return logs[0].String(), logs[1].String()
	}
	var both bytes.Buffer // not safe for two goroutines: the race detector sees concurrent calls
	bad := &failing{}
	for name, to := range map[string][2]io.Writer{"none": {}, "one for both": {&both, &both}, "failing": {bad, &both}} {
		if out, errs := run(to[0], to[1]); out != "out\nout\nout\n" || errs != "err\nerr\nerr\n" {
			t.Errorf("%s: logged are %q and %q", name, out, errs)
		}
	}
	if both.Len() != 3*8+3*4 || bad.calls != 1 {
		t.Errorf("the own writer has %q, the failing one was called %d times", &both, bad.calls)
	}
}
