package diff

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// File is a path that differs between two commits.
type File struct {
	Path     string // path in the second commit, or in the first if the file was deleted
	OldPath  string // path in the first commit, if the file was renamed
	Old, New Entry
}

// Entry is a file's entry in a tree; the zero Entry means that the file does not exist.
type Entry struct {
	Mode string // such as "100644"
	ID   string
}

// Gitlink is the Mode of a commit of another repository, as a submodule has.
const Gitlink = "160000"

// Exists reports whether the file exists.
func (e Entry) Exists() bool { return e.ID != "" }

// Files lists the paths that differ between two commits, with renames.
func Files(ctx context.Context, g git.Runner, base, tip string) ([]File, error) {
	return filesOf(ctx, g, base, tip, "--find-renames", "-l2000")
}

func filesOf(ctx context.Context, g git.Runner, base, tip string, renames ...string) (files []File, err error) {
	if !git.IsObject(base) || !git.IsObject(tip) { // git would compare the tip with its parents
		return nil, fmt.Errorf("list changed files: %q and %q are not names of commits", git.Printable(base), git.Printable(tip))
	}
	args := append([]string{
		"diff-tree", "--stdin", "--always", "-r", "-z", "--raw", "--no-abbrev", "--no-color", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=none",
	}, renames...)
	read := func(r *bufio.Reader) error {
		files, err = parseFiles(r, tip)
		return err
	}
	if err := g.WithMemory(git.AgentMemory).Ask(ctx, tip+" "+base+"\n"+endOfAnswer, read, args...); err != nil {
		return nil, fmt.Errorf("list changed files: %w", err)
	}
	return files, nil
}

// Touched lists the paths that tip's commits change since tip forked from base, with both names of a renamed file.
func Touched(ctx context.Context, g git.Runner, base, tip string) ([]string, error) {
	out, err := g.Output(ctx, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=none", "--merge-base", "--end-of-options", base, tip, "--")
	if err != nil {
		return nil, fmt.Errorf("list changed files: %w", err)
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 }), nil
}

// parseFiles reads the name of the tip and its files: git skips a commit that it cannot read.
func parseFiles(r *bufio.Reader, tip string) (files []File, err error) {
	if name, err := r.Peek(len(tip) + 1); err != nil {
		return nil, err
	} else if string(name) != tip+"\x00" {
		return nil, fmt.Errorf("git does not show commit %s", git.Short(tip))
	}
	_, _ = r.Discard(len(tip) + 1) // already seen by Peek
	for {
		next, err := r.Peek(1)
		if err != nil {
			return nil, err
		}
		if next[0] != ':' {
			line, err := r.ReadString('\n')
			if err == nil && line != endOfAnswer {
				err = fmt.Errorf("git diff-tree: cannot read %q", git.Printable(line))
			}
			return files, err
		}
		modes, err := r.ReadString(0)
		if err != nil {
			return nil, err
		}
		meta := strings.Fields(strings.Trim(modes, ":\x00"))
		if len(meta) != 5 {
			return nil, fmt.Errorf("git diff-tree: cannot read %q", git.Printable(modes))
		}
		f := File{Old: entry(meta[0], meta[2]), New: entry(meta[1], meta[3])}
		paths := []*string{&f.Path}
		if strings.HasPrefix(meta[4], "R") || strings.HasPrefix(meta[4], "C") {
			paths = []*string{&f.OldPath, &f.Path}
		}
		for _, path := range paths {
			if *path, err = r.ReadString(0); err != nil {
				return nil, err
			}
			*path = strings.TrimSuffix(*path, "\x00")
		}
		files = append(files, f)
	}
}

// entry returns the zero Entry if the mode is all zeros.
func entry(mode, id string) Entry {
	if strings.Trim(mode, "0") == "" {
		return Entry{}
	}
	return Entry{mode, id}
}

// ErrTooMuch means that there are more files or changes than the limits allow.
var ErrTooMuch = errors.New("too much has changed")

// Limit bounds the bytes read of each file and of all files.
type Limit struct{ Each, All int }

// Texts reads regular files and links, by object ID: at most one byte more than limit.Each of each file. It fails with
// ErrTooMuch above limit.All.
func Texts(ctx context.Context, g git.Runner, entries []Entry, limit Limit) (map[string][]byte, error) {
	var names []string
	texts := map[string][]byte{}
	for _, e := range entries {
		if _, known := texts[e.ID]; known || !e.Exists() || !strings.HasPrefix(e.Mode, "1") || e.Mode == Gitlink {
			continue
		}
		texts[e.ID] = nil
		names = append(names, e.ID)
	}
	err := g.EachObject(ctx, names, func(o git.Object, content io.Reader) error {
		text := make([]byte, min(o.Size, int64(limit.Each)+1))
		if limit.All -= len(text); limit.All < 0 {
			return ErrTooMuch
		}
		_, err := io.ReadFull(content, text)
		texts[o.Name] = text
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read files: %w", err)
	}
	return texts, nil
}

// List returns all files of a commit, by path.
func List(ctx context.Context, g git.Runner, commit string) (map[string]Entry, error) {
	out, err := g.Files(ctx, commit)
	if err != nil {
		return nil, fmt.Errorf("list files: %w", err)
	}
	files := make(map[string]Entry, strings.Count(out, "\x00"))
	for line := range strings.SplitSeq(out, "\x00") {
		meta, path, _ := strings.Cut(line, "\t")
		mode, meta, _ := strings.Cut(meta, " ")
		if _, id, ok := strings.Cut(meta, " "); ok {
			files[path] = Entry{mode, id}
		}
	}
	return files, nil
}
