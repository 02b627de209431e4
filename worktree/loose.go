package worktree

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// Caps bound what one hand-back takes from a private repository. Zero values are the defaults.
type Caps struct {
	Objects int   // how many; default 1,000,000
	Size    int64 // bytes of all of them, unpacked; default 4 GiB
	Blob    int64 // bytes of one file; default 512 MiB
}

func (c Caps) withDefaults() Caps {
	if c.Objects == 0 {
		c.Objects = 1_000_000
	}
	if c.Size == 0 {
		c.Size = 4 << 30
	}
	if c.Blob == 0 {
		c.Blob = 512 << 20
	}
	return c
}

// errTooBig: a hand-back would be bigger than its Caps.
var errTooBig = errors.New("too big to be handed back")

// treeLimit is the most that a commit or tree may have: these are read whole.
const treeLimit = 16 << 20

// looseObjects finds the loose objects of a private repository that a commit needs. An object that is not there is the
// user's own, or packed, or missing: git tells these apart later.
type looseObjects struct {
	root   *os.Root
	caps   Caps
	nameSz int             // bytes of an object's name
	known  map[string]bool // commits that the user's repository has; nothing behind them is looked at
	fans   map[string]bool // of the 256 folders, those that exist

	found []looseObject
	seen  map[string]bool // the names of found
	size  int64
}

// looseObject is one of them; git computes the name anew from the content.
type looseObject struct {
	name string
	kind string
	size int64
}

func (l *looseObjects) path(name string) string { return "objects/" + name[:2] + "/" + name[2:] }

// collect finds everything that the commits reach.
func (l *looseObjects) collect(ctx context.Context, commits ...string) error {
	for todo := commits; len(todo) > 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if l.seen[name] || l.known[name] || !l.maybe(name) {
			continue
		}
		more, err := l.visit(name)
		if err != nil {
			return err
		}
		if todo = append(todo, more...); len(todo) > 4*l.caps.Objects {
			return fmt.Errorf("%d names in trees: %w", len(todo), errTooBig)
		}
	}
	return nil
}

// startsAt reports that the first object found has the name and says that it is a commit.
func (l *looseObjects) startsAt(commit string) bool {
	return len(l.found) > 0 && l.found[0].name == commit && l.found[0].kind == "commit"
}

// maybe rules out most names without a look at the disk.
func (l *looseObjects) maybe(name string) bool {
	fan := name[:2]
	there, looked := l.fans[fan]
	if !looked {
		info, err := l.root.Lstat("objects/" + fan)
		there = err == nil && info.IsDir()
		l.fans[fan] = there
	}
	return there
}

// visit notes one object and returns the names that it refers to.
func (l *looseObjects) visit(name string) ([]string, error) {
	o, content, err := l.open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", short(name), err)
	}
	defer content.Close()
	l.size += o.size
	l.seen[name] = true
	l.found = append(l.found, o)
	switch {
	case o.size > l.caps.Blob || o.kind != "blob" && o.size > treeLimit:
		return nil, fmt.Errorf("object %s has %d bytes: %w", short(name), o.size, errTooBig)
	case l.size > l.caps.Size || len(l.found) > l.caps.Objects:
		return nil, fmt.Errorf("%d objects of %d bytes so far: %w", len(l.found), l.size, errTooBig)
	case o.kind == "blob":
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(content, o.size))
	if err != nil {
		return nil, fmt.Errorf("object %s: %w", short(name), err)
	}
	if o.kind == "tree" {
		return treeEntries(body, l.nameSz), nil
	}
	return commitLinks(string(body)), nil
}

// open begins to read an object; the reader gives its content.
func (l *looseObjects) open(name string) (looseObject, io.ReadCloser, error) {
	f, err := openWithin(l.root, l.path(name))
	if err != nil {
		return looseObject{}, nil, err
	}
	z, err := zlib.NewReader(f)
	if err != nil {
		return looseObject{}, nil, errors.Join(err, f.Close())
	}
	r := bufio.NewReader(z)
	kind, size, err := looseHeader(r)
	if err != nil {
		return looseObject{}, nil, errors.Join(err, f.Close())
	}
	return looseObject{name, kind, size}, readCloser{r, f}, nil
}

type readCloser struct {
	io.Reader
	io.Closer
}

// looseHeader reads "blob 12\0".
func looseHeader(r io.ByteReader) (kind string, size int64, err error) {
	var header []byte
	for len(header) < 32 {
		c, err := r.ReadByte()
		if err != nil {
			return "", 0, err
		}
		if c == 0 {
			break
		}
		header = append(header, c)
	}
	kind, digits, _ := strings.Cut(string(header), " ")
	size, err = strconv.ParseInt(digits, 10, 64)
	if _, known := packKinds()[kind]; !known || err != nil || size < 0 {
		return "", 0, fmt.Errorf("not a git object: %q", printable(string(header)))
	}
	return kind, size, nil
}

// treeEntries gives the names in a tree, but for submodules, whose commits are elsewhere. What cannot be read ends it:
// git will say what is wrong with the tree.
func treeEntries(body []byte, nameSize int) []string {
	var names []string
	for len(body) > 0 {
		head, rest, ok := bytes.Cut(body, []byte{0})
		if !ok || len(rest) < nameSize {
			break
		}
		if !bytes.HasPrefix(head, []byte("160000 ")) {
			names = append(names, hex.EncodeToString(rest[:nameSize]))
		}
		body = rest[nameSize:]
	}
	return names
}

// commitLinks gives the tree and the parents of a commit, or the object of a tag.
func commitLinks(body string) []string {
	var names []string
	for line := range strings.Lines(body) {
		key, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if key != "tree" && key != "parent" && key != "object" {
			break
		}
		if isObjectName(name) {
			names = append(names, name)
		}
	}
	return names
}
