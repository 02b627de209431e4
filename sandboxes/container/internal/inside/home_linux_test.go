package inside

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Existing entries of the home are mounts or lead to one: they and everything below stay unchanged. Pipes are left out.
func TestCopyHomeBesideMounts(t *testing.T) {
	t.Parallel()
	layer, home := t.TempDir(), t.TempDir()
	for _, at := range []string{layer, home} {
		for _, dir := range []string{".config/tool", ".cache"} {
			if err := os.MkdirAll(filepath.Join(at, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(at, ".toolrc"), []byte(at), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := errors.Join(
		os.WriteFile(filepath.Join(layer, ".config/tool/a"), nil, 0o600), os.WriteFile(filepath.Join(layer, "b"), []byte("b"), 0o466),
		os.Chmod(filepath.Join(layer, "b"), 0o466), os.Symlink("/etc", filepath.Join(home, "c")), os.Mkdir(filepath.Join(layer, "c"), 0o755),
		os.WriteFile(filepath.Join(layer, "c/d"), nil, 0o644), unix.Mkfifo(filepath.Join(layer, "pipe"), 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := copyHome(layer, home); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		got = append(got, fmt.Sprintf("%s %v", path[len(home):], info.Mode()))
		return err
	})
	want := []string{"/.cache drwxr-xr-x", "/.config drwxr-xr-x", "/.config/tool drwxr-xr-x", "/.toolrc -rw-r--r--", "/b -r--rw-rw-", "/c Lrwxrwxrwx"}
	if err != nil || !slices.Equal(got[1:], want) {
		t.Errorf("%q, %v", got, err)
	}
	if text, err := os.ReadFile(filepath.Join(home, ".toolrc")); err != nil || string(text) != home {
		t.Errorf(".toolrc is %q, %v", text, err)
	}
}

// A failed copy is reported, whatever else was copied.
func TestCopyHomeFails(t *testing.T) {
	t.Parallel()
	layer := t.TempDir()
	if err := os.WriteFile(filepath.Join(layer, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := copyHome(layer, filepath.Join(t.TempDir(), "missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
	if err := copyHome(filepath.Join(layer, "missing"), t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}
