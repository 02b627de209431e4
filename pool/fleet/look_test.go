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
	l, err := d.Snapshot(t.Context())
	if err != nil || len(l.Machines) != len(want) {
		t.Fatalf("%+v, %v", l, err)
	}
	for _, m := range l.Machines {
		if !maps.Equal(m.Projects, want[m.Name]) {
			t.Errorf("%s: %v, want %v", m.Name, m.Projects, want[m.Name])
		}
	}
}

// A dead machine is first listed as silent and then no more: it leaves no row.
func TestDeadMachineGoes(t *testing.T) {
	t.Parallel()
	p := planner(t, lifeTime, nil, 0)
	look := func() (silent map[string]time.Duration) {
		l, err := p.f.db.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		silent = map[string]time.Duration{}
		for _, m := range l.Machines {
			silent[m.ID] = m.Silent
		}
		return silent
	}
	const dead = "INSERT INTO ralph_machine (id, name, projects, rows, expires_at) VALUES ('dead', 'm', '{}', '{}', now() + make_interval(secs => $1)) ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at"
	if _, err := p.f.db.exec(t.Context(), dead, 10); err != nil {
		t.Fatal(err)
	}
	if got := look(); got["dead"] < 20*time.Second || got[p.f.id] >= 16*time.Second || len(got) != 2 {
		t.Errorf("silent %v", got)
	}
	if _, err := p.f.db.exec(t.Context(), dead, -10); err != nil {
		t.Fatal(err)
	}
	f := &Fleet{c: Config{TTL: time.Millisecond}, db: p.f.db} // the server may have just started
	if err := planningOf(f, p.s).replaceDead(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := look(); got["dead"] != 0 || len(got) != 1 {
		t.Errorf("silent later %v", got)
	}
}
