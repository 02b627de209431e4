package mirror

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// markGrain is the coarsest clock of a file system that is met.
const markGrain = 20 * time.Millisecond

// closed is the mark of a folder that cannot be looked into.
const closed = "closed"

// List says what is below root, parents first. What skip names is left out, with all below it. A file that has just been
// changed has no mark: it may change again without a trace.
func List(root *os.Root, skip func(string) bool) ([]Entry, error) {
	return list(root, skip, time.Now().Add(-markGrain))
}

// list marks files that have not changed since then.
func list(root *os.Root, skip func(string) bool, then time.Time) ([]Entry, error) {
	var all []Entry
	todo := []int{-1} // folders, by their place in the list
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		dir := "."
		if at >= 0 {
			dir = all[at].Path
		}
		names, err := readNames(root, dir)
		if err != nil {
			if at < 0 {
				return nil, err
			}
			all[at].Mark = closed
			continue
		}
		for _, name := range names {
			p := path.Join(dir, name)
			if skip != nil && skip(p) {
				continue
			}
			e, ok := look(root, p, then)
			if !ok {
				continue
			}
			all = append(all, e)
			if e.Kind == Folder {
				todo = append(todo, len(all)-1)
			}
		}
	}
	return all, nil
}

func readNames(root *os.Root, dir string) ([]string, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}

// look describes one path; false for what is no folder, file or link.
func look(root *os.Root, p string, then time.Time) (Entry, bool) {
	info, err := root.Lstat(p)
	if err != nil {
		return Entry{}, false
	}
	e := Entry{Path: p, Mode: info.Mode().Perm()}
	switch {
	case info.IsDir():
		e.Kind = Folder
	case info.Mode().IsRegular():
		e.Kind, e.Size, e.Mark = File, info.Size(), mark(info, then)
	case info.Mode()&fs.ModeSymlink != 0:
		e.Kind, e.Mode = Link, 0
		if e.Target, err = root.Readlink(p); err != nil {
			return Entry{}, false
		}
	default:
		return Entry{}, false
	}
	return e, true
}

// Encode writes a list for Decode.
func Encode(w io.Writer, list []Entry) error {
	var b bytes.Buffer
	for _, e := range list {
		fmt.Fprintf(&b, "%c %o %d %s %s\x00%s\x00", e.Kind, e.Mode.Perm(), e.Size, e.Mark, e.Path, e.Target)
		if b.Len() > 64<<10 {
			if _, err := b.WriteTo(w); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(&b, "end %d\x00", len(list))
	_, err := b.WriteTo(w)
	return err
}

// Decode reads a list. It says nothing about whether the entries may be taken: Apply judges them.
func Decode(text []byte, l Limits) ([]Entry, error) {
	l = l.withDefaults()
	var list []Entry
	next := func() (string, error) {
		field, rest, ok := bytes.Cut(text, []byte{0})
		if !ok {
			return "", errors.New("the list of files is cut off")
		}
		text = rest
		return string(field), nil
	}
	for {
		head, err := next()
		if err != nil {
			return nil, err
		}
		if count, ok := strings.CutPrefix(head, "end "); ok {
			if count != strconv.Itoa(len(list)) || len(text) > 0 {
				return nil, errors.New("the list of files does not end where it says")
			}
			return list, nil
		}
		if len(list) == l.Entries {
			return nil, fmt.Errorf("there are more than %d files and folders", l.Entries)
		}
		target, err := next()
		if err != nil {
			return nil, err
		}
		e, err := decodeEntry(head, target)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
}

func decodeEntry(head, target string) (Entry, error) {
	bad := fmt.Errorf("the list of files has a line that is none: %q", clip(head))
	parts := strings.SplitN(head, " ", 5)
	if len(parts) != 5 || len(parts[0]) != 1 || !strings.Contains("dfl", parts[0]) {
		return Entry{}, bad
	}
	mode, err := strconv.ParseUint(parts[1], 8, 9)
	size, err2 := strconv.ParseInt(parts[2], 10, 63)
	if err != nil || err2 != nil || size < 0 || len(parts[3]) > 120 {
		return Entry{}, bad
	}
	e := Entry{Path: parts[4], Kind: Kind(parts[0][0]), Mode: fs.FileMode(mode), Size: size, Mark: parts[3], Target: target}
	if (e.Kind == Link) != (target != "") || e.Kind != File && size != 0 || e.Kind == Link && e.Mark != "" {
		return Entry{}, bad
	}
	return e, nil
}
