package worktree

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// names are the full names of ralph's refs.
type names struct{ prefix, branches string }

const ownPrefix = "refs/ralph/"

func newNames(namespace string) (names, error) {
	if namespace == "" {
		return names{prefix: ownPrefix, branches: git.Heads + "ralph/"}, nil
	}
	// Without a namespace, these folders hold the refs themselves.
	if checkKey(namespace) != nil || slices.Contains([]string{"work", "wip", "old", "claims"}, namespace) {
		return names{}, fmt.Errorf("namespace %q is not valid: only letters, digits, '.', '_' and '-', and no kind of ref", namespace)
	}
	// Branches below "ralph/" would collide with the branch of an issue that is called like the namespace.
	return names{prefix: ownPrefix + namespace + "/", branches: git.Heads + "ralph-" + namespace + "/"}, nil
}

func (n names) works() string                   { return n.prefix + "work/" }
func (n names) work(key string) string          { return n.works() + key }
func (n names) wips() string                    { return n.prefix + "wip/" }
func (n names) wip(key string) string           { return n.wips() + key }
func (n names) olds(key string) string          { return n.prefix + "old/" + key + "/" }
func (n names) old(key, commit string) string   { return n.olds(key) + commit[:12] }
func (n names) other(key, commit string) string { return n.olds(key) + "other-" + commit[:12] }
func (n names) claims() string                  { return n.prefix + "claims/" }

func branchRef(name string) string { return git.Heads + name }

// checkKey refuses a key that cannot be a file name and the last part of a ref.
func checkKey(key string) error {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r) {
			return fmt.Errorf("key %q: only letters, digits, '.', '_' and '-' are allowed", key)
		}
	}
	if len(key) > 200 || !git.ValidRef(ownPrefix+"work/"+key) {
		return fmt.Errorf("key %q is not a valid name for a ref", key)
	}
	return nil
}
