package container

import (
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/sandboxes"
)

// Folders that are copied, by what is special about them.
const (
	roleTree = "tree"
	roleGit  = "git"
	roleOwn  = "own" // a writable mount
)

// place is where a folder is on the host and inside.
type place struct{ role, host, inside string }

// ownFolders are the mounts that the container may write to, and the host gets back.
func ownFolders(mounts []sandboxes.Mount) []sandboxes.Mount {
	return slices.DeleteFunc(slices.Clone(mounts), func(m sandboxes.Mount) bool { return m.ReadOnly })
}

// seedPack is where the private repository's own pack is inside, with ".pack" and ".idx": what it holds is the user's, and
// need not come back. A ".keep" beside it tells git so.
const seedPack = "objects/pack/pack-seed"

// skipOf names what neither side tells about: inside, the seed is in the place of what the host's alternates lead to.
func skipOf(role string) func(string) bool {
	if role != roleGit {
		return nil
	}
	return func(p string) bool {
		return p == "objects/info/alternates" || strings.HasPrefix(p, seedPack+".")
	}
}

// insideFolder is where a folder is inside. The private repository is mounted as the worktree's .git, so that it can be
// neither removed nor replaced.
func insideFolder(worktree, role string) string {
	if role == roleGit {
		return path.Join(worktree, ".git")
	}
	return worktree
}
