// Package refname names the refs that ralph owns.
package refname

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Own is the prefix of all refs that belong to ralph alone.
const Own = "refs/ralph/"

// Names builds the full names of ralph's refs in one namespace.
type Names struct {
	Branches string // prefix of the names of its branches
	prefix   string
}

// ForNamespace returns the names in a namespace, which may be empty.
func ForNamespace(namespace string) (Names, error) {
	if namespace == "" {
		return Names{prefix: Own, Branches: git.Heads + "ralph/"}, nil
	}
	// Without a namespace, these folders contain the refs themselves.
	if CheckKey(namespace) != nil || slices.Contains([]string{"work", "wip", "old", "claims"}, namespace) {
		return Names{}, fmt.Errorf("namespace %q is not valid: only letters, digits, '.', '_' and '-', and not work, wip, old or claims", namespace)
	}
	// Branches below "ralph/" would collide with the branch of an issue whose key equals the namespace.
	return Names{prefix: Own + namespace + "/", Branches: git.Heads + "ralph-" + namespace + "/"}, nil
}

// Works returns the prefix of the refs of last imported commits.
func (n Names) Works() string { return n.prefix + "work/" }

// Work returns the ref of a key's last imported commit.
func (n Names) Work(key string) string { return n.Works() + key }

// WIPs returns the prefix of the refs of saved changes.
func (n Names) WIPs() string { return n.prefix + "wip/" }

// WIP returns the ref of a key's uncommitted changes, saved as a commit.
func (n Names) WIP(key string) string { return n.WIPs() + key }

// AllOlds returns the prefix of the refs of all keys' old tips.
func (n Names) AllOlds() string { return n.prefix + "old/" }

// OldTipPrefix returns the prefix of the refs of a key's old tips, which later ones do not contain.
func (n Names) OldTipPrefix(key string) string { return n.AllOlds() + key + "/" }

// OldTip returns the ref of an old tip.
func (n Names) OldTip(key, commit string) string { return n.OldTipPrefix(key) + commit[:12] }

// Other returns the ref of a commit that an agent made outside of its branch.
func (n Names) Other(key, commit string) string { return n.OldTipPrefix(key) + "other-" + commit[:12] }

// Left returns the ref that marks a branch as left at a commit behind the work ref, because it was checked out elsewhere.
func (n Names) Left(key, commit string) string { return n.OldTipPrefix(key) + "left-" + commit[:12] }

// Claims returns the prefix of the refs of claims.
func (n Names) Claims() string { return n.prefix + "claims/" }

// Branch returns the full name of a branch.
func Branch(name string) string { return git.Heads + name }

// CheckKey refuses a key that cannot be a file name and the last part of a ref.
func CheckKey(key string) error {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r) {
			return fmt.Errorf("key %q: only letters, digits, '.', '_' and '-' are allowed", key)
		}
	}
	if len(key) > 200 || !git.ValidRef(Own+"work/"+key) {
		return fmt.Errorf("key %q is not a valid name for a ref", key)
	}
	return nil
}
