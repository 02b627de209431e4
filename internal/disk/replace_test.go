package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Replace replaces any entry of that name. It does not change the target of a link, even of one that appears meanwhile.
func TestReplace(t *testing.T) {
	t.Parallel()
	elsewhere := filepath.Join(t.TempDir(), "file")
	for name, make := range map[string]func(at string) error{
		"nothing":       func(string) error { return nil },
		"file":          func(at string) error { return os.WriteFile(at, []byte("a longer text"), 0o400) },
		"folder":        func(at string) error { return os.MkdirAll(filepath.Join(at, "hooks"), 0o700) },
		"link":          func(at string) error { return os.Symlink(elsewhere, at) },
		"dangling link": func(at string) error { return os.Symlink(elsewhere+"2", at) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			at := filepath.Join(dir, ".git")
			if err := errors.Join(os.WriteFile(elsewhere, []byte("theirs"), 0o600), make(at)); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(at); err == nil {
				root, err := os.OpenRoot(dir)
				if err != nil {
					t.Fatal(err)
				}
				defer root.Close()
				if err := create(root, ".git", nil, 0o600); !errors.Is(err, fs.ErrExist) {
					t.Errorf("a name that came meanwhile: %v", err)
				}
			}
			if err := Replace(dir, ".git", []byte("mine"), 0o640); err != nil {
				t.Fatal(err)
			}
			info, err := os.Lstat(at)
			if err != nil || info.Mode() != 0o640 {
				t.Errorf("%v, %v", info, err)
			}
			for path, want := range map[string]string{at: "mine", elsewhere: "theirs"} {
				if got, err := os.ReadFile(path); err != nil || string(got) != want {
					t.Errorf("%s is %q, %v", path, got, err)
				}
			}
			if _, err := os.Lstat(elsewhere + "2"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the link was followed: %v", err)
			}
		})
	}
}
