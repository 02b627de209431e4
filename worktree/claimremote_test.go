package worktree

import (
	"os"
	"path/filepath"
	"testing"
)

// A claim that another ralph gives up between our push and our look at what refused it is there to be taken: nothing is
// wrong with the remote.
func TestClaimGivenUpMeanwhile(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bare := f.withRemote()
	other := f.clone(bare, "other")
	claimed(t, other.repo, "run-1")
	// Reading from the remote releases it; pushing to it does not.
	reading := filepath.Join(realDir(f), "upload-pack")
	script := "#!/bin/sh\ngit --git-dir='" + bare + "' update-ref -d refs/ralph/claims/a\nexec git-upload-pack \"$@\"\n"
	if err := os.WriteFile(reading, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	f.git("config", "remote.origin.uploadpack", reading)
	c := claimed(t, f.repo, "run-2")
	if h := c.Holder(); h.Run != "run-2" || h.Generation != 1 {
		t.Errorf("%+v", h)
	}
}
