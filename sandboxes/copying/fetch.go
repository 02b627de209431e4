package copying

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/neutral"
	"github.com/ralph-pool/ralph/sandboxes"
)

// tempName is the name of an incomplete file.
const tempName = ".ralph-fetch-part"

// Fetch copies files out with a tar process inside, whose output is untrusted.
func (s *sandbox) Fetch(ctx context.Context, paths []string, into *os.Root, limits sandboxes.FetchLimits) error {
	ctx, cancel := context.WithTimeoutCause(ctx, copyLimit, fmt.Errorf("copying files out takes longer than %s", copyLimit))
	defer cancel()
	r := newReceiver(into, limits)
	var relative []string
	for _, p := range paths {
		if !path.IsAbs(p) {
			relative = append(relative, "./"+p) // a name cannot be taken for an option
			continue
		}
		if err := s.receive(ctx, r, p, "."); err != nil {
			return fmt.Errorf("copy %s out of the sandbox: %w", p, err)
		}
	}
	if len(relative) > 0 {
		if err := s.receive(ctx, r, s.Workdir(), relative...); err != nil {
			return fmt.Errorf("copy files out of the sandbox: %w", err)
		}
	}
	if r.refused.Count > 0 {
		return &r.refused
	}
	return nil
}

// receive runs one tar in a folder inside and reads its output.
func (s *sandbox) receive(ctx context.Context, r *receiver, dir string, names ...string) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	read, write := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		argv := append([]string{"tar", "-cf", "-", "-C", dir, "--"}, names...)
		_ = write.CloseWithError(runTar(ctx, s.Sandbox, sandboxes.Command{Argv: argv, Stdout: write})) // a nil error becomes io.EOF
	}()
	err := r.read(read)
	if err != nil {
		stop(err)
		_ = read.CloseWithError(err)
	}
	<-ended
	return err
}

// receiver writes a hostile tar stream into a host folder.
type receiver struct {
	root    *os.Root
	limits  sandboxes.FetchLimits
	entries int
	bytes   int64
	refused sandboxes.RefusedError
}

func newReceiver(root *os.Root, l sandboxes.FetchLimits) *receiver {
	return &receiver{root: root, limits: sandboxes.FetchLimits{
		Entries: cmp.Or(l.Entries, 1_000_000), File: cmp.Or(l.File, 1<<30), Bytes: cmp.Or(l.Bytes, 8<<30),
	}}
}

// perEntry bounds the bytes of headers and padding of one entry.
const perEntry = 16 << 10

// read reads a stream to its end.
func (r *receiver) read(stream io.Reader) error {
	limited := &io.LimitedReader{R: stream, N: r.limits.Bytes + int64(r.limits.Entries)*perEntry + 1<<20}
	in := tar.NewReader(limited)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = r.receiveEntry(h, in)
		}
		if err != nil {
			return err
		}
	}
	_, err := io.Copy(io.Discard, limited) // discard the padding, so that the error of tar itself arrives
	if err == nil && limited.N <= 0 {
		err = errors.New("the stream does not end")
	}
	return err
}

// receiveEntry accepts or refuses one entry. An error ends the whole Fetch.
func (r *receiver) receiveEntry(h *tar.Header, in io.Reader) error {
	if err := r.countEntry(); err != nil {
		return err
	}
	p := path.Clean(strings.TrimSuffix(h.Name, "/"))
	if p == "." && h.Typeflag == tar.TypeDir {
		return nil
	}
	err := checkPath(p)
	if err == nil {
		err = r.write(p, h, in)
	}
	switch _, full := errors.AsType[*limitError](err); {
	case full, errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EROFS):
		return err
	case err != nil:
		if r.refused.Count++; r.refused.Count == 1 {
			r.refused.First = fmt.Sprintf("%q: %v", neutral.Shorten(h.Name, 200), err)
		}
	}
	return nil
}

// limitError means that a limit of the Fetch was exceeded.
type limitError struct{ error }

// countEntry counts a file, folder or link.
func (r *receiver) countEntry() error {
	if r.entries++; r.entries > r.limits.Entries {
		return &limitError{fmt.Errorf("there are more than %d files and folders", r.limits.Entries)}
	}
	return nil
}

