package git

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

// Store writes loose objects itself: every renewal of a claim writes one, and starting git would take most of the time.
type Store struct {
	Dir    string // objects folder of the repository
	SHA256 bool   // the repository's object format
}

// Identity of commits that ralph makes for its own use. Commits that people see carry the user's name.
const (
	selfName  = "ralph"
	selfEmail = "ralph@localhost"
	selfIdent = selfName + " <" + selfEmail + ">"
)

// Message writes a commit of the empty tree without parents. Commits with equal content in the same second are one object: a
// caller that needs a unique one puts a nonce into the message.
func (s Store) Message(message string, at time.Time) (string, error) {
	tree, err := s.Write("tree", nil)
	if err != nil {
		return "", err
	}
	return s.Commit(tree, nil, message, at)
}

// Commit writes a commit of a tree in ralph's name.
func (s Store) Commit(tree string, parents []string, message string, at time.Time) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "tree %s\n", tree)
	for _, p := range parents {
		fmt.Fprintf(&b, "parent %s\n", p)
	}
	stamp := strconv.FormatInt(at.Unix(), 10) + " +0000"
	fmt.Fprintf(&b, "author %s %s\ncommitter %s %s\n\n%s\n", selfIdent, stamp, selfIdent, stamp, message)
	return s.Write("commit", []byte(b.String()))
}

// Write stores an object and returns its name.
func (s Store) Write(kind string, content []byte) (string, error) {
	raw := append([]byte(kind+" "+strconv.Itoa(len(content))+"\x00"), content...)
	var h hash.Hash = sha1.New() //nolint:gosec // see above
	if s.SHA256 {
		h = sha256.New()
	}
	_, _ = h.Write(raw)
	name := hex.EncodeToString(h.Sum(nil))
	if s.Has(name) {
		return name, nil
	}
	if err := s.writeFile(s.path(name), raw); err != nil {
		return "", fmt.Errorf("write %s object: %w", kind, err)
	}
	return name, nil
}

// Has reports whether an object exists as a loose object.
func (s Store) Has(name string) bool {
	_, err := os.Lstat(s.path(name))
	return err == nil
}

func (s Store) path(name string) string { return filepath.Join(s.Dir, name[:2], name[2:]) }

// writeFile writes the object beside its final name and renames it, so that readers see the complete object or none.
func (s Store) writeFile(path string, raw []byte) error {
	top, err := os.Stat(s.Dir)
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	if err := os.Mkdir(folder, 0o777); err == nil {
		// In a shared repository, folders have the group's permissions.
		if err := os.Chmod(folder, top.Mode()&(fs.ModePerm|fs.ModeSetgid)); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	temp := filepath.Join(folder, "tmp_obj_"+rand.Text()) // git gc removes files with this prefix
	defer os.Remove(temp)
	if err := WriteNew(temp, uncompressedZlib(raw), 0o444, true); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// uncompressedZlib returns data as a zlib stream without compression. The objects are small, and Go's compressor allocates
// almost a megabyte for each.
func uncompressedZlib(data []byte) []byte {
	const header, block = "\x78\x01", 0xffff
	out := append(make([]byte, 0, len(data)+16), header...)
	for rest, last := data, false; !last; {
		chunk := rest[:min(len(rest), block)]
		rest = rest[len(chunk):]
		last = len(rest) == 0
		final := byte(0)
		if last {
			final = 1
		}
		out = append(out, final)
		out = binary.LittleEndian.AppendUint16(out, uint16(len(chunk)))
		out = binary.LittleEndian.AppendUint16(out, ^uint16(len(chunk)))
		out = append(out, chunk...)
	}
	return binary.BigEndian.AppendUint32(out, adler32.Checksum(data))
}

// WriteNew creates a file. A durable one is on disk when WriteNew returns.
func WriteNew(path string, content []byte, mode fs.FileMode, durable bool) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if durable {
		err = errors.Join(err, f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// IsEmptyTree reports whether id is the empty tree in either object format.
func IsEmptyTree(id string) bool {
	return id == "4b825dc642cb6eb9a060e54bf8d69288fbee4904" || id == "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321"
}

// Body returns the message of a commit object.
func Body(commit string) string {
	_, message, _ := strings.Cut(commit, "\n\n")
	return message
}
