// Package refname names the refs that ralph owns.
package refname

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Own begins the names of all refs that are ralph's alone.
const Own = "refs/ralph/"

// Names are the full names of ralph's refs in one namespace.
type Names struct {
	Branches string // what the names of its branches begin with
	prefix   string
}

// In returns the names in a namespace, which may be empty.
func In(namespace string) (Names, error) {
	if namespace == "" {
		return Names{prefix: Own, Branches: git.Heads + "ralph/"}, nil
	}
	// Without a namespace, these folders hold the refs themselves.
	if CheckKey(namespace) != nil || slices.Contains([]string{"work", "wip", "old", "claims"}, namespace) {
		return Names{}, fmt.Errorf("namespace %q is not valid: only letters, digits, '.', '_' and '-', and no kind of ref", namespace)
	}
	// Branches below "ralph/" would collide with the branch of an issue that is called like the namespace.
	return Names{prefix: Own + namespace + "/", Branches: git.Heads + "ralph-" + namespace + "/"}, nil
}

// Works begins the names of the last imported commits.
func (n Names) Works() string { return n.prefix + "work/" }

// Work is the last imported commit of a key.
func (n Names) Work(key string) string { return n.Works() + key }

// WIPs begins the names of saved changes.
func (n Names) WIPs() string { return n.prefix + "wip/" }

// WIP has a key's uncommitted changes, as a commit.
func (n Names) WIP(key string) string { return n.WIPs() + key }

// Olds begins the names of a key's tips that later ones do not contain.
func (n Names) Olds(key string) string { return n.prefix + "old/" + key + "/" }

// Old is such a tip.
func (n Names) Old(key, commit string) string { return n.Olds(key) + commit[:12] }

// Other is what an agent has committed outside of its branch.
func (n Names) Other(key, commit string) string { return n.Olds(key) + "other-" + commit[:12] }

// Claims begins the names of the claims.
func (n Names) Claims() string { return n.prefix + "claims/" }

// Branch is the full name of a branch.
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
