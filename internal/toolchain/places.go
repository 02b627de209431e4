package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Places returns the folders that a program needs: the one where it was found in PATH, and those to which its links lead. If
// such a folder is, or contains, one of kept, only the program itself is returned instead of the folder.
func Places(found string, kept ...string) (places []string) {
	holds := func(dir string) bool {
		return slices.ContainsFunc(kept, func(k string) bool {
			return k != "" && (k == dir || strings.HasPrefix(k+"/", strings.TrimSuffix(dir, "/")+"/"))
		})
	}
	add := func(at string) {
		root := filepath.Dir(at)
		if holds(root) {
			root = at
		}
		if i := strings.LastIndex(at, "/node_modules/"); i >= 0 && at != found { // an npm package also needs its neighbours
			root = at[:i+len("/node_modules")]
		}
		if !slices.Contains(places, root) {
			places = append(places, root)
		}
	}
	add(found)
	// Each link is resolved relative to its own folder, which may itself be below a link.
	for at, links := found, 0; links < 10; links++ {
		next, err := os.Readlink(at)
		if err != nil {
			break
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(at), next)
		}
		at = next
		add(at)
	}
	if real, err := filepath.EvalSymlinks(found); err == nil {
		add(real)
	}
	return places
}
