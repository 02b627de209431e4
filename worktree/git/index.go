package git

import (
	"bytes"
	"context"
	"encoding/binary"
	"path/filepath"
	"strings"
)

// HidesChanges reports that the index of a git directory, with names of SHA-256 or not, tells git not to look at files
// (assume-unchanged, skip-worktree): Status does not see how they have changed. In a sparse checkout it always does.
func (g Runner) HidesChanges(ctx context.Context, gitDir string, sha256 bool) (bool, error) {
	if index, _, err := ReadRegular(filepath.Join(gitDir, "index")); err == nil && !sha256 {
		if hides, ok := hidesChanges(index); ok {
			return hides, nil
		}
	}
	out, err := g.Out(ctx, "ls-files", "-v")
	for line := range strings.Lines(out) {
		if unseen(line) {
			return true, err
		}
	}
	return false, err
}

// unseen reports that a line of `ls-files -v` is of a file that git is not to look at.
func unseen(line string) bool { return line[0] == 'S' || line[0] >= 'a' && line[0] <= 'z' }

// hidesChanges reads the flags of a whole index of version 2 or 3, with names of SHA-1. ok is false for any other, and for one
// whose entries may be elsewhere.
func hidesChanges(index []byte) (hides, ok bool) {
	const (
		header, names                           = 12, 62 // bytes before the entries, and before the name in one
		assumeUnchanged, extended, skipWorktree = 0x8000, 0x4000, 0x4000
	)
	if len(index) < header || string(index[:4]) != "DIRC" || mayHaveLink(index) {
		return false, false
	}
	if version := binary.BigEndian.Uint32(index[4:]); version != 2 && version != 3 {
		return false, false
	}
	entries := binary.BigEndian.Uint32(index[8:])
	for rest := index[header:]; entries > 0; entries-- {
		if len(rest) < names+2 {
			return false, false
		}
		flags, at := binary.BigEndian.Uint16(rest[names-2:]), names
		if flags&extended != 0 {
			if binary.BigEndian.Uint16(rest[names:])&skipWorktree != 0 {
				return true, true
			}
			at += 2
		}
		if flags&assumeUnchanged != 0 {
			return true, true
		}
		end := bytes.IndexByte(rest[at:], 0)
		if size := (at + end + 8) &^ 7; end > 0 && size <= len(rest) { // 1 to 8 zeros fill it up to a multiple of eight
			rest = rest[size:]
		} else {
			return false, false
		}
	}
	return false, true
}

// mayHaveLink reports that the index may have the extension that says that entries are in another file, or stand for a folder.
func mayHaveLink(index []byte) bool {
	return bytes.Contains(index, []byte("link")) || bytes.Contains(index, []byte("sdir"))
}

// MayHaveGitlinks reports whether the index of a git directory may name a commit of another repository.
func MayHaveGitlinks(gitDir string) bool {
	index, _, err := ReadRegular(filepath.Join(gitDir, "index"))
	// The mode of such an entry.
	return err != nil || bytes.Contains(index, []byte{0, 0, 0xe0, 0}) || mayHaveLink(index)
}
