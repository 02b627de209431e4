package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The smallest limit of the group and its ancestors counts; a group without a limit is skipped.
func TestFree(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	group := func(dir, most, used string) string {
		err := os.MkdirAll(dir, 0o700)
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "pids.max"), []byte(most+"\n"), 0o600))
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "pids.current"), []byte(used+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	none := group(filepath.Join(top, "a"), "max", "7")
	slice := group(filepath.Join(none, "b"), "20", "15")
	scope := group(filepath.Join(slice, "c"), "max", "3")
	full := group(filepath.Join(scope, "d"), "2", "3")
	wide := group(filepath.Join(slice, "e"), "100", "3")
	for dir, want := range map[string]struct {
		n       int
		limited bool
	}{"": {}, none: {}, slice: {5, true}, scope: {5, true}, full: {0, true}, wide: {5, true}, filepath.Join(slice, "without"): {5, true}} {
		if n, limited := freeIn(dir); n != want.n || limited != want.limited {
			t.Errorf("%s: %d, %v, want %+v", dir, n, limited, want)
		}
	}
}
