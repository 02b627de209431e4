package disk

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// fill writes a file of this many bytes.
func fill(t *testing.T, path string, bytes int) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Repeat("x", bytes)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Measure counts the blocks of every file once, and nothing that only a link leads to.
func TestMeasure(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		make func(dir string)
		want int64 // MiB
	}{
		"a file":            {func(dir string) { fill(t, dir+"/f", 3*mib) }, 3},
		"in folders":        {func(dir string) { must(os.MkdirAll(dir+"/a/b", 0o700)); fill(t, dir+"/a/b/f", mib) }, 1},
		"a hole":            {func(dir string) { must(os.WriteFile(dir+"/f", nil, 0o600)); must(os.Truncate(dir+"/f", 1<<40)) }, 0},
		"many names":        {func(dir string) { fill(t, dir+"/f", mib); must(os.Link(dir+"/f", dir+"/g")) }, 1},
		"a link to a file":  {func(dir string) { fill(t, dir+"-out", mib); must(os.Symlink(dir+"-out", dir+"/f")) }, 0},
		"a link to folders": {func(dir string) { must(os.Symlink("/", dir+"/f")); must(os.Symlink(".", dir+"/self")) }, 0},
		"a pipe":            {func(dir string) { must(syscall.Mkfifo(dir+"/f", 0o600)) }, 0},
		"another file system": {func(dir string) {
			must(os.Symlink("/proc", dir+"/proc"))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "in")
			must(os.Mkdir(dir, 0o700))
			tt.make(dir)
			got := Measure(t.Context(), dir, dir, dir+"-missing")
			if rest := got.Bytes - tt.want*mib; rest < 0 || rest > mib/2 || got.Cut || got.Files < 1 {
				t.Errorf("%+v, want %d MiB", got, tt.want)
			}
		})
	}
	if got := Measure(t.Context(), t.TempDir(), "/proc"); got.Bytes != 0 || got.Files != 0 {
		t.Errorf("of another file system: %+v", got)
	}
}

// If folders exhaust a limit, the count so far is returned.
func TestMeasureEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fill(t, dir+"/f", 1<<20)
	if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", deepest+5)), 0o700); err != nil {
		t.Fatal(err)
	}
	if got := Measure(t.Context(), dir, dir); !got.Cut || got.Bytes < 1<<20 || got.Files < deepest {
		t.Errorf("too deep: %+v", got)
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cancel(nil)
	if got := Measure(ended, dir, dir); !got.Cut {
		t.Errorf("no time: %+v", got)
	}
}

// Folders with long paths do not exhaust memory.
func TestMeasureLongPaths(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x")
	last := nest(t, dir, strings.Repeat("d", 255), deepest-1, 0o700)
	for i := range 2 * pending / (deepest * 255) {
		if err := unix.Mkdirat(int(last.Fd()), fmt.Sprint(i), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if got := Measure(t.Context(), dir, dir); !got.Cut || got.Files < deepest+2*pending/(deepest*255) {
		t.Errorf("%+v", got)
	}
}

func TestMeasureManyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 2*nameBatch + 1 {
		fill(t, fmt.Sprintf("%s/%d", dir, i), 0)
	}
	if got := Measure(t.Context(), dir, dir); got.Files != 2*nameBatch+2 || got.Cut {
		t.Errorf("%+v", got)
	}
}

func TestRoomAt(t *testing.T) {
	t.Parallel()
	r, err := RoomAt(t.TempDir())
	if err != nil || r.Bytes <= 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := RoomAt("/missing/place"); err == nil || !strings.Contains(err.Error(), "/missing/place") {
		t.Errorf("%v", err)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 MiB", 700 << 20: "700 MiB", 3 << 29: "1.5 GiB", 12<<30 + 5: "12 GiB"} {
		if got := Size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
