package git_test

import (
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

func TestQuote(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/a/b-c_d": "/a/b-c_d", "/a b": "'/a b'", "/it's": `'/it'\''s'`, "/$(id)": "'/$(id)'", "-x": "'-x'", "": "''",
	} {
		if got := git.Quote(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}
