package toolchain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Places are the folders that a program needs: where it was found in PATH, and what that leads to. A folder that is or holds one
// of kept is not shown for the sake of one program in it: the program alone is.
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
		if i := strings.LastIndex(at, "/node_modules/"); i >= 0 && at != found { // a package of npm needs its neighbours too
			root = at[:i+len("/node_modules")]
		}
		if !slices.Contains(places, root) {
			places = append(places, root)
		}
	}
	add(found)
	// Each link leads on from where it stands, and that may itself be below a link.
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
