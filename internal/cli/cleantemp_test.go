package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/exit"
)

// Clean removes the temporary files of dead processes, and no others.
func TestCleanOfTemporaryFiles(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.commit(t)
	if got := m.run(t, nil, "clean"); got.status != exit.OK || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	hosts, err := filepath.Glob(filepath.Join(m.home, ".local/state/ralph/repo-*/tmp/*"))
	if err != nil || len(hosts) != 1 {
		t.Fatalf("%q, %v", hosts, err)
	}
	dead, elsewhere := filepath.Join(hosts[0], "999999999.1"), filepath.Join(filepath.Dir(hosts[0]), "another", "1.1")
	for _, dir := range []string{dead, elsewhere} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "import"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	left := func(dir string) bool { _, err := os.Lstat(filepath.Join(dir, "import")); return err == nil }
	for _, c := range []struct {
		args []string
		said string
		left bool
	}{
		{[]string{"clean", "-n"}, "would remove 1 folder with temporary files of dead processes", true},
		{[]string{"clean"}, "removed 1 folder with temporary files of dead processes", false},
		{[]string{"clean"}, "", false},
	} {
		got := m.run(t, nil, c.args...)
		if got.status != exit.OK || strings.TrimSpace(got.stderr) != c.said || left(dead) != c.left || !left(elsewhere) {
			t.Errorf("%q: left %t, %t: %+v", c.args, left(dead), left(elsewhere), got)
		}
	}
}
