package worktree

import (
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // git's object names, not a security measure
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// objectStore writes loose objects: a claim is written at every renewal, and a process for each would cost more than
// all the rest of it.
type objectStore struct {
	dir    string // the repository's objects folder
	sha256 bool   // the repository's object format
}

// ralph signs what it makes for itself; commits that people see carry the user's name.
const selfIdent = "ralph <ralph@localhost>"

// commit writes a commit object and returns its name. Equal content in one second is one object: callers that need a
// unique one put a nonce into the message.
func (s objectStore) commit(tree string, parents []string, message string, at time.Time) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	stamp := strconv.FormatInt(at.Unix(), 10) + " +0000"
	fmt.Fprintf(&b, "author %s %s\ncommitter %s %s\n\n%s\n", selfIdent, stamp, selfIdent, stamp, message)
	return s.write("commit", []byte(b.String()))
}

// write stores an object and returns its name.
func (s objectStore) write(kind string, content []byte) (string, error) {
	raw := append([]byte(kind+" "+strconv.Itoa(len(content))+"\x00"), content...)
	var h hash.Hash = sha1.New() //nolint:gosec // see above
	if s.sha256 {
		h = sha256.New()
	}
	_, _ = h.Write(raw)
	name := hex.EncodeToString(h.Sum(nil))
	path := filepath.Join(s.dir, name[:2], name[2:])
	if _, err := os.Lstat(path); err == nil {
		return name, nil
	}
	if err := s.place(path, raw); err != nil {
		return "", fmt.Errorf("write %s object: %w", kind, err)
	}
	return name, nil
}

// place writes the object beside its final name, then gives it that name: a reader sees all of it or none.
func (s objectStore) place(path string, raw []byte) error {
	top, err := os.Stat(s.dir)
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := os.Mkdir(folder, 0o777); err == nil {
		// A shared repository's folders carry its group's rights.
		if err := os.Chmod(folder, top.Mode()&(fs.ModePerm|fs.ModeSetgid)); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	temp := filepath.Join(folder, "tmp_obj_"+rand.Text()) // the prefix by which git gc knows and removes remains
	defer os.Remove(temp)
	if err := writeNew(temp, stored(raw), 0o444, true); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// stored is data as a zlib stream that compresses nothing: these objects are too small for it, and Go's compressor
// takes most of a megabyte for each.
func stored(data []byte) []byte {
	const header, block = "\x78\x01", 0xffff
	out := append(make([]byte, 0, len(data)+16), header...)
	for rest, last := data, false; !last; {
		part := rest[:min(len(rest), block)]
		rest = rest[len(part):]
		last = len(rest) == 0
		final := byte(0)
		if last {
			final = 1
		}
		out = append(out, final)
		out = binary.LittleEndian.AppendUint16(out, uint16(len(part)))
		out = binary.LittleEndian.AppendUint16(out, ^uint16(len(part)))
		out = append(out, part...)
	}
	return binary.BigEndian.AppendUint32(out, adler32.Checksum(data))
}

// writeNew creates the file. A durable one is on disk before it returns.
func writeNew(path string, content []byte, mode fs.FileMode, durable bool) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if durable {
		err = errors.Join(err, f.Sync())
	}
	return errors.Join(err, f.Close())
}
