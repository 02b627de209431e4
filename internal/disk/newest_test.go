package disk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Folders are sorted by their last change, then by name; files and other names are left out.
func TestNewest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := time.Now()
	for name, age := range map[string]time.Duration{"old": time.Hour, "b": 0, "a": 0, "x.new": 0} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.Mkdir(path, 0o700), os.Chtimes(path, at, at.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, info := range Newest(dir, func(name string) bool { return filepath.Ext(name) == "" }) {
		names = append(names, info.Name())
	}
	if want := []string{"a", "b", "old"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if got := NewestFiles(dir); len(got) != 1 || got[0].Name() != "file" {
		t.Errorf("files: %v", got)
	}
	if got := Newest(filepath.Join(dir, "none"), func(string) bool { return true }); len(got) > 0 {
		t.Errorf("%v in a folder that does not exist", got)
	}
}
