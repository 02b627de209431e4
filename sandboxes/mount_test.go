package sandboxes_test

import (
	"testing"

	"github.com/ralph-pool/ralph/sandboxes"
)

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, folder string
		want         bool
	}{
		{"/a", "/a", true},
		{"/a/b", "/a", true},
		{"/ab", "/a", false},
		{"/a", "/a/b", false},
		{"/a", "/", true},
		{"/", "/", true},
	} {
		if got := sandboxes.IsInside(c.path, c.folder); got != c.want {
			t.Errorf("%s within %s: %t", c.path, c.folder, got)
		}
	}
}
