package importer

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // the names of git's objects, not a security measure
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
)

// Types of objects in a pack.
const (
	typeCommit = 1
	typeTree   = 2
	typeBlob   = 3
)

// Limits in bytes of one object and of all objects of its type. These objects are held in memory, and messages again
// whenever commits are listed.
const (
	treeLimit    = 16 << 20
	treesLimit   = 1 << 30
	commitLimit  = 1 << 20
	commitsLimit = 64 << 20
)

// contents describes the contents of a pack except files.
type contents struct {
	objects  int
	trees    map[string]*tree     // by raw ID
	commits  map[string]time.Time // commit time of each
	gitlinks bool                 // a tree refers to a commit of another repository
	odd      map[string]error     // trees that git would not write, by raw ID, with the reason
}

// tree describes a folder: the number of its files, and its subfolders.
type tree struct {
	files       int
	folders     string // for each, the raw ID and one byte with the length of its name
	longestName int    // bytes of the longest file name
	nameBytes   int64  // bytes of all file names
	paths       int    // paths in all folders below, once counted; see counter
	depth       int
	longestPath int   // bytes of the longest path
	pathBytes   int64 // bytes of all paths
	odd         error // why git would not write such a folder; nil: it would
}

// each iterates over the subfolders: raw ID and length of the name. They may take up a gigabyte, so they are kept in packed
// form.
func (t *tree) each(idSize int) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for rest := t.folders; rest != "" && yield(rest[:idSize], int(rest[idSize])); rest = rest[idSize+1:] {
		}
	}
}

// rawID returns the raw bytes of an ID as stored in folders, or "" if id is not valid.
func rawID(id string) string {
	raw, _ := hex.DecodeString(id)
	return string(raw)
}

// Limits of file systems on names and paths. A commit that exceeds them could not be checked out anywhere.
const (
	nameLimit = 255
	pathLimit = 4095
)

// scanner reads a pack as it arrives and refuses objects above the caps before git sees them. It accepts no deltas: a few
// bytes of a delta can stand for any amount of data.
type scanner struct {
	in        *bufio.Reader
	caps      Caps
	sha256    bool
	zlib      io.ReadCloser
	size      int64         // unpacked bytes so far
	bytesHeld map[int]int64 // bytes held of trees and of commits, by type
}

func (s *scanner) scan() (*contents, error) {
	header := make([]byte, 12)
	if _, err := io.ReadFull(s.in, header); err != nil {
		return nil, fmt.Errorf("read the pack: %w", err)
	}
	count := binary.BigEndian.Uint32(header[8:])
	if string(header[:4]) != "PACK" || binary.BigEndian.Uint32(header[4:]) != 2 {
		return nil, errors.New("read the pack: it is not a pack")
	}
	if int64(count) > int64(s.caps.Objects) {
		return nil, fmt.Errorf("%d objects: %w", count, ErrTooBig)
	}
	s.bytesHeld = map[int]int64{}
	c := &contents{objects: int(count), trees: map[string]*tree{}, commits: map[string]time.Time{}, odd: map[string]error{}}
	for range count {
		if err := s.readObject(c); err != nil {
			return nil, fmt.Errorf("read the pack: %w", err)
		}
	}
	if _, err := io.CopyN(io.Discard, s.in, int64(s.newHash().Size())); err != nil { // the checksum; git checks it
		return nil, fmt.Errorf("read the pack: %w", err)
	}
	if _, err := s.in.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("read the pack: there is more data after its end"), err)
	}
	return c, nil
}

// readObject reads one object.
func (s *scanner) readObject(c *contents) error {
	kind, size, err := s.readHeader()
	if err != nil {
		return err
	}
	limit := int64(treeLimit)
	switch kind {
	case typeBlob:
		limit = s.caps.Blob
	case typeCommit:
		limit = commitLimit
	}
	if s.size += size; size > limit || s.size > s.caps.Size {
		return fmt.Errorf("an object of %d bytes, %d so far: %w", size, s.size, ErrTooBig)
	}
	if s.zlib == nil {
		s.zlib, err = zlib.NewReader(s.in)
	} else {
		err = s.zlib.(zlib.Resetter).Reset(s.in, nil)
	}
	if err != nil {
		return err
	}
	if kind == typeBlob {
		_, err = io.CopyN(io.Discard, s.zlib, size)
	} else {
		err = s.readTreeOrCommit(c, kind, size)
	}
	if err != nil {
		return err
	}
	if n, err := s.zlib.Read(make([]byte, 1)); n > 0 || !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("an object is longer than its header says"), err)
	}
	return nil
}

