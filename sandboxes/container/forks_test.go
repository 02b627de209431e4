package container_test

import (
	"bytes"
	"fmt"
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
