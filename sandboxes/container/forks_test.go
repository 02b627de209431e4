package container_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

// forks exhausts the process limit, then reads and writes much: its helper must work with its existing threads.
const forks = `trap '
	i=0
	while [ $i -lt 3000 ]; do
		echo "$i a line of which there are many"
		echo "$i and another, to the other side" >&2
		read x
		i=$((i+1))
	done' EXIT
i=0
while [ $i -lt 200 ]; do
	sleep 1000 &
	i=$((i+1))
done`

// A command that has exhausted its process limit does not end its helper.
func TestHelperAmongForks(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		p := r.provider(r.config(t))
		for round := range 4 { // a helper without spare threads would fail only sometimes
			box := enter(t, p, sandboxes.Spec{
				Run: fmt.Sprintf("forks-%s-%d", name, round), Worktree: folder(t), Limits: sandboxes.Limits{PIDs: 48},
			})
			var out, errs bytes.Buffer
			_, err := box.Exec(t.Context(), sandboxes.Command{
				Argv: []string{"sh", "-c", forks}, Stdin: strings.NewReader(strings.Repeat("line\n", 100_000)), Stdout: &out, Stderr: &errs,
			})
			if err != nil || !strings.Contains(out.String(), "\n2999 a line") || !strings.Contains(errs.String(), "\n2999 and") {
				t.Errorf("%v, with %d and %d bytes of output", err, out.Len(), errs.Len())
			}
			works, exit := inside(t, box, "echo works")
			if works != "works" {
				t.Errorf("after it: %q, %v", works, exit)
			}
		}
	})
}

// That the engine refused processes at the limit is in the notices.
func TestProcessNotice(t *testing.T) {
	real(t, func(t *testing.T, name string, r rig) {
		if r.unbounded || r.runtime == "runsc" {
			return // the limit is not enforced, or not counted
		}
		for script, want := range map[string][]sandboxes.Notice{
			"true": nil,
			`i=0; while [ $i -lt 100 ]; do sleep 1000 & i=$((i+1)); done`: {sandboxes.PIDsReached(48)},
		} {
			box := enter(t, r.provider(r.config(t)), sandboxes.Spec{
				Run: fmt.Sprintf("refused-%s-%d", name, len(want)), Worktree: folder(t), Limits: sandboxes.Limits{PIDs: 48},
			})
			if _, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", script}}); err != nil {
				t.Error(err)
			}
			if got := sandboxes.NoticesOf(box); !slices.Equal(got, want) {
				t.Errorf("%s: notices %q", script, got)
			}
		}
	})
}
