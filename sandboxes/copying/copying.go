// Package copying supports providers whose engine cannot mount host folders, such as an engine on another machine.
//
// [Wrap] decorates a provider that can give a sandbox its own disk ([sandboxes.Disk]). Open streams a copy of the Spec's
// files to that disk, through a tar process inside: the worktree, the private repository with the objects that it borrows,
// and the mounts. Nothing is copied back automatically. Commits leave the sandbox as a pack on the standard output of git
// inside; a program that needs other files calls [sandboxes.Fetcher], which checks them.
//
// After a crash of ralph, Open with the same Run finds the copies as the commands left them. The image needs tar. A wrapped
// provider is as safe for concurrent use as the original.
package copying

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/sandboxes"
)

// copyLimit is the maximum duration of one copy, in or out.
const copyLimit = 30 * time.Minute

// Wrap returns a provider with Copy files. It has the name of the inner provider.
func Wrap(inner sandboxes.Provider) sandboxes.Provider { return provider{inner} }

type provider struct{ sandboxes.Provider }

func (p provider) Unwrap() sandboxes.Provider { return p.Provider }

func (p provider) Capabilities() sandboxes.Capabilities {
	c := p.Provider.Capabilities()
	c.Files, c.Home = sandboxes.Copy, false
	return c
}

// Open opens the inner sandbox with the Spec's files on its own disk.
func (p provider) Open(ctx context.Context, spec sandboxes.Spec) (sandboxes.Sandbox, error) {
	if !p.Provider.Capabilities().Disk {
		return nil, fmt.Errorf("open sandbox %s with copied files: %w", p.Name(), sandboxes.ErrUnsupported)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	sources, err := sourcesOf(spec)
	if err != nil {
		return nil, fmt.Errorf("open sandbox %s: %w", p.Name(), err)
	}
	disk := diskOf(spec, sources)
	spec.GitDir, spec.Objects, spec.Mounts, spec.Disk = "", nil, nil, disk
	box, err := p.Provider.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &sandbox{box}, nil
}

type sandbox struct{ sandboxes.Sandbox }

var _ sandboxes.Fetcher = (*sandbox)(nil)

func (s *sandbox) Unwrap() sandboxes.Sandbox { return s.Sandbox }

// source is a host file or folder and its path inside.
type source struct {
	host, inside string
	skip         func(path string) bool // excludes paths below host; nil excludes nothing
	isFile       bool
	mount        sandboxes.Mount // zero for everything but mounts
}

// sourcesOf lists all files and folders of the spec.
func sourcesOf(spec sandboxes.Spec) ([]source, error) {
	all := []source{{host: spec.Worktree, inside: spec.Worktree, skip: isRepository}}
	if spec.GitDir != "" {
		all = append(all, source{
			host:   spec.GitDir,
			inside: spec.GitDir,
			skip:   func(p string) bool { return p == "objects/info/alternates" },
		})
		for _, dir := range spec.Objects {
			all = append(all, source{host: dir, inside: path.Join(spec.GitDir, "objects"), skip: isNoObject})
		}
	}
	for _, m := range spec.Mounts {
		s, err := mountSource(m)
		if err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Host, err)
		}
		all = append(all, s)
	}
	for _, s := range all {
		if _, err := os.Stat(s.host); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func mountSource(m sandboxes.Mount) (source, error) {
	if !path.IsAbs(m.Inside) || path.Clean(m.Inside) != m.Inside || m.Inside == "/" {
		return source{}, fmt.Errorf("%q is not a clean absolute path inside", m.Inside)
	}
	host, info, err := m.Source()
	if err != nil {
		return source{}, err
	}
	s := source{host: host, inside: m.Inside, isFile: !info.IsDir(), mount: m, skip: isRepository}
	switch {
	case !m.ReadOnly && (!m.Exclusive || s.isFile):
		return source{}, fmt.Errorf("files are copied into the sandbox, so that it cannot write to the host: %w; make the mount read-only",
			sandboxes.ErrUnsupported)
	case s.isFile && path.Dir(m.Inside) == "/":
		return source{}, fmt.Errorf("a file cannot be copied to %s, at the top: %w; choose a path inside a folder",
			m.Inside, sandboxes.ErrUnsupported)
	}
	return s, nil
}

// diskOf returns the layout of the disk. The repository is also mounted over the worktree's .git, so that commands can
// neither remove nor replace it.
func diskOf(spec sandboxes.Spec, sources []source) *sandboxes.Disk {
	d := &sandboxes.Disk{
		Folders: map[string]string{spec.Worktree: "worktree"},
		Fill:    func(ctx context.Context, s sandboxes.Sandbox) error { return fill(ctx, s, sources) },
	}
	if spec.GitDir != "" {
		d.Folders[spec.GitDir], d.Folders[path.Join(spec.Worktree, ".git")] = "repository", "repository"
	}
	for i, s := range sources {
		dir := s.inside
		if s.isFile {
			dir = path.Dir(dir)
		}
		if _, ok := d.Folders[dir]; ok || s.mount == (sandboxes.Mount{}) || s.isFile && inOneOf(d.Folders, dir) {
			continue
		}
		d.Folders[dir] = "mount" + strconv.Itoa(i)
		if s.mount.ReadOnly {
			d.ReadOnly = append(d.ReadOnly, dir)
		}
	}
	return d
}

func inOneOf(folders map[string]string, dir string) bool {
	for f := range folders {
		if dir == f || strings.HasPrefix(dir, f+"/") {
			return true
		}
	}
	return false
}

// isRepository excludes git directories: the sandbox's git works with the private repository.
func isRepository(p string) bool { return path.Base(p) == ".git" }

// isNoObject excludes everything but git's loose objects and packs: other files of a borrowed folder describe that folder.
func isNoObject(p string) bool {
	dir, name, below := strings.Cut(p, "/")
	switch {
	case dir == "pack":
		ext := path.Ext(name)
		return below && ext != ".pack" && ext != ".idx" && ext != ".rev" && ext != ".promisor"
	case len(dir) != 2 || strings.Trim(dir, "0123456789abcdef") != "":
		return true
	}
	return below && strings.Trim(name, "0123456789abcdef") != ""
}

// isPlain reports whether files of a type are copied. Pipes, sockets and devices are not.
func isPlain(mode fs.FileMode) bool {
	return mode.IsRegular() || mode.IsDir() || mode.Type() == fs.ModeSymlink
}
