package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
)

// Inside refuses a path in the repository from which a link leads out of it. It accepts any path that a flag, a variable or the
// user's own file names, and a path that a trusted repository's file names openly. path is the key's value, an item of its list, or
// the default that replaces an empty value.
func (l *Loaded) Inside(key, path string) error {
	if path == "" {
		return nil
	}
	origin, users := l.named(key, path)
	if users || l.repo == "" || !keys.Inside(path, l.repo) {
		return nil
	}
	refuse := func(why string) error { return Problems{{Where: origin.Where, Message: key + ": " + why}} }
	real, err := realPath(path)
	if err != nil {
		return refuse(reason(err))
	}
	top, err := filepath.EvalSymlinks(l.repo)
	if err != nil {
		return refuse(reason(err))
	}
	if keys.Inside(real, top) {
		return nil
	}
	k, _ := keys.Lookup(key)
	return refuse(fmt.Sprintf("%s leads out of the repository, to %s; if you mean that, give --%s", path, real, k.Flag()))
}

// Users reports whether a flag, a variable or the user's own file names the path. See Inside for path.
func (l *Loaded) Users(key, path string) bool {
	_, users := l.named(key, path)
	return users
}

// named returns the path's origin, and whether the user named it.
func (l *Loaded) named(key, path string) (origin Origin, users bool) {
	origin = Origin{Source: FromDefault}
	if _, list := l.values[key].([]string); list || path == l.values[key] {
		origin = l.origins[key]
	}
	return origin, slices.Contains([]Source{FromFlag, FromEnvironment, FromUser, FromService}, origin.Source)
}

// realPath resolves the links in the existing part of a path.
func realPath(path string) (string, error) {
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err == nil || at == filepath.Dir(at) {
			real, err := filepath.EvalSymlinks(at)
			return filepath.Join(real, rest), err
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
