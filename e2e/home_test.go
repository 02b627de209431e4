package e2e

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// The gate finds in its home what setup has written there, whether later runs can share it or it is too large to keep. Later runs
// find nothing that a gate has written. Every run has the path that setup had, so that files with absolute paths stay valid.
func TestHomeOfSetup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup string
		kept  int // number of files kept: a home and its lock
	}{
		"kept":    {`echo tool >~/tool`, 2},
		"too big": {`echo tool >~/tool; head -c 2000000 /dev/zero >~/much`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			temp := privateTemp(t)
			s, r := newScene(t, doIt), newRepository(t)
			r.backlog(t, 2)
			env := []string{
				"RALPH_SANDBOX=native", "TMPDIR=" + temp, commitsInside, "RALPH_LAYER_MAX_MB=1",
				"RALPH_SETUP=test -e ~/tool || pwd >~/place; " + c.setup, `RALPH_GATE=test "$(cat ~/place)" = "$PWD" && grep tool ~/tool && test ! -e ~/gate && echo x >~/gate`,
			}
			if got := s.start(t, r, env, "work").end(t); got != 0 {
				t.Errorf("status %d", got)
			}
			show := s.start(t, r, env, "show", "issue-01", "--json")
			show.end(t)
			var runs []journal.Record
			if err := json.Unmarshal(show.out.Bytes(), &runs); err != nil || len(runs) != 1 || runs[0].Facts.Baseline == nil || !runs[0].Facts.Baseline.Passed() {
				t.Errorf("the gate on the base, %v:\n%s", err, show.out.String())
			}
			kept, err := filepath.Glob(s.path("state/ralph/*/homes/*"))
			if err != nil || len(kept) != c.kept {
				t.Errorf("homes: %q, %v", kept, err)
			}
			// If it was removed, the next run creates it again.
			r.write(t, ".ralph/backlog/more.md", "---\ntitle: More\nlabels: [no-human]\n---\n")
			if got := []int{s.start(t, r, env, "clean", "--caches").end(t), s.start(t, r, env, "work").end(t)}; got[0] != 0 || got[1] != 0 {
				t.Errorf("statuses %v", got)
			}
			kept, err = filepath.Glob(s.path("state/ralph/*/homes/*"))
			if err != nil || len(kept) != c.kept {
				t.Errorf("homes after ralph clean --caches: %q, %v", kept, err)
			}
		})
	}
}
