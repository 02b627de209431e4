package git

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A command that hangs is stopped.
func TestWithin(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	if out, err := r.WithTimeout(time.Hour).Output(t.Context(), "rev-parse", "--is-bare-repository"); err != nil || out != "false" {
		t.Fatalf("%s, %v", out, err)
	}
	if err := unix.Mkfifo(filepath.Join(r.dir, ".gitignore"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := r.WithTimeout(50*time.Millisecond).Output(t.Context(), "status")
	if err == nil || Failed(err) || !strings.Contains(err.Error(), "it did not end within 50ms") {
		t.Errorf("error %v", err)
	}
}
