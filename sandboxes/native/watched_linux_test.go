package native

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/sandboxes"
)

// Without a control group nothing counts memory outside processes, so it is refused.
func TestNoSharedMemoryWithoutAControlGroup(t *testing.T) {
	t.Parallel()
	for name, limited := range map[string]bool{"control group": true, "watched": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := New(Config{})
			if limited && p.places()["memory"].Dir == "" {
				t.Skip("no control group can be made here")
			}
			if !limited {
				p.places = func() cgroup.Places { return nil }
			}
			if got := p.Capabilities().Weaker; (got == "") != limited {
				t.Errorf("it says %q", got)
			}
			dir := t.TempDir()
			box, err := p.Open(t.Context(), sandboxes.Spec{Run: "watched-" + dir, Worktree: dir})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = box.Close(context.WithoutCancel(t.Context())) }()
			for _, kind := range []string{"-M 4096", "-Q"} { // shared memory, message queue
				var out bytes.Buffer
				exit, err := box.Exec(t.Context(), sandboxes.Command{Argv: []string{"sh", "-c", "ipcmk " + kind}, Stdout: &out, Stderr: &out})
				if err != nil || exit.OK() != limited || !limited && !strings.Contains(out.String(), "not implemented") {
					t.Errorf("ipcmk %s: %+v, %v, %s", kind, exit, err, &out)
				}
			}
		})
	}
}
