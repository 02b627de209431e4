package git

import (
	"fmt"
	"strings"
)

// Heads is the prefix of the full names of branches.
const Heads = "refs/heads/"

// CheckBranch refuses a short branch name that git would refuse or take for an option.
func CheckBranch(name string) error {
	if strings.HasPrefix(name, "-") || name == "HEAD" || len(name) > 200 || !ValidRef(Heads+name) {
		return fmt.Errorf("branch %q is not a valid branch name; see: git help check-ref-format", name)
	}
	return nil
}

// ValidRef reports whether git accepts the full ref name, by the rules of git-check-ref-format.
func ValidRef(ref string) bool {
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

// DisplayName shortens a full ref name for people.
func DisplayName(ref string) string {
	for _, prefix := range []string{Heads, "refs/remotes/", "refs/tags/"} {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			return name
		}
	}
	return ref
}

// IsObject reports whether s is the full name of an object.
func IsObject(s string) bool {
	return (len(s) == 40 || len(s) == 64) && strings.Trim(s, "0123456789abcdef") == ""
}

// Short shortens an object name to 12 characters for people.
func Short(sha string) string { return sha[:min(12, len(sha))] }

// OrNothing is [Short], or "nothing" for an empty name.
func OrNothing(sha string) string {
	if sha == "" {
		return "nothing"
	}
	return Short(sha)
}

// Quote quotes a path so that it is safe to paste into a shell.
func Quote(s string) string {
	safe := s != "" && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@%,=", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if safe {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
