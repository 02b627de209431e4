package native_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/cgroup"
	"github.com/ralph-pool/ralph/sandboxes/native"
	"github.com/ralph-pool/ralph/sandboxes/sandboxtest"
)

// TestNothingOutlivesRalph: the processes of a sandbox die with ralph, and Reap removes the rest.
func TestNothingOutlivesRalph(t *testing.T) {
	t.Parallel()
	nothingLeft(t, sandboxtest.Crash(t, native.New(native.Config{})))
}

// nothingLeft checks for everything that a sandbox could leave on the host.
func nothingLeft(t *testing.T, run string) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lines {
		if text, err := os.ReadFile(name); err == nil && strings.Contains(string(text), "\x00native\x00"+run) {
			t.Errorf("%s: %q is left", name, text)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), "/.scratch") || strings.Contains(string(mounts), run) {
		t.Errorf("mounts are left, %v:\n%s", err, mounts)
	}
	prefix := cgroup.Prefix(run)
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(entry.Name(), prefix) {
			t.Errorf("control group %s is left", path)
		}
		return nil
	})
}
