package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that keeps creating a file does not keep RemoveAll busy forever.
func TestRemoveAllOfWhatGrows(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	made := 0
	err := removeAll(dir, func() {
		if made++; made < 10*removeRounds {
			_ = os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
		}
	})
	if err == nil || !strings.Contains(err.Error(), "all the time") || made != removeRounds {
		t.Errorf("after %d rounds: %v", made, err)
	}
	if err := RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// Concurrent RemoveAlls of the same folder all succeed.
func TestRemoveTogether(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x")
	for i := range 100 {
		if err := os.MkdirAll(filepath.Join(dir, strconv.Itoa(i), "sub", "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if err := RemoveAll(dir); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// nest creates nested folders with the given name and permissions, a link beside each, and returns the last folder.
func nest(t *testing.T, dir, name string, levels int, mode uint32) *os.File {
	t.Helper()
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o700))
	at, err := unix.Open(dir, unix.O_DIRECTORY, 0)
	must(err)
	for range levels {
		must(unix.Mkdirat(at, name, 0o700))
		must(unix.Symlinkat("/", at, "link"))
		next, err := unix.Openat(at, name, unix.O_DIRECTORY, 0)
		must(err)
		must(unix.Fchmod(at, mode))
		must(unix.Close(at))
		at = next
	}
	last := os.NewFile(uintptr(at), name)
	t.Cleanup(func() { _ = last.Close() })
	return last
}

// However deep an agent has nested folders, RemoveAll needs few open files.
func TestRemoveDeepFolders(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x")
	nest(t, dir, "d", 3*mostOpen, 0o500)
	if err := RemoveAll(dir); err != nil {
		t.Fatalf("%.200v", err)
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Folders that are too deep are moved up and visited as well. Everything else stays in place.
func TestOpenDeepFolders(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x")
	const levels = 3*openLevels + 10
	nest(t, dir, "d", levels, 0o500)
	folders, links := 0, 0
	if err := OpenFolders(dir, func(parent *os.Root, name string) {
		info, err := parent.Lstat(name)
		switch {
		case err != nil:
			t.Error(err)
		case info.IsDir():
			folders++
		default:
			links++
		}
	}); err != nil {
		t.Fatal(err)
	}
	if folders != levels || links != levels {
		t.Errorf("visited %d folders and %d links, want %d of each", folders, links, levels)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 { // d, link, and three folders that were too deep
		t.Errorf("%v, %v", entries, err)
	}
	if info, err := os.Stat(filepath.Join(dir, strings.Repeat("d/", openLevels-1))); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// The error names the folder, but nothing in it.
func TestRemoveSaysWhatCannotBeRemoved(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("no folder of which root can remove nothing")
	}
	err := RemoveAll("/proc/self/task")
	if err == nil || err.Error() != "remove /proc/self/task: operation not permitted" || !errors.Is(err, fs.ErrPermission) {
		t.Error(err)
	}
	if err := RemoveAll(filepath.Join(t.TempDir(), "missing", "missing")); err != nil {
		t.Error(err)
	}
}

// RemoveAll as root needs no permissions; this test covers what other users need.
func TestFoldersWithoutRights(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "x")
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "a", "b"), filepath.Join(dir, "a"), dir} {
		if err := os.Chmod(path, 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := OpenFolders(dir, func(*os.Root, string) {}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "a", "b")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

// Unlock changes only folders that their owner cannot use.
func TestUnlock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	closed, fine, link := filepath.Join(dir, "closed"), filepath.Join(dir, "fine"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(closed, 0o700), os.Mkdir(fine, 0o700), os.Symlink(closed, link), os.Chmod(fine, 0o751), os.Chmod(closed, 0o050)); err != nil {
		t.Fatal(err)
	}
	if err := Unlock(link); err == nil {
		t.Error("a link was followed")
	}
	if err := Unlock(closed, fine, filepath.Join(dir, "missing")); err != nil {
		t.Error(err)
	}
	for path, want := range map[string]os.FileMode{closed: 0o750, fine: 0o751} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}
