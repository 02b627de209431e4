package config

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
)

// Inside refuses a path of the repository that a link leads out of it. A flag, a variable and the user's own file may name
// any place, and so may a repository's file that the user trusts, in plain words. The path is the key's value, one of a
// list, or the one that an empty value stands for.
func (l *Loaded) Inside(key, path string) error {
	if path == "" {
		return nil
	}
	origin, users := l.named(key, path)
	if users {
		return nil
	}
	if l.repo == "" || !keys.Inside(path, l.repo) {
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
	return refuse(fmt.Sprintf("%s leads out of the repository, to %s; if that is meant, give --%s", path, real, k.Flag()))
}

// Users reports whether a flag, a variable or the user's own file names the path, which is as Inside has it.
func (l *Loaded) Users(key, path string) bool {
	_, users := l.named(key, path)
	return users
}

// named is where the path comes from, and whether that is the user.
func (l *Loaded) named(key, path string) (origin Origin, users bool) {
	origin = Origin{Source: FromDefault}
	if _, list := l.values[key].([]string); list || path == l.values[key] {
		origin = l.origins[key]
	}
	switch origin.Source {
	case FromFlag, FromEnvironment, FromUser, FromService:
		return origin, true
	case FromRepository, FromDefault:
	}
	return origin, false
}

// realPath follows the links of the part of a path that exists.
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
