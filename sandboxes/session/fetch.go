package session

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

const (
	listScript = `exec find . -name .git -prune -o -type f -print0`
	sendScript = `exec tar -xf - -C "$1"`

	maxNames   = 64 << 20 // bytes of file names that are read from inside
	fetchChunk = 500      // names that fit on a command line
)

// Fetch copies files and folders of the workspace inside to the host if the provider copies files. With other providers it
// does nothing. Notices lists refused files.
func (s *Session) Fetch(ctx context.Context, paths ...string) error {
	for _, p := range paths {
		if _, err := cleanPath(p); err != nil && path.Clean(p) != "." {
			return fmt.Errorf("fetch %.80q: %w", p, err)
		}
	}
	return s.fetch(ctx, s.Workspace.root, s.config.MaxFiles, paths...)
}

// FetchFolder copies the contents of any folder inside to a host folder, if the provider copies files.
func (s *Session) FetchFolder(ctx context.Context, inside string, to *os.Root) error {
	return s.fetch(ctx, to, s.config.MaxFiles, inside)
}

func (s *Session) fetch(ctx context.Context, to *os.Root, room int64, paths ...string) error {
	f, copies := sandboxes.As[sandboxes.Fetcher](s.box)
	if !copies {
		return nil
	}
	err := f.Fetch(ctx, paths, to, sandboxes.FetchLimits{Entries: maxEntries, File: s.config.MaxFile, Bytes: max(room, 1)})
	if refused, ok := errors.AsType[*sandboxes.RefusedError](err); ok {
		s.notice("%v", refused)
		return nil
	}
	if err != nil {
		return fmt.Errorf("fetch files: %w", err)
	}
	return nil
}

// fetchOutputs fetches the output files within the limits. If there are more, it adds a notice.
func (s *Session) fetchOutputs(ctx context.Context) error {
	if _, copies := sandboxes.As[sandboxes.Fetcher](s.box); !copies {
		return nil
	}
	var text bytes.Buffer
	out := &proc.Limit{To: &text, Room: maxNames, Full: make(chan struct{})}
	err := s.mustScript(ctx, listScript, sandboxes.Command{Stdout: out, Interrupt: out.Full})
	switch {
	case out.Dropped > 0:
		return fmt.Errorf("%w: the names of the sandbox's files have more than %d bytes", ErrTooLarge, maxNames)
	case err != nil:
		return fmt.Errorf("list the sandbox's files: %w", err)
	}
	var names []string
	room := s.config.MaxFiles
	for name := range strings.SplitSeq(text.String(), "\x00") {
		name = strings.TrimPrefix(name, "./")
		if _, err := cleanPath(name); err == nil && matchesAny(s.config.Outputs, name) {
			names = append(names, name)
		}
	}
	for chunk := range slices.Chunk(names, fetchChunk) {
		if err := s.fetch(ctx, s.Workspace.root, room, chunk...); err != nil {
			s.notice("not every output file was fetched: %v", err)
			return context.Cause(ctx)
		}
		for _, name := range chunk {
			if info, err := s.Workspace.root.Lstat(name); err == nil {
				room -= info.Size()
			}
		}
	}
	return nil
}

// Send copies files of the workspace into the sandbox if the provider copies files. With other providers it does nothing.
func (s *Session) Send(ctx context.Context, names ...string) error {
	if _, copies := sandboxes.As[sandboxes.Fetcher](s.box); !copies {
		return nil
	}
	var text bytes.Buffer
	archive, errs := tar.NewWriter(&text), []error(nil)
	for _, name := range names {
		content, err := s.Workspace.GetBytes(name)
		if err == nil {
			err = archive.WriteHeader(&tar.Header{Name: path.Clean(name), Mode: 0o644, Size: int64(len(content))})
		}
		if err == nil {
			_, err = archive.Write(content)
		}
		errs = append(errs, err)
	}
	err := errors.Join(append(errs, archive.Close())...)
	if err == nil {
		err = s.mustScript(ctx, sendScript, sandboxes.Command{Stdin: &text}, s.box.Workdir())
	}
	if err != nil {
		return fmt.Errorf("send files: %w", err)
	}
	return nil
}
