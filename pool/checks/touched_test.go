package checks

import (
	"slices"
	"strconv"
	"testing"

	"github.com/ralph-pool/ralph/pool/journal"
)

// Commits may have as many files as names are read, each of which the checks change on the base, too.
func TestManyTouchedFiles(t *testing.T) {
	t.Parallel()
	var base []string
	for n := range 150_000 {
		base = append(base, strconv.Itoa(n))
	}
	w, out := &Watcher{touchedOnBase: map[string][]string{"fork": base}}, &journal.Watch{}
	if err := w.addTouched(t.Context(), Examination{}, "fork", append(slices.Clone(base), "other"), out); err != nil {
		t.Fatal(err)
	}
	if want := []string{"other: the checks changed this file before they tested it"}; !slices.Equal(out.Findings, want) {
		t.Errorf("%q", out.Findings)
	}
}

// A long-running service remembers missed canaries of one base only.
func TestUnnoticedIsOfOneBase(t *testing.T) {
	t.Parallel()
	w := &Watcher{}
	w.noteOverlooked("one", "go a")
	w.noteOverlooked("one", "go b")
	if !w.isOverlooked("one", "go a") || !w.isOverlooked("one", "go b") || w.isOverlooked("two", "go a") {
		t.Errorf("%v", w.unnoticed)
	}
	w.noteOverlooked("two", "go a")
	if !w.isOverlooked("two", "go a") || len(w.unnoticed) != 1 {
		t.Errorf("%v", w.unnoticed)
	}
}