// readHeader reads type and size of an object.
func (s *scanner) readHeader() (kind int, size int64, err error) {
	b, err := s.in.ReadByte()
	if err != nil {
		return 0, 0, err
	}
	kind, size = int(b>>4&7), int64(b&15)
	for shift := 4; b&0x80 != 0; shift += 7 {
		if b, err = s.in.ReadByte(); err != nil {
			return 0, 0, err
		}
		if shift > 53 {
			return 0, 0, fmt.Errorf("an object's size: %w", ErrTooBig)
		}
		size |= int64(b&0x7f) << shift
	}
	if kind < typeCommit || kind > typeBlob {
		return 0, 0, fmt.Errorf("an object has the type %d; only commits, trees and files are imported", kind)
	}
	return kind, size, nil
}

// readTreeOrCommit reads a tree or commit into c.
func (s *scanner) readTreeOrCommit(c *contents, kind int, size int64) error {
	name, limit := "commit", int64(commitsLimit)
	if kind == typeTree {
		name, limit = "tree", treesLimit
	}
	if s.bytesHeld[kind] += size; s.bytesHeld[kind] > limit {
		return fmt.Errorf("%d bytes of %ss so far: %w", s.bytesHeld[kind], name, ErrTooBig)
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(s.zlib, content); err != nil {
		return err
	}
	h := s.newHash()
	_, _ = h.Write([]byte(name + " " + strconv.FormatInt(size, 10) + "\x00")) // never fails
	_, _ = h.Write(content)
	id := h.Sum(nil)
	if kind == typeCommit {
		c.commits[hex.EncodeToString(id)] = commitTime(content)
		return nil
	}
	t, err := c.parseTree(content, h.Size())
	if err != nil {
		return err
	}
	c.trees[string(id)] = t
	if t.odd != nil {
		c.odd[string(id)] = t.odd
	}
	if len(c.odd) > oddLimit {
		return t.odd
	}
	return nil
}

func (s *scanner) newHash() hash.Hash {
	if s.sha256 {
		return sha256.New()
	}
	return sha1.New() //nolint:gosec // see the import
}

// oddLimit is the number of odd folders that an old given history may have.
const oddLimit = 1000

// checkEntry returns an error for an entry that git never writes: an unknown mode, or an empty folder. Programs disagree
// about the contents of a folder with such an entry.
func checkEntry(mode, name, id []byte) error {
	switch {
	case !slices.Contains([]string{"100644", "100755", "120000", "40000", "160000"}, string(mode)):
		return fmt.Errorf("%s has mode %s, which git does not write", git.Printable(string(name)), git.Printable(string(mode)))
	case git.IsEmptyTree(hex.EncodeToString(id)):
		return fmt.Errorf("the folder %s is empty, and git writes no such folder", git.Printable(string(name)))
	}
	return nil
}

// parseTree parses "MODE NAME\0ID" entries.
func (c *contents) parseTree(content []byte, idSize int) (*tree, error) {
	t := &tree{}
	var folders []byte
	for len(content) > 0 {
		end := bytes.IndexByte(content, 0)
		if end < 0 || len(content) < end+1+idSize {
			return nil, errors.New("a folder cannot be read")
		}
		mode, name, _ := bytes.Cut(content[:end], []byte(" "))
		if len(name) > nameLimit {
			return nil, fmt.Errorf("a name has %d bytes, and file systems allow %d: %s…",
				len(name), nameLimit, git.Printable(string(name[:50])))
		}
		t.longestName = max(t.longestName, len(name))
		t.nameBytes += int64(len(name))
		t.odd = cmp.Or(t.odd, checkEntry(mode, name, content[end+1:end+1+idSize]))
		const format = 0o170000
		bits, _ := strconv.ParseUint(string(mode), 8, 32) // like git, take a mode that is not a number for a gitlink
		switch bits & format {
		case 0o040000:
			folders = append(append(folders, content[end+1:end+1+idSize]...), byte(len(name))) //nolint:gosec // see nameLimit
			t.nameBytes -= int64(len(name))
		case 0o100000, 0o120000:
			t.files++
		default:
			c.gitlinks = true
			t.files++
		}
		content = content[end+1+idSize:]
	}
	t.folders = string(folders)
	return t, nil
}

// commitTime returns the committer's time. Git's own check finds malformed commits.
func commitTime(content []byte) time.Time {
	for line := range bytes.Lines(content) {
		name, value, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte(" "))
		switch string(name) {
		case "":
			return time.Time{}
		case "committer":
			fields := bytes.Fields(value[bytes.LastIndexByte(value, '>')+1:])
			if len(fields) == 0 {
				return time.Time{}
			}
			seconds, _ := strconv.ParseInt(string(fields[0]), 10, 64) // git's check refuses an invalid number
			return time.Unix(seconds, 0)
		}
	}
	return time.Time{}
}
