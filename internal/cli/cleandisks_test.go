package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/exit"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/sandboxes/container/label"
)

// shelf is a fake docker that only has volumes. Each is a file with the volume's labels, empty for a volume without labels.
func shelf(t *testing.T, m machine) (path func(*compose.Host), put func(run string, alive bool, marked, bare []string), names func() string) {
	t.Helper()
	dir := filepath.Join(m.root, "volumes")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	bin := m.program(t, "docker", "cd "+dir+`
case "$1 $2" in
"volume ls") case $5 in name=*) ls | grep "^${5#name=}";; *) find . -type f -size +0 | cut -c3- | sort;; esac; true;;
"volume inspect") cat "$5";;
"volume rm") shift 3; rm "$@";;
ps*) ;;
*) echo "unexpected: $*" >&2; exit 1;;
esac
`)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	started, err := proc.Started(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	put = func(run string, alive bool, marked, bare []string) {
		t.Helper()
		since := "0@before"
		if alive {
			since = started
		}
		labels := fmt.Sprintf(`{"ralph.run":%q,"ralph.process":"%d %s %s"}`, run, os.Getpid(), since, host)
		for i, name := range append(marked, bare...) {
			if i >= len(marked) {
				labels = ""
			}
			if err := os.WriteFile(filepath.Join(dir, "ralph-"+label.ID(run)+"-disk-"+name), []byte(labels), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	names = func() string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(found, "\n")
	}
	return func(h *compose.Host) { h.Env = append(h.Env, "PATH="+bin+":"+os.Getenv("PATH")) }, put, names
}

// Volumes of ended runs are removed, except those with work that is not imported: these are listed with the command that
// shows the work, and --discard removes them. Volumes of a live ralph process are left alone.
func TestCleanRemovesVolumes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.write(t, ".ralph/config.yaml", "sandbox: docker\n")
	m.commit(t)
	path, put, names := shelf(t, m)
	put("lost", false, []string{"helper", "filled"}, []string{"folder-w"})
	put("spent", false, []string{"helper"}, []string{"folder-w"})
	put("alive", true, []string{"helper", "filled"}, []string{"folder-w"})
	lost, spent, alive := "ralph-"+label.ID("lost")+"-disk-", "ralph-"+label.ID("spent")+"-disk-", "ralph-"+label.ID("alive")+"-disk-"
	for _, c := range []struct {
		args []string
		says string // about the disk of run spent
	}{{[]string{"clean", "--dry-run"}, "would remove"}, {[]string{"clean"}, "removed"}} {
		got := m.run(t, path, c.args...)
		if got.status != exit.OK || strings.Contains(got.stdout, alive) {
			t.Errorf("%q: %+v", c.args, got)
		}
		for _, want := range []string{lost + "* of run lost, which have work that is not imported", "docker run --rm -it", "-v " + lost + "folder-w:/disk/w", spent + "* of run spent, which nothing uses", c.says} {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%q: no %q in %s", c.args, want, got.stdout)
			}
		}
	}
	if left := names(); strings.Contains(left, spent) || strings.Count(left, lost) != 3 || strings.Count(left, alive) != 3 {
		t.Errorf("left are %s", left)
	}
	if got := m.run(t, path, "clean", "--discard", "lost"); got.status != exit.OK || !strings.Contains(got.stdout, "removed") {
		t.Errorf("%+v", got)
	}
	if left := names(); strings.Contains(left, lost) || strings.Count(left, alive) != 3 {
		t.Errorf("left are %s", left)
	}
	if got := m.run(t, path, "clean"); got.stdout != "Nothing to clean.\n" {
		t.Errorf("%+v", got)
	}
}

// Volumes of an earlier run are found even if the latest run of its issue used another sandbox.
func TestCleanFindsVolumesOfEarlierRuns(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	later := unclosedRun(t, m)
	store, _ := journalIn(t, m.home, ".local", "state", "ralph", "*")
	earlier := later
	earlier.ID, earlier.SandboxMayRun, earlier.Started, earlier.Ended = "earlier", false, later.Started.Add(-2), later.Started.Add(-1)
	later.Sandbox, later.SandboxMayRun = "none", false
	for _, r := range []journal.Record{earlier, later} {
		if err := store.Save(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	path, put, _ := shelf(t, m)
	put(earlier.ID, false, []string{"helper", "filled"}, []string{"folder-w"})
	got := m.run(t, path, "clean", "--dry-run")
	if !strings.Contains(got.stdout, "docker volumes ralph-"+label.ID(earlier.ID)+"-disk-* of run "+earlier.ID) {
		t.Errorf("%+v", got)
	}
}
