package worktree

import (
	"fmt"
	"strings"
)

// The refs of one key.
func workRef(key string) string  { return workPrefix + key }
func wipRef(key string) string   { return "refs/ralph/wip/" + key }
func claimRef(key string) string { return claimPrefix + key }
func oldPrefix(key string) string {
	return "refs/ralph/old/" + key + "/"
}
func oldRef(key, commit string) string { return oldPrefix(key) + commit[:12] }
func branchRef(name string) string     { return "refs/heads/" + name }

const (
	ownPrefix    = "refs/ralph/"
	workPrefix   = ownPrefix + "work/"
	claimPrefix  = ownPrefix + "claims/"
	branchPrefix = "refs/heads/ralph/"
)

// checkKey refuses a key that cannot be a file name and the last part of a ref.
func checkKey(key string) error {
	for _, r := range key {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r) {
			return fmt.Errorf("key %q: only letters, digits, '.', '_' and '-' are allowed", key)
		}
	}
	if len(key) > 200 || !validRef("refs/ralph/work/"+key) {
		return fmt.Errorf("key %q is not a valid name for a ref", key)
	}
	return nil
}

// checkBranch refuses a short branch name that git would refuse, or take for an option.
func checkBranch(name string) error {
	if strings.HasPrefix(name, "-") || name == "HEAD" || len(name) > 200 || !validRef(branchRef(name)) {
		return fmt.Errorf("branch %q is not a valid branch name; see: git help check-ref-format", name)
	}
	return nil
}

// validRef reports whether git accepts the full ref name, by the rules of git-check-ref-format.
func validRef(ref string) bool {
	if ref == "" || strings.HasSuffix(ref, ".") || strings.Contains(ref, "..") || strings.Contains(ref, "@{") {
		return false
	}
	for i := range len(ref) {
		if c := ref[i]; c <= ' ' || c == 0x7f || strings.IndexByte("~^:?*[\\", c) >= 0 {
			return false
		}
	}
	parts := strings.Split(ref, "/")
	for _, part := range parts {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return len(parts) > 1
}
