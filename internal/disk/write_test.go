package disk

import (
	"os"
	"path/filepath"
	"testing"
)

// WriteFile replaces files and links, sets the mode, and leaves nothing else in the folder.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	for _, d := range []Durability{Process, Power} {
		dir := t.TempDir()
		path, other := filepath.Join(dir, "file"), filepath.Join(t.TempDir(), "other")
		if err := WriteFile(path, []byte("first"), 0o600, d); err != nil {
			t.Fatal(err)
		}
		old, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer old.Close()
		if err := WriteFile(path, []byte("second"), 0o646, d); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(path)
		if before, serr := old.Stat(); err != nil || serr != nil || os.SameFile(before, info) || info.Mode() != 0o646 {
			t.Errorf("%v, %v, %v: a reader of the old file must keep it", info, err, serr)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(other, path); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(path, []byte("third"), 0o600, d); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != "third" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := os.Lstat(other); err == nil {
			t.Error("the link was followed")
		}
		if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
			t.Errorf("the folder has %v, %v", list, err)
		}
	}
}

// A WriteFile that fails leaves the old file and no other.
func TestWriteFileFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "folder", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(filepath.Join(dir, "folder"), []byte("text"), 0o600, Power); err == nil {
		t.Error("a file has replaced a folder")
	}
	if err := WriteFile(filepath.Join(dir, "none", "file"), []byte("text"), 0o600, Power); err == nil {
		t.Error("a file is in a folder that does not exist")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("the folder has %v, %v", list, err)
	}
}
