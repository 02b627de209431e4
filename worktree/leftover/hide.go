package leftover

import (
	"crypto/rand"
	"os"
	"strings"
)

// Hide renames the entry of a folder if it makes the folder a repository to git, which would run what an agent has
// configured there: .git, or the HEAD of a bare repository. In the worst case the name stays.
func Hide(folder *os.Root, name string) {
	_, bare := folder.Lstat("objects")
	_, split := folder.Lstat("commondir") // its objects are elsewhere
	if strings.EqualFold(name, ".git") || strings.EqualFold(name, "HEAD") && (bare == nil || split == nil) {
		_ = folder.Rename(name, "git-"+strings.Trim(name, ".")+"-"+rand.Text())
	}
}
