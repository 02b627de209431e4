package seen

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestRead checks that a ref's file is read once until it changes, whoever changes it, and whatever time they give it.
func TestRead(t *testing.T) {
	t.Parallel()
	one, two := strings.Repeat("1", 40)+"\n", strings.Repeat("2", 40)+"\n"
	path := filepath.Join(t.TempDir(), "ref")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	var seen Files
	for _, tt := range []struct {
		name, want string
		change     func() error
	}{
		{"a new file", one, func() error { write(path, one); return nil }},
		{"written into, with the old time", two, func() error { write(path, two); return os.Chtimes(path, old, old) }},
		{"replaced, with the old time", one, func() error {
			write(path+".lock", one)
			if err := os.Chtimes(path+".lock", old, old); err != nil {
				return err
			}
			return os.Rename(path+".lock", path)
		}},
		{"a link", "", func() error { write(path+"2", two); return replaceByLink(path) }},
		{"removed", "", func() error { return os.Remove(path) }},
	} {
		if err := tt.change(); err != nil {
			t.Fatal(tt.name, err)
		}
		for known := false; ; { // until the file is old enough
			got, err := seen.Read(path, readFile)
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Fatalf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
			}
			if known || tt.want == "" {
				break
			}
			known = seen.known[path].content == tt.want
		}
	}
}

func readFile(path string) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	return content, nil, err
}

// replaceByLink puts a link to the file with "2" after its name in the place of a file.
func replaceByLink(path string) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return os.Symlink(path+"2", path)
}
