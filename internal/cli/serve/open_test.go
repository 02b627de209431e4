package serve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ralph-pool/ralph/internal/cli/compose"
)

// All addresses of a repository have the same name for a fleet, even with a host alias of SSH's configuration.
func TestNameOfRemote(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ssh := "#!/bin/sh\n[ \"$1 $2\" = '-G --' ] || exit 1\ncase $3 in work) echo 'user git'; echo 'hostname GitHub.com';; gone) exit 255;; *) echo \"hostname $3\";; esac\n"
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(ssh), 0o700); err != nil {
		t.Fatal(err)
	}
	a := &compose.App{Host: compose.Host{Dir: dir, Env: []string{"PATH=" + dir + ":" + os.Getenv("PATH")}}}
	for address, want := range map[string]string{
		"git@github.com:o/r.git": "github.com/o/r", "https://github.com/o/r": "github.com/o/r", "ssh://git@github.com:22/o/r": "github.com/o/r",
		"ssh://work/o/r": "github.com/o/r", "git@work:o/r": "github.com/o/r", "https://work/o/r": "work/o/r", "git@other:o/r": "other/o/r",
		"git@gone:o/r": "gone/o/r", "/srv/r.git": "", "": "",
	} {
		if got := nameOf(t.Context(), a, address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
	a.Host.Env = []string{"PATH=/nowhere"}
	if got := nameOf(t.Context(), a, "git@work:o/r"); got != "work/o/r" {
		t.Errorf("without ssh: %q", got)
	}
}
