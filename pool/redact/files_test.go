package redact

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The values of files come from the named files, and from files of environment variables in named folders.
func TestInFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var many strings.Builder
	for n := range mostTokens + 1 {
		fmt.Fprintf(&many, "k5Jf9QpZx7Lm2Vb8Nc4Rt6Yw%d\n", n)
	}
	for name, text := range map[string]string{
		"named.yaml": "password: in-a-named-file-1\n", "folder/.env": "A_TOKEN=in-a-folder-2\n", "folder/deep/.env.test": "A_TOKEN=deeper-3\n",
		"folder/test.env": "A_TOKEN=another-name-4\n", "folder/code.js": "token: notASecret5\n", "other/.env": "A_TOKEN=not-named-6\n",
		"folder/deep/key.json": `{"k": "k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw"}`, "folder/data": "\x00 k4Jf9QpZx7Lm2Vb8Nc4Rt6Yw", "many": many.String(),
		"large": "A_TOKEN=too-large-7\n" + strings.Repeat("x", fileLimit), "../out-of-it": "A_TOKEN=out-of-it-8\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, "in", name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "in", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Symlink("../out-of-it", filepath.Join(dir, "in", "out")), os.Symlink("named.yaml", filepath.Join(dir, "in", "link")),
		unix.Mkfifo(filepath.Join(dir, "in", "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := InFiles(filepath.Join(dir, "in"), []string{"named.yaml", "./folder/", "large", "many", "out", "pipe", "missing", "../out-of-it"})
	slices.Sort(got)
	if want := []string{"another-name-4", "deeper-3", "in-a-folder-2", "in-a-named-file-1", "k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := InFiles(filepath.Join(dir, "in"), []string{"."}); slices.Contains(got, "k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw") || len(got) != 4 {
		t.Errorf("of files of variables: %q", got)
	}
	if got := InFiles(filepath.Join(dir, "in"), []string{"link"}); len(got) != 1 {
		t.Errorf("behind a link: %q", got)
	}
	if got := InFiles(filepath.Join(dir, "missing"), []string{"named.yaml"}); got != nil {
		t.Errorf("%q", got)
	}
}

// A folder with many files has dependencies: only its files of variables count.
func TestInFilesOfALargeFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for n := range tokenFiles + 1 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), []byte("k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := InFiles(filepath.Dir(dir), []string{filepath.Base(dir)}); got != nil {
		t.Errorf("%q", got)
	}
	if err := os.Remove(filepath.Join(dir, "0")); err != nil {
		t.Fatal(err)
	}
	if got := InFiles(filepath.Dir(dir), []string{filepath.Base(dir)}); len(got) == 0 {
		t.Error("nothing in a smaller folder")
	}
}
