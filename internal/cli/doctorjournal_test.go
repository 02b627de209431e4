package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A damaged journal is reported with the command that moves it away, and the other checks still run.
func TestDoctorFindsADamagedJournal(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	doctor := func() string { return m.run(t, nil, "doctor", "--sandbox=none").stdout }
	files := func() string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(m.home, ".local", "state", "ralph", "repo-*", "state.db"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		return found[0]
	}
	if got := doctor(); !strings.Contains(got, "ok    journal") {
		t.Errorf("a whole journal:\n%s", got)
	}
	f, err := os.OpenFile(files(), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, 4096), 4096); err != nil {
		t.Fatal(err)
	}
	finds := func(wants ...string) {
		t.Helper()
		got := doctor()
		for _, want := range wants {
			if !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
				t.Errorf("it does not say %q:\n%s", want, got)
			}
		}
	}
	finds("fail journal", "/state.db.damaged", "ok disk")
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(strings.Repeat("no database ", 1000)), 0); err != nil {
		t.Fatal(err)
	}
	finds("fail journal open journal", "fix: mv ", "/state.db.damaged")
}
