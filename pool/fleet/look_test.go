package fleet

import (
	"maps"
	"testing"
	"time"
)

// Each machine is listed with its projects, whatever its roles are.
func TestLookListsProjects(t *testing.T) {
	t.Parallel()
	d := migrated(t)
	want := map[string]map[string]int{"worker": {"p": 3}, "planner": {"p": 0}}
	for name := range want {
		f, err := Start(t.Context(), Config{Database: d, Name: name, Work: name == "worker", Plan: name == "planner", TTL: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(f.Stop)
		if err := f.add(newServed(Project{Name: "p", Parallel: 3})); err != nil {
			t.Fatal(err)
		}
		if err := f.announce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	l, err := d.Look(t.Context())
	if err != nil || len(l.Machines) != len(want) {
		t.Fatalf("%+v, %v", l, err)
	}
	for _, m := range l.Machines {
		if !maps.Equal(m.Projects, want[m.Name]) {
			t.Errorf("%s: %v, want %v", m.Name, m.Projects, want[m.Name])
		}
	}
}
