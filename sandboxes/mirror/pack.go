package mirror

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"golang.org/x/sys/unix"
)

// Pack writes the entries below root as a tar stream. A file that has vanished, or cannot be read, is left out; one that
// shrinks meanwhile is filled up with zeros, and read again the next time because its mark has changed.
func Pack(w io.Writer, root *os.Root, list []Entry) error {
	out := tar.NewWriter(w)
	if err := Add(out, root, list); err != nil {
		return err
	}
	return out.Close()
}

// Add is Pack into a stream that may hold more.
func Add(out *tar.Writer, root *os.Root, list []Entry) error {
	for _, e := range list {
		if err := packOne(out, root, e); err != nil {
			return fmt.Errorf("pack %q: %w", clip(e.Path), err)
		}
	}
	return nil
}

func packOne(out *tar.Writer, root *os.Root, e Entry) error {
	h := &tar.Header{Name: e.Path, Mode: int64(e.Mode.Perm()), Format: tar.FormatPAX}
	switch e.Kind {
	case Folder:
		h.Typeflag, h.Name = tar.TypeDir, e.Path+"/"
		return out.WriteHeader(h)
	case Link:
		h.Typeflag, h.Linkname = tar.TypeSymlink, e.Target
		return out.WriteHeader(h)
	}
	f, info, err := openFile(root, e.Path)
	if err != nil {
		return nil // the other side misses it, and says so
	}
	defer func() { _ = f.Close() }()
	h.Typeflag, h.Size, h.ModTime = tar.TypeReg, info.Size(), info.ModTime()
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(f, h.Size))
	if err == nil && n < h.Size {
		_, err = io.CopyN(out, zeros{}, h.Size-n)
	}
	return err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// openFile opens a regular file and nothing else: a pipe is not waited for, a link not followed.
func openFile(root *os.Root, p string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(p, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// Unpack puts a stream of Pack below root, in the place of what is there. It is the sandbox's side: the stream is ralph's
// own and believed, and modes and times are kept.
func Unpack(r io.Reader, root *os.Root) error {
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			// What is after the end has to be read, or the writer fails.
			_, err = io.Copy(io.Discard, r)
			return err
		}
		if err == nil {
			err = unpackOne(in, root, h)
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
	}
}

func unpackOne(in io.Reader, root *os.Root, h *tar.Header) error {
	p := path.Clean(h.Name)
	if err := root.MkdirAll(path.Dir(p), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(h.Mode).Perm()
	switch h.Typeflag {
	case tar.TypeDir:
		return makeFolder(root, p, mode)
	case tar.TypeSymlink:
		return makeLink(root, p, h.Linkname)
	}
	return writeFile(root, p, in, h.Size, mode, h.ModTime)
}

// Remove takes paths below root away, whatever they are. What is not there is no error.
func Remove(root *os.Root, paths []string) error {
	var errs []error
	for _, p := range paths {
		errs = append(errs, root.RemoveAll(p))
	}
	return errors.Join(errs...)
}

func makeFolder(root *os.Root, p string, mode fs.FileMode) error {
	if old, err := root.Lstat(p); err == nil && !old.IsDir() {
		if err := root.Remove(p); err != nil {
			return err
		}
	}
	if err := root.Mkdir(p, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	// The owner can always write: more is put into it.
	return root.Chmod(p, mode|0o700)
}

func makeLink(root *os.Root, p, target string) error {
	if err := root.RemoveAll(p); err != nil {
		return err
	}
	return root.Symlink(target, p)
}

// writeFile gives the name to a new file, so that neither a link there is followed nor half a file is left. A zero time
// is now.
func writeFile(root *os.Root, p string, in io.Reader, size int64, mode fs.FileMode, at time.Time) error {
	temp := path.Join(path.Dir(p), tempName)
	if err := root.RemoveAll(temp); err != nil {
		return err
	}
	f, err := root.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, in)
	if err == nil && n != size {
		err = fmt.Errorf("%q has %d bytes instead of %d", clip(p), n, size)
	}
	err = errors.Join(err, f.Chmod(mode|0o600), f.Close())
	if err == nil && !at.IsZero() {
		err = root.Chtimes(temp, at, at)
	}
	if err == nil {
		if old, statErr := root.Lstat(p); statErr == nil && old.IsDir() {
			err = root.RemoveAll(p)
		}
	}
	if err == nil {
		err = root.Rename(temp, p)
	}
	if err != nil {
		return errors.Join(err, root.RemoveAll(temp))
	}
	return nil
}

// tempName is what a file is called until it is whole. A sandbox cannot have one of that name taken.
const tempName = ".ralph-mirror-part"
