package e2e

import (
	"runtime"
	"strings"
	"testing"
)

// Submodules get into a worktree in the two ways that docs/agents.md describes, and the agent commits beside them.
func TestSubmodules(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the native sandbox is Linux's")
	}
	const update = "git -c protocol.file.allow=always submodule update --init --recursive" // git requires permission for a local address
	for name, args := range map[string]func(address string) []string{
		"setup": func(address string) []string {
			return []string{"--setup", update, "--mount", "host=" + address + ",inside=" + address + ",readonly"}
		},
		"before": func(string) []string { return []string{"--before", update, "--before", "rm -f sub/.git"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r, sub := newScene(t, doIt), newRepository(t), newRepository(t)
			sub.write(t, "inside.txt", "it is here\n")
			sub.commit(t, "inside")
			r.git(t, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "--", string(sub), "sub")
			r.commit(t, "with a submodule")
			keys := r.backlog(t, 1)
			agent := `RALPH_AGENT_COMMAND=sh -c 'cp sub/inside.txt copy.txt && git add --all && git commit -qm Done && echo "<promise>COMPLETE</promise>"'`
			p := s.start(t, r, []string{"RALPH_SANDBOX=native", agent}, append([]string{"work"}, args(string(sub))...)...)
			if got := p.end(t); got != 0 {
				t.Fatalf("status %d:\n%s", got, &p.out)
			}
			if got := r.git(t, "show", "--format=", "--name-only", "ralph/"+keys[0]); strings.TrimSpace(got) != "copy.txt" {
				t.Errorf("the commit has %q", got)
			}
			s.clean(t, r)
		})
	}
}
