package pool_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ralph-pool/ralph/agents"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/pool/run"
)

var updateTricks = flag.Bool("update", false, "write the table of tricks in docs/proof.md")

const (
	tricksFile = "../docs/proof.md"
	tricksHead = "| | trick | gate | canary | changed checks | retest | reviewer is told |\n|---|---|---|---|---|---|---|\n"
)

// caught returns one cell of the table: whether a defence looked, and whether it saw the trick.
func caught(asked, saw bool) string {
	switch {
	case !asked:
		return "–"
	case saw:
		return "caught"
	}
	return ""
}

// row returns, in the order of the table, what each defence finds about a trick, if the others do not end the run before it.
// TestWhatCommitsDoToTheirChecks checks the values of c for gate and canary.
func (p language) row(t *testing.T, name, trick string) string {
	t.Helper()
	c := p.tricks[trick]
	f := p.fixture(t, c)
	notes := t.TempDir()
	f.Config.Run.Env = append(slices.Concat(os.Environ(), f.Config.Run.Env), "NOTES="+notes)
	f.Config.Run.Review = run.Reviewer{Agent: agents.Command{}, Options: agents.Options{Command: []string{"sh", "-c", reads + yes}}}
	f.Config.Run.NoCanary, f.Config.Run.Retest, f.Config.Run.MaxIterations = true, journal.RetestReport, 1
	f.issue("a")
	r := f.one()
	prompt, _ := os.ReadFile(filepath.Join(notes, "prompt.1"))
	if c.fails != (r.Verdict.Outcome == journal.GateFailed) || c.fails != (r.Facts.Retest == nil) || c.fails != (len(prompt) == 0) {
		t.Errorf("%+v, %+v, prompt %q", r.Verdict, r.Facts.Retest, prompt)
	}
	retest := caught(!c.fails, r.Facts.Retest != nil && !r.Facts.Retest.Settled())
	if r.Facts.Retest != nil && r.Facts.Retest.Exempt {
		retest = "exempt"
	}
	told := strings.Contains(string(prompt), "make sure that it does not weaken them") || strings.Contains(string(prompt), "look at what its tests cover")
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s |\n", name, trick, caught(true, c.fails), caught(!c.fails, c.want == journal.ReasonCanary),
		caught(!c.fails, r.Facts.Watch.Changed()), retest, caught(!c.fails, told))
}

// The table in the documentation shows the actual results.
func TestTableOfTricks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(tricksFile)
	if err != nil {
		t.Fatal(err)
	}
	before, table, found := strings.Cut(string(text), tricksHead)
	table, after, _ := strings.Cut(table, "\n\n")
	if !found {
		t.Fatalf("%s has no table of tricks", tricksFile)
	}
	var mu sync.Mutex
	rows := map[string]string{} // guarded by mu
	all := languages()
	written := strings.Count(table+"\n", "\n| ") + 1
	tricks, seen := 0, map[string]bool{}
	// like reports whether a trick with the same cells has been seen.
	like := func(trick string) bool {
		_, rest, _ := strings.Cut(table, "| go | "+trick+" |")
		cells, _, _ := strings.Cut(rest, "\n")
		defer func() { seen[cells] = true }()
		return seen[cells]
	}
	t.Run("all", func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			for _, trick := range slices.Sorted(maps.Keys(all[name].tricks)) {
				if tricks++; (name != "go" || like(trick)) && !everything() && !*updateTricks {
					continue
				}
				t.Run(name+"/"+trick, func(t *testing.T) {
					t.Parallel()
					row := all[name].row(t, name, trick)
					mu.Lock()
					defer mu.Unlock()
					rows[name+"/"+trick] = row
					if !*updateTricks && !strings.Contains(table+"\n", row) {
						t.Errorf("%s does not have this line; write it with: go test ./pool -run TestTableOfTricks -update\n%s", tricksFile, row)
					}
				})
			}
		}
	})
	mu.Lock()
	defer mu.Unlock()
	switch {
	case *updateTricks && len(rows) == tricks:
		table = ""
		for _, key := range slices.Sorted(maps.Keys(rows)) {
			table += rows[key]
		}
		if err := os.WriteFile(tricksFile, []byte(before+tricksHead+strings.TrimSuffix(table, "\n")+"\n\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	case written != tricks:
		t.Errorf("%s has %d tricks, of %d", tricksFile, written, tricks)
	}
}
