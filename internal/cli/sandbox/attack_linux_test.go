package sandbox

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
	"github.com/ralph-pool/ralph/sandboxes/native"
)

// weak is a provider with a hole.
type weak struct {
	sandboxes.Provider
	hole func(*sandboxes.Spec)
}

func (w weak) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	w.hole(&spec)
	return w.Provider.Open(ctx, spec)
}

// The attacks find each hole of a provider, by name.
func TestAttacksSucceed(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for name, c := range map[string]struct {
		hole func(*sandboxes.Spec)
		want []string
	}{
		"files": {
			hole: func(s *sandboxes.Spec) {
				at := filepath.Dir(s.Worktree)
				s.Mounts = append(s.Mounts, sandboxes.Mount{Host: at, Inside: at})
			},
			want: []string{"secrets/a file of the host by its path", "secrets/files of the host"},
		},
		"the whole repository": {
			hole: func(s *sandboxes.Spec) {
				for dir := s.Worktree; len(dir) > 1; dir = filepath.Dir(dir) {
					if hosts, _ := filepath.Glob(filepath.Join(dir, "project")); len(hosts) > 0 {
						s.Mounts = append(s.Mounts, sandboxes.Mount{Host: hosts[0], Inside: hosts[0]})
						return
					}
				}
			},
			want: []string{"repository/other branches, stashes and runs", "repository/its .git, and code that git would run"},
		},
		"one home for all": {
			hole: func(s *sandboxes.Spec) { s.Home, s.FillHome = home, true },
			want: []string{"files/what one sandbox leaves for another"},
		},
		"limits": {
			hole: func(s *sandboxes.Spec) { s.Limits = sandboxes.Limits{} },
			want: []string{"exhaust/memory", "exhaust/processes", "exhaust/scratch space"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := weak{native.New(native.Config{}), c.hole}
			probes, err := attackSandbox(t.Context(), provider)
			if err != nil {
				t.Fatal(err)
			}
			verdict := verdictOf(provider, probes)
			if verdict == nil {
				t.Fatal("nothing was found")
			}
			for _, attack := range c.want {
				found := slices.ContainsFunc(probes, func(p ProbeData) bool { return p.What == attack && !p.Stopped && p.Breach != "" })
				if !found || !strings.Contains(verdict.Error(), attack) {
					t.Errorf("%s: found %v, %v", attack, found, verdict)
				}
			}
		})
	}
	shut := weak{native.New(native.Config{}), func(s *sandboxes.Spec) { s.Worktree = "/no/such/folder" }}
	if probes, err := attackSandbox(t.Context(), shut); err == nil || len(probes) > 0 || errors.Is(err, context.Canceled) {
		t.Errorf("a sandbox that does not open: %v, %v", probes, err)
	}
}
