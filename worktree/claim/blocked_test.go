package claim

import (
	"errors"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/worktree/git"
)

// If another ref's name is in the way, the error names the ref and the command that deletes it, and that command is
// sufficient.
func TestNameInTheWay(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, other string
		local       bool // the name is also in the way in the repository
	}{
		{"branch", "refs/heads/refs/ralph/claims/k", false},
		{"tag", "refs/tags/refs/ralph/claims/k", false},
		{"below", "refs/ralph/claims/k/x", true},
		{"above", "refs/ralph/claims", true},
	} {
		for _, remote := range []bool{false, true} {
			name := test.name + " in the repository"
			if remote {
				name = test.name + " on the remote"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newSite(t, remote)
				at := s.dir
				if remote {
					at = s.bare()
				}
				s.sh("git", "-C", at, "update-ref", test.other, "main")
				_, err := s.store.Claim(t.Context(), "k", Holder{Owner: "o", Run: "r"}, ttl)
				if !remote && !test.local {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if err == nil || errors.Is(err, git.ErrRemote) || strings.Contains(err.Error(), "\n") {
					t.Fatalf("%v", err)
				}
				_, command, ok := strings.Cut(err.Error(), "delete it with: ")
				if !ok || !strings.Contains(command, test.other) {
					t.Fatalf("%v", err)
				}
				s.sh("sh", "-c", "cd "+s.dir+" && "+command)
				claimed(t, s.store, "r")
			})
		}
	}
}

// A name in the way of a held claim's renewal does not count as the loss of the claim.
func TestNameInTheWayOfARenewal(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	c := claimed(t, s.store, "r")
	s.sh("git", "-C", s.bare(), "update-ref", "refs/tags/refs/ralph/claims/k", "main")
	if err := c.Renew(t.Context()); err == nil || errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "--delete refs/tags/refs/ralph/claims/k") {
		t.Error(err)
	}
	s.git("push", "-q", "origin", "--delete", "refs/tags/refs/ralph/claims/k")
	if err := c.Renew(t.Context()); err != nil {
		t.Error(err)
	}
}

// A name that is in nobody's way does not hide the loss of the claim.
func TestNameThatIsNotInTheWay(t *testing.T) {
	t.Parallel()
	s := newSite(t, true)
	c := claimed(t, s.store, "r")
	s.sh("git", "-C", s.bare(), "update-ref", "refs/remotes/refs/ralph/claims/k", "main")
	if err := c.Renew(t.Context()); err != nil {
		t.Error(err)
	}
	s.sh("git", "-C", s.bare(), "update-ref", "refs/ralph/claims/k", "main")
	if err := c.Renew(t.Context()); !errors.Is(err, ErrLost) {
		t.Error(err)
	}
}
