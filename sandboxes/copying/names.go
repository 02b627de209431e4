package copying

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

const (
	maxPath  = 4 << 10 // bytes of a path or a link's target
	maxName  = 255
	maxDepth = 256
)

// checkPath refuses a path that leads out of its folder, and one that git on some system could take for a git directory.
func checkPath(p string) error {
	if p == "." || !fs.ValidPath(p) || len(p) > maxPath || strings.ContainsRune(p, 0) {
		return errors.New("it is not a path below the folder")
	}
	parts := strings.Split(p, "/")
	if len(parts) > maxDepth {
		return errors.New("it is too deep")
	}
	for _, part := range parts {
		switch {
		case len(part) > maxName:
			return errors.New("a name in it is too long")
		case isGit(part):
			return errors.New("git directories are refused")
		case part == tempName:
			return errors.New("the name is reserved")
		}
	}
	return nil
}

// checkTarget refuses a link target that leads out of the folder or into a git directory.
func checkTarget(link, target string) error {
	if target == "" || len(target) > maxPath || strings.ContainsRune(target, 0) || path.IsAbs(target) {
		return errors.New("it is a link out of the folder")
	}
	// A parent that is itself a link could lead elsewhere than its name suggests. Only a target that first goes up from the
	// link's own folder, and then down, is certain.
	down := false
	depth := strings.Count(link, "/")
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			if depth--; down || depth < 0 {
				return errors.New("it is a link out of the folder")
			}
		case isGit(part):
			return errors.New("it is a link into a git directory")
		default:
			down = true
		}
	}
	return nil
}

// isGit reports whether a file system or git could take a name for ".git": in any case, with characters that HFS ignores,
// or as NTFS shortens and pads it.
func isGit(name string) bool {
	name = strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name))
	name, _, _ = strings.Cut(name, ":")
	name, _, _ = strings.Cut(name, `\`)
	name = strings.TrimRight(name, " .")
	return name == ".git" || name == "git~1"
}
