package trash

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ralph-pool/ralph/internal/disk"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slow returns a bin that deletes when the test says so.
func slow(t *testing.T, dir string) (b *Bin, begun, end chan string) {
	t.Helper()
	begun, end = make(chan string), make(chan string)
	b = New(dir, slog.New(slog.DiscardHandler))
	b.maxWait = time.Millisecond
	b.remove = func(dir string) error {
		begun <- dir
		<-end
		err := disk.RemoveAll(dir)
		end <- dir
		return err
	}
	return b, begun, end
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// However long the deletion takes, the folders leave their place at once, and the bin reports the end.
func TestNobodyWaitsForTheDeletion(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir, from := filepath.Join(root, "trash"), filepath.Join(root, "from")
	for _, d := range []string{dir, filepath.Join(from, "sub")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(from, 0o500); err != nil { // as an agent may leave it
		t.Fatal(err)
	}
	b, begun, end := slow(t, dir)
	if err := b.Put("k", filepath.Join(root, "missing"), from); err != nil {
		t.Fatal(err)
	}
	moved := <-begun
	if there(from) || !there(filepath.Join(moved, "sub")) || !b.Freeing() {
		t.Errorf("in its place: %t, being deleted: %t", there(from), b.Freeing())
	}

	// The process ends here. The next one continues, and does not wait either.
	next, begunNext, endNext := slow(t, dir)
	next.Empty()
	if again := <-begunNext; again != moved || !next.Freeing() {
		t.Errorf("deletes %s, not %s", again, moved)
	}
	for _, c := range []chan string{end, endNext} { // one of the two finds it gone
		c <- ""
		<-c
	}
	if there(moved) {
		t.Error("not deleted")
	}
}

// Usually nothing is left.
func TestSmallFolders(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	b := New(filepath.Join(root, "trash"), slog.New(slog.DiscardHandler))
	if err := os.Mkdir(filepath.Join(root, "from"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.Put("k", filepath.Join(root, "from")); err != nil || there(filepath.Join(root, "from")) { // somebody has deleted the bin
		t.Fatal(err)
	}
	b.Empty()
	if left, err := os.ReadDir(b.dir); err != nil || len(left) > 0 || b.Freeing() {
		t.Errorf("left %v, %v", left, err)
	}
}
