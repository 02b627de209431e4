package compose

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestPlaces: a program in a folder that is below a link needs the folders by both names.
func TestPlaces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, folder := range []string{"real/node_modules/.bin", "real/node_modules/agent"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "real/node_modules/agent/cli"), nil, 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	for name, to := range map[string]string{"real/node_modules/.bin/agent": "../agent/cli", "link": "real"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	got := (&App{}).Places(filepath.Join(dir, "link/node_modules/.bin/agent"))
	for _, want := range []string{"link/node_modules/.bin", "link/node_modules", "real/node_modules"} {
		if !slices.Contains(got, filepath.Join(dir, want)) {
			t.Errorf("no %s in %q", want, got)
		}
	}
}
