// Package archive packs copies of run folders for other machines, with logs and events, within size limits.
//
// [Pack] and [Unpack] are safe for concurrent use. So is [Copies], also by processes that share its folder.
package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/pool/journal"
)

// room is the size limit of a copy, in bytes before compression.
type room struct {
	file, all int64
	files     int
}

func most() room { return room{file: 16 << 20, all: 64 << 20, files: 4096} }

// MaxSize is the maximum size of a copy in bytes. It exceeds the limit of the content, because incompressible data grows a
// little.
const MaxSize = 72 << 20

// Pack packs the regular files of a run's folder. Of long files it packs the end, and it leaves out files above the limits.
// It returns nil for a folder without files.
func Pack(dir string) (content []byte, err error) { return most().pack(dir) }

func (r room) pack(dir string) (content []byte, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("copy of a run's folder: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("copy of a run's folder: %w", err)
	}
	slices.SortStableFunc(entries, func(a, b fs.DirEntry) int { return rank(a.Name()) - rank(b.Name()) })
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	to := tar.NewWriter(zipped)
	files := 0
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		n, err := r.add(to, root, e.Name())
		if err != nil {
			return nil, fmt.Errorf("copy of a run's folder: %w", err)
		}
		if n > 0 {
			r.all, files = r.all-n, files+1
		}
		if files == r.files {
			break
		}
	}
	if err := errors.Join(to.Close(), zipped.Close()); err != nil || files == 0 {
		return nil, err
	}
	return out.Bytes(), nil
}

func rank(name string) int {
	if name == journal.EventsFile { // first: all pages about a run need it
		return 0
	}
	return 1
}

// add adds a file's end and returns the number of bytes added; 0 if the file is empty or exceeds the limits.
func (r room) add(to *tar.Writer, root *os.Root, name string) (int64, error) {
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return 0, err
	}
	skip := max(0, info.Size()-r.file)
	if _, err := f.Seek(skip, io.SeekStart); err != nil {
		return 0, err
	}
	text, err := io.ReadAll(io.LimitReader(f, r.file))
	if err != nil {
		return 0, err
	}
	if skip > 0 { // drop the incomplete first line
		text = text[bytes.IndexByte(text, '\n')+1:]
		if name != journal.EventsFile {
			text = append(fmt.Appendf(nil, "[the first %d bytes are on the machine that worked the run]\n", skip), text...)
		}
	}
	n := int64(len(text))
	if n == 0 || n > r.all {
		return 0, nil
	}
	if err := to.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: n, ModTime: info.ModTime(), Format: tar.FormatPAX}); err != nil {
		return 0, err
	}
	_, err = to.Write(text)
	return n, err
}

// Unpack unpacks a copy into a new folder. The copy comes from another machine, so Unpack accepts only plain files and the
// limits of [Pack].
func Unpack(content []byte, dir string) error {
	if err := unpack(content, dir); err != nil {
		return fmt.Errorf("copy of a run's folder: %w", err)
	}
	return nil
}

func unpack(content []byte, dir string) error {
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	from := tar.NewReader(bufio.NewReader(io.LimitReader(plain, 2*most().all))) // the factor leaves space for headers
	left, files := most().all, most().files
	for {
		h, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		left, files = left-h.Size, files-1
		plainName := h.Name == filepath.Base(h.Name) && filepath.IsLocal(h.Name) && !strings.ContainsRune(h.Name, '\\')
		if h.Typeflag != tar.TypeReg || !plainName || left < 0 || files < 0 {
			return fmt.Errorf("it contains %q, which no run writes", h.Name)
		}
		f, err := root.OpenFile(h.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, from)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if err := root.Chtimes(h.Name, h.ModTime, h.ModTime); err != nil {
			return err
		}
	}
}
