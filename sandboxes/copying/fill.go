package copying

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/ralph-pool/ralph/internal/disk"
	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

// fill copies the sources into the sandbox as one tar stream, which a command inside unpacks.
func fill(ctx context.Context, s sandboxes.Sandbox, sources []source) error {
	ctx, cancel := context.WithTimeoutCause(ctx, copyLimit, fmt.Errorf("copying files in takes longer than %s", copyLimit))
	defer cancel()
	read, write := io.Pipe()
	packed := make(chan error, 1)
	go func() {
		err := pack(write, sources)
		_ = write.CloseWithError(err)
		packed <- err
	}()
	err := runTar(ctx, s, sandboxes.Command{Argv: []string{"tar", "-xpof", "-", "-C", "/"}, Stdin: read})
	_ = read.Close() // stops a pack that is still writing
	if packErr := <-packed; packErr != nil && !errors.Is(packErr, io.ErrClosedPipe) {
		err = packErr
	}
	if err != nil {
		return fmt.Errorf("copy files into the sandbox: %w", err)
	}
	return nil
}

// runTar runs a tar inside, and returns an error unless it succeeds.
func runTar(ctx context.Context, s sandboxes.Sandbox, cmd sandboxes.Command) error {
	output := proc.NewTail(1 << 10)
	cmd.Dir, cmd.Stderr = "/", output
	exit, err := s.Exec(ctx, cmd)
	switch {
	case sandboxes.NoProgram(err):
		return errors.New("the image has no tar; add it to the image's file and build it again")
	case err != nil:
		return err
	case !exit.OK():
		return fmt.Errorf("tar inside ends with status %d: %.200q", exit.Code, strings.TrimSpace(output.String()))
	}
	return nil
}

// pack writes the sources as one tar stream, with names relative to the sandbox's root.
func pack(to io.Writer, sources []source) error {
	out := tar.NewWriter(to)
	for _, s := range sources {
		if err := packSource(out, s); err != nil {
			return err
		}
	}
	return out.Close()
}

func packSource(out *tar.Writer, s source) error {
	dir, only := s.host, ""
	if s.isFile {
		dir, only = path.Dir(s.host), path.Base(s.host)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	if s.isFile {
		return packOne(out, root, s, only, s.inside)
	}
	return fs.WalkDir(root.FS(), ".", func(p string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && p != ".":
			return nil // removed meanwhile
		case err != nil:
			return fmt.Errorf("copy %s: %w", path.Join(dir, p), err)
		case p == ".":
			return nil
		case s.skip != nil && s.skip(p):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return packOne(out, root, s, p, path.Join(s.inside, p))
	})
}

// packOne writes one file, folder or link. It follows no link and does not block on a pipe.
func packOne(out *tar.Writer, root *os.Root, s source, p, inside string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy %s: %w", path.Join(root.Name(), p), err)
		}
	}()
	info, err := root.Lstat(p)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !isPlain(info.Mode()) {
		return nil
	}
	if err != nil {
		return err
	}
	// GNU format: busybox's tar cannot read long names in the PAX format.
	h := &tar.Header{Name: strings.TrimPrefix(inside, "/"), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatGNU}
	if s.mount.ReadOnly {
		h.Mode &^= 0o222
	}
	switch {
	case info.IsDir():
		h.Typeflag, h.Name, h.Mode = tar.TypeDir, h.Name+"/", h.Mode|0o700 // files follow, so the folder must be writable
		return out.WriteHeader(h)
	case info.Mode().Type() == fs.ModeSymlink:
		target, err := root.Readlink(p)
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, target
		return out.WriteHeader(h)
	}
	f, info, err := disk.OpenRegular(root, p)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	h.Typeflag, h.Size = tar.TypeReg, info.Size()
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(f, h.Size))
	if err == nil && n < h.Size {
		err = errors.New("it has become shorter meanwhile")
	}
	return err
}