// count counts the bytes of a file.
func (r *receiver) count(size int64) error {
	switch {
	case size < 0:
		return errors.New("its size is negative")
	case size > r.limits.File:
		return fmt.Errorf("it has %d bytes; a file may have at most %d", size, r.limits.File)
	case size > r.limits.Bytes-r.bytes:
		return &limitError{fmt.Errorf("there are more than %d bytes", r.limits.Bytes)}
	}
	r.bytes += size
	return nil
}

func (r *receiver) write(p string, h *tar.Header, in io.Reader) error {
	mode := fs.FileMode(h.Mode).Perm()
	if err := r.checkParents(p, r.makeFolder); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if old, err := r.root.Lstat(p); err == nil && !old.IsDir() {
			if err := r.removeExisting(p); err != nil {
				return err
			}
		}
		if err := r.root.Mkdir(p, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return r.root.Chmod(p, mode|0o700)
	case tar.TypeSymlink:
		if err := r.checkLink(p, h.Linkname); err != nil {
			return err
		}
		if err := r.removeExisting(p); err != nil {
			return err
		}
		return r.root.Symlink(h.Linkname, p)
	case tar.TypeLink: // another name of an earlier file of the stream
		return r.copyFile(p, path.Clean(h.Linkname), mode)
	case tar.TypeReg:
		if err := r.count(h.Size); err != nil {
			return err
		}
		return r.writeFile(p, in, h.Size, mode)
	}
	return errors.New("it is not a file, folder or link")
}

// checkParents checks each folder above a path, and calls missing for a missing one. None may be a link: an honest tar never
// writes through one, and a link on the host may lead into a git directory.
func (r *receiver) checkParents(p string, missing func(dir string) error) error {
	for i, c := range p {
		if c != '/' {
			continue
		}
		info, err := r.root.Lstat(p[:i])
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = missing(p[:i])
		case err == nil && !info.IsDir():
			err = errors.New("its parent is not a folder")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// maxLinks is the maximum number of links that a link may lead through.
const maxLinks = 40

// checkLink refuses a link that leads out of the folder or into a git directory, also through links that exist on the host.
// Links of the stream were checked when they were created.
func (r *receiver) checkLink(link, target string) error {
	for range maxLinks {
		if err := checkTarget(link, target); err != nil {
			return err
		}
		left := path.Join(path.Dir(link), target) // exact: link's parents are real folders, and ".." comes first in target
		met := false
		for i := 0; i < len(left) && !met; i++ {
			end := strings.IndexByte(left[i:], '/')
			if end < 0 {
				end = len(left) - i
			}
			i += end
			info, err := r.root.Lstat(left[:i])
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case info.Mode().Type() != fs.ModeSymlink:
				continue
			}
			next, err := r.root.Readlink(left[:i])
			if err != nil {
				return err
			}
			link, target, met = left[:i], next+left[i:], true
		}
		if !met {
			return nil
		}
	}
	return errors.New("it leads through too many links")
}

func (r *receiver) makeFolder(dir string) error {
	if err := r.countEntry(); err != nil {
		return err
	}
	return r.root.Mkdir(dir, 0o755)
}

// removeExisting makes room for an entry. It keeps a folder that is not empty: the folder may contain files that the sandbox does
// not know, such as a git directory.
func (r *receiver) removeExisting(p string) error {
	if err := r.root.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (r *receiver) copyFile(p, from string, mode fs.FileMode) error {
	if err := checkPath(from); err != nil {
		return err
	}
	if err := r.checkParents(from, func(string) error { return fs.ErrNotExist }); err != nil {
		return err
	}
	f, info, err := disk.OpenRegular(r.root, from)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := r.count(info.Size()); err != nil {
		return err
	}
	return r.writeFile(p, f, info.Size(), mode)
}

// writeFile writes a new file and renames it, so that it follows no link and leaves no incomplete file. The modification
// time is now: a time chosen by the sandbox could hide the change from git.
func (r *receiver) writeFile(p string, in io.Reader, size int64, mode fs.FileMode) error {
	temp := path.Join(path.Dir(p), tempName)
	if err := r.root.RemoveAll(temp); err != nil {
		return err
	}
	f, err := r.root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyN(f, in, size)
	err = errors.Join(err, f.Chmod(mode|0o600), f.Close())
	if err == nil {
		err = r.removeExisting(p)
	}
	if err == nil {
		err = r.root.Rename(temp, p)
	}
	if err != nil {
		return errors.Join(err, r.root.RemoveAll(temp))
	}
	return nil
}
