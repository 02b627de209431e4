package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/ralph-pool/ralph/internal/pattern"
	"github.com/ralph-pool/ralph/tracker"
)

// ErrNoFolder is returned if the backlog's folder does not exist.
var ErrNoFolder = errors.New("no such folder")

// open opens the folder; nothing outside of it is reachable through the result. The caller must close it.
func (t *Tracker) open(ctx context.Context) (*os.Root, error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("backlog %s: %w", t.cfg.Dir, context.Cause(ctx))
	}
	root, err := os.OpenRoot(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("backlog %s: %w", t.cfg.Dir, ErrNoFolder)
	}
	if err != nil {
		return nil, fmt.Errorf("backlog %s: %w", t.cfg.Dir, err)
	}
	return root, nil
}

// names lists the issue files, and the temporary files of unfinished writes, both sorted.
func names(root *os.Root) (issues, temps []string, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, nil, fmt.Errorf("backlog %s: %w", root.Name(), err)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case e.IsDir():
		case isIssue(name), strings.EqualFold(path.Ext(name), ".md") && isIssue(name[:len(name)-3]+".md"): // the latter is refused later
			issues = append(issues, name)
		case strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix):
			temps = append(temps, name)
		}
	}
	return issues, temps, nil
}

// isIssue reports whether a file is an issue, by its name.
func isIssue(name string) bool {
	return strings.HasSuffix(name, ".md") && !strings.HasPrefix(name, ".") && !strings.EqualFold(name, "readme.md")
}

// stem returns a file's name without .md.
func stem(name string) string { return strings.TrimSuffix(strings.TrimPrefix(name, "./"), ".md") }

// hashedKey matches a key that may belong to a file with another name.
var hashedKey = pattern.Lazy(`-[0-9a-f]{16}$`)

// find returns the name of a key's file. Most keys equal the file's name, which saves reading a large folder.
func find(root *os.Root, key string) (string, error) {
	name := key + ".md"
	if tracker.Key(key) != key || !isIssue(name) {
		return "", notFound(key)
	}
	if !hashedKey().MatchString(key) {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", notFound(key)
		case err != nil:
			return "", fmt.Errorf("issue %s: %w", key, err)
		}
		// On a case-insensitive file system this may be the file Name.md, which has another key.
		upper, err := root.Lstat(strings.ToUpper(name))
		if err != nil || !os.SameFile(info, upper) {
			if info.IsDir() {
				return "", notFound(key)
			}
			return name, nil
		}
	}
	issues, _, err := names(root)
	if err != nil {
		return "", err
	}
	for _, n := range issues {
		if tracker.Key(stem(n)) == key {
			return n, nil
		}
	}
	return "", notFound(key)
}

func notFound(key string) error { return fmt.Errorf("issue %s: %w", key, tracker.ErrNotFound) }

// readFile reads a regular file of the folder, up to maxFile bytes, and follows no link.
func readFile(root *os.Root, name string) ([]byte, fs.FileInfo, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return nil, nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return nil, nil, errors.New("is a symbolic link, which ralph does not follow; replace it with the file")
	}
	// Without blocking, since the file may have become a pipe meanwhile.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, errors.New("is not a regular file; remove it")
	}
	if info.Size() <= maxFile {
		buf := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
		if _, err = buf.ReadFrom(io.LimitReader(f, maxFile+1)); err != nil {
			return nil, nil, err
		}
		if buf.Len() <= maxFile {
			return buf.Bytes(), info, nil
		}
	}
	return nil, nil, fmt.Errorf("is over %d MiB; shorten it", maxFile>>20)
}

// removeStale removes temporary files left by a crash.
func (t *Tracker) removeStale(root *os.Root, temps []string) {
	for _, name := range temps {
		info, err := root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || t.cfg.Now().Sub(info.ModTime()) < staleTemp {
			continue
		}
		if root.Remove(name) == nil {
			t.cfg.Log.Info("removed the remains of an interrupted write", "file", name)
		}
	}
}
