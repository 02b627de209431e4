package image_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/ralph-pool/ralph/sandboxes/image"
)

// The tag changes exactly when the image would.
func TestContentTag(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := image.Build{Context: dir, File: filepath.Join(t.TempDir(), "Containerfile")}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(b.File, "FROM a")
	seen := map[string]string{}
	tag := func() string {
		t.Helper()
		got, err := image.ContentTag("name", b)
		if err != nil {
			t.Fatal(err)
		}
		if !regexp.MustCompile(`^name:[0-9a-f]{12}$`).MatchString(got) {
			t.Errorf("tag is %s", got)
		}
		return got
	}
	differs := func(what string) {
		t.Helper()
		got := tag()
		if other, there := seen[got]; there {
			t.Errorf("%s does not change the tag of %s", what, other)
		}
		seen[got] = what
	}
	differs("nothing")
	write(filepath.Join(dir, "f"), "1")
	differs("a file")
	write(filepath.Join(dir, "f"), "2")
	differs("its content")
	if err := os.Chmod(filepath.Join(dir, "f"), 0o755); err != nil {
		t.Fatal(err)
	}
	differs("the right to execute it")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	differs("a link")
	write(b.File, "FROM b")
	differs("the build file")
	b.Args = []string{"A=1", "B=2"}
	differs("arguments")
	before := tag()
	b.Args = []string{"B=2", "A=1"}
	write(filepath.Join(dir, ".git/HEAD"), "ref")
	if tag() != before {
		t.Error("the order of arguments, or git's own folder, changes the tag")
	}
}
