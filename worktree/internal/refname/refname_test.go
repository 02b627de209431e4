package refname_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/internal/refname"
)

func TestBadKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"", ".", "..", "a/b", "a b", "a.lock", "a..b", ".a", "é", "-x\n", strings.Repeat("a", 201)} {
		if refname.CheckKey(key) == nil {
			t.Errorf("key %q is accepted", key)
		}
	}
}
