package span

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// All commits are checked against the base together: merged, squashed, not merged, and missing here.
func TestAbsorbed(t *testing.T) {
	t.Parallel()
	r, _, _ := newReader(t, `commit() { git switch -q -C $1 base; echo $1 >$2; git add .; git commit -qm $1; }
commit merged b; commit squashed c; commit open d; commit conflicting e
git switch -q --orphan foreign; git commit -qm "another history" --allow-empty
git switch -q -C main base; git merge -q --no-ff -m merge merged; git merge -q --squash squashed; git commit -qm squash
echo ours >e; git add .; git commit -qm ours`)
	id := func(name string) string {
		out, err := r.Git.Output(t.Context(), "rev-parse", name)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	merged, squashed, open, conflicting, foreign := id("merged"), id("squashed"), id("open"), id("conflicting"), id("foreign")
	unknown := "0123456789012345678901234567890123456789"
	got, err := Absorbed(t.Context(), r.Git, id("main"), []string{unknown, foreign, merged, conflicting, foreign, squashed, open})
	if want := map[string]bool{merged: true, squashed: true, open: false, foreign: false, conflicting: false}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// One process compares all commits with the base that are known not to be in it.
func TestMergedProcesses(t *testing.T) {
	t.Parallel()
	r, base, tip := newReader(t, "echo b >b; git add b; git commit -qm second")
	trace := filepath.Join(t.TempDir(), "trace")
	got, err := Merged(t.Context(), r.Git.With("GIT_TRACE="+trace), base, []string{tip})
	if err != nil || got[tip] || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	text, err := os.ReadFile(trace)
	if err != nil || !strings.Contains(string(text), "git merge-tree") || strings.Contains(string(text), "git rev-list") || strings.Contains(string(text), "git cat-file") {
		t.Errorf("%v: %s", err, text)
	}
}
