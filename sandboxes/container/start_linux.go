package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// pipes are the three standard files of a command: the helper's ends and the command's.
type pipes struct{ ours, theirs [3]*os.File }

func openPipes() (*pipes, error) {
	p := &pipes{}
	for i := range p.ours {
		r, w, err := os.Pipe()
		if err != nil {
			p.closeAll()
			return nil, err
		}
		if p.ours[i], p.theirs[i] = r, w; i == 0 {
			p.ours[i], p.theirs[i] = w, r
		}
	}
	return p, nil
}

func (p *pipes) theirFDs() []uintptr {
	return []uintptr{p.theirs[0].Fd(), p.theirs[1].Fd(), p.theirs[2].Fd()}
}

func (p *pipes) closeTheirs() {
	for _, f := range p.theirs {
		_ = f.Close() // a nil file, too
	}
}

func (p *pipes) closeAll() {
	p.closeTheirs()
	for _, f := range p.ours {
		_ = f.Close()
	}
}

// find returns the program that name means in an environment: a path as it is, a plain name in PATH. Folders of PATH
// that are not absolute are passed over: the worktree does not choose programs.
func find(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	var path string
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, name)
		if info, err := os.Stat(file); filepath.IsAbs(dir) && err == nil && info.Mode().IsRegular() &&
			unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("%w (PATH inside is %s)", exec.ErrNotFound, path)
}

// explainStart says in words why a command could not be started.
func explainStart(err error, o order) refusal {
	r := refusal{Text: err.Error()}
	if info, statErr := os.Stat(string(o.Dir)); statErr != nil || !info.IsDir() {
		r.Reason, r.Text = reasonMissing, fmt.Sprintf("its folder %s: no such folder inside", o.Dir)
		return r
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		r.Reason = reasonNotFound
	case errors.Is(err, fs.ErrNotExist):
		r.Reason = reasonMissing
	case errors.Is(err, fs.ErrPermission):
		r.Reason = reasonDenied
	case errors.Is(err, unix.E2BIG):
		r.Text += "; long text belongs on its standard input"
	}
	return r
}
