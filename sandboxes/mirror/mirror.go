// Package mirror keeps a folder of the host and its copy in a sandbox the same, for sandboxes that cannot mount it.
//
// Either side can say what its folder holds (a [List]), pack files into a tar stream, and unpack one. The host compares two
// lists and asks only for what has changed. What comes from the sandbox is hostile: [Tree.Apply] takes names, kinds,
// sizes and content from it and lets none of them reach out of the folder, into a git directory, or past the limits. It
// leaves out what it refuses, and says so.
//
// A Tree is not safe for concurrent use; different Trees are.
package mirror

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Kind is what an entry is. There are no others: pipes, sockets and devices are left where they are.
type Kind byte

const (
	Folder Kind = 'd'
	File   Kind = 'f'
	Link   Kind = 'l'
)

// Entry is one thing below a folder.
type Entry struct {
	// Path is relative to the folder, with slashes.
	Path string
	Kind Kind
	// Mode has the permission bits; 0 for links.
	Mode fs.FileMode
	// Size of a file in bytes; 0 for all else.
	Size int64
	// Mark of a file changes when its content may have changed. Empty: nothing can be said.
	Mark string
	// Target of a link.
	Target string
}

// Limits bound what is taken from a sandbox for one folder. Zero means the default.
type Limits struct {
	Entries int   // default 1,000,000
	File    int64 // bytes of one file; default 1 GiB
	Bytes   int64 // of all files; default 8 GiB
}

func (l Limits) withDefaults() Limits {
	if l.Entries == 0 {
		l.Entries = 1_000_000
	}
	if l.File == 0 {
		l.File = 1 << 30
	}
	if l.Bytes == 0 {
		l.Bytes = 8 << 30
	}
	return l
}

const (
	maxPath  = 4 << 10 // bytes of a path, or of a link's target
	maxName  = 255
	maxDepth = 256
)

// checkPath refuses a name that does not stay below its folder, and one that a git somewhere might take for its own
// directory.
func checkPath(p string) error {
	if p == "." || !fs.ValidPath(p) || len(p) > maxPath || strings.ContainsRune(p, 0) {
		return errors.New("it is not a path below the folder")
	}
	parts := strings.Split(p, "/")
	if len(parts) > maxDepth {
		return errors.New("it is too deep")
	}
	for _, part := range parts {
		if len(part) > maxName {
			return errors.New("a name in it is too long")
		}
		if isGit(part) {
			return errors.New("a git directory is not taken")
		}
		if part == tempName {
			return errors.New("the name is ralph's own")
		}
	}
	return nil
}

// checkTarget refuses a link that leads out of the folder, or into a git directory.
func checkTarget(link, target string) error {
	if target == "" || len(target) > maxPath || strings.ContainsRune(target, 0) || path.IsAbs(target) {
		return errors.New("it is a link out of the folder")
	}
	// A parent that is a link itself could lead elsewhere than the names say: only what goes up from where the link
	// is, and down again, is certain.
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

// isGit reports a name that some file system or git takes for ".git": in any case, with characters that HFS ignores, and
// as NTFS shortens and pads it.
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

// Left is what was not taken from a sandbox.
type Left struct {
	First string // the first path, and why
	Count int
}

func (l *Left) add(p string, why error) {
	if l.Count++; l.Count == 1 {
		l.First = fmt.Sprintf("%q: %v", clip(p), why)
	}
}

// And is both together.
func (l Left) And(more Left) Left {
	if l.Count == 0 {
		return more
	}
	l.Count += more.Count
	return l
}

// Err is nil when nothing was left out.
func (l Left) Err() error {
	if l.Count == 0 {
		return nil
	}
	return fmt.Errorf("%d of the sandbox's files are not taken; first: %s", l.Count, l.First)
}

func clip(s string) string {
	if len(s) > 200 {
		return s[:200] + "…"
	}
	return s
}
