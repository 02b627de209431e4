package pool_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes"
)

// homely is a binding whose commands find their home where it is kept. It shows no layers.
type homely struct{ binding }

func (homely) Capabilities() sandboxes.Capabilities {
	c := binding{}.Capabilities()
	c.Home = true
	return c
}

func (h homely) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	spec.Env = append(slices.Clip(spec.Env), "HOME="+spec.Home)
	return h.binding.Open(ctx, spec)
}

// A sandbox without layers gets a copy of what setup has made, until a file changes that setup depends on; a tip that tracks
// such files itself gets none.
func TestSetupIsCopied(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file string // that the agent commits
		runs int
	}{
		"once":             {"work.txt", 1},
		"its files change": {"README", 2},    // on the base and on the tip
		"tracked by tip":   {"deps/mine", 2}, // the same
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, `cat >/dev/null; echo work >>`+c.file+`; git add `+c.file+`; git commit -qm work`+done)
			counts := filepath.Join(t.TempDir(), "counts")
			f.Config.Run.Sandboxes = homely{newBinding(nil)}
			f.Config.Run.Homes, f.Config.Run.SetupInputs = 1<<20, []string{"README"}
			f.Config.Run.Setup = lines(`echo run >>` + counts + ` && mkdir -p deps && echo x >deps/a && touch -d 2001-01-01 deps/a && ln -sf a deps/link && echo h >~/h`)
			f.Config.Run.Gate = lines(`test "$(cat deps/link ~/h | tr '\n' ' ')" = "x h " && test deps/a -ot README && rm deps/a deps/link`)
			f.issue("a")
			if rec := f.one(); rec.Verdict.Outcome != journal.Succeeded {
				t.Fatalf("%+v", rec)
			}
			text, err := os.ReadFile(counts)
			if n := strings.Count(string(text), "run\n"); err != nil || n != c.runs {
				t.Errorf("setup ran %d times, %v; want %d", n, err, c.runs)
			}
		})
	}
}
