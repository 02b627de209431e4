package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/filelock"
)

func TestTry(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	expect := func(what string, want bool, try func(*os.File) (bool, error), f *os.File) {
		t.Helper()
		if locked, err := try(f); locked != want || err != nil {
			t.Errorf("%s: locked %t, %v", what, locked, err)
		}
	}
	a, b, c := open(), open(), open()
	expect("the first reader", true, filelock.TryShared, a)
	expect("another reader", true, filelock.TryShared, b)
	expect("a writer beside readers", false, filelock.Try, c)
	_, _ = a.Close(), b.Close()
	expect("a writer alone", true, filelock.Try, c)
	expect("a second writer", false, filelock.Try, open())
	expect("a reader beside a writer", false, filelock.TryShared, open())
	_ = c.Close()
	if locked, err := filelock.Try(c); locked || err == nil {
		t.Errorf("a closed file: locked %t, %v", locked, err)
	}
}
