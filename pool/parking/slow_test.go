package parking_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/parking"
)

// Other processes see that fewer runs begin, until the usual number begins again or the process is gone.
func TestSlow(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "slow")
	if list, err := parking.ReadSlow(dir, noon); len(list) > 0 || err != nil {
		t.Errorf("nobody has written: %v, %v", list, err)
	}
	process, err := proc.Started(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var told []parking.Slow
	lot := &parking.Lot{Slowed: func(s parking.Slow) { told = append(told, s) }}
	lot.SetMost(8)
	lot.Limited("codex", at(0))
	lot.Limited("codex", at(0)) // the same burst
	lot.Limited("a/b", at(1))
	if len(told) != 2 || told[0] != (parking.Slow{Agent: "codex", Limit: 4, Since: at(0), Most: 8}) {
		t.Fatalf("told: %+v", told)
	}
	alive, dead := told[0], told[1]
	alive.PID, alive.Process = os.Getpid(), process
	dead.PID, dead.Process = os.Getpid(), "another"
	for _, s := range []parking.Slow{dead, alive} {
		if err := s.Write(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{disk.TempPrefix + "1", "damaged.json"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(`{"pi`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	list, err := parking.ReadSlow(dir, at(1))
	if len(list) != 1 || list[0] != alive || list[0].Allowed(at(1)) != 5 || err != nil {
		t.Errorf("after a minute: %+v, %v", list, err)
	}
	if list, err := parking.ReadSlow(dir, at(4)); len(list) > 0 || err != nil {
		t.Errorf("after four minutes: %+v, %v", list, err)
	}
	if left, err := os.ReadDir(dir); len(left) != 1 || left[0].Name() != disk.TempPrefix+"1" || err != nil {
		t.Errorf("files are left: %v, %v", left, err)
	}
}
