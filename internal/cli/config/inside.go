package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/cli/config/keys"
	"github.com/ralph-pool/ralph/worktree/named"
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

// Named returns the paths that keys name: files, folders, and the programs of commands with those of their arguments that are files.
// Some of them may be outside of the repository. It leaves out defaults, which the default of protected-paths covers.
func (l *Loaded) Named() (all []named.File) {
	for _, k := range keys.All() {
		if l.origins[k.Name].Source == FromDefault {
			continue
		}
		switch v := l.values[k.Name].(type) {
		case string:
			if k.Kind == keys.Path && v != "" {
				all = append(all, named.File{Path: v, Setting: k.Name})
			}
		case []string:
			for i, word := range v {
				if k.Kind == keys.Words && (i == 0 && strings.Contains(word, "/") || l.isFile(word)) {
					all = append(all, named.File{Path: word, Setting: k.Name})
				}
			}
		}
	}
	return all
}

// isFile reports whether a word of a command is the path of a file, relative to the repository.
func (l *Loaded) isFile(word string) bool {
	if word == "" || l.repo == "" {
		return false
	}
	info, err := os.Stat(keys.Resolve(word, l.repo, ""))
	return err == nil && info.Mode().IsRegular()
}
