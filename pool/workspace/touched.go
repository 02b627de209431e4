package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

const (
	differTime = 5 * time.Minute
	differMax  = 1 << 20 // bytes of names

	// clockTick is the time that a file system's clock needs to tell two changes apart: the longest of any kernel.
	clockTick = 10 * time.Millisecond
)

// differingScript prints the tracked files that differ from the listing of a commit on standard input. It runs in the sandbox,
// where code of the commit has run, so it makes a new git directory, index and configuration without git. Files that a checkout
// converts always differ.
const differingScript = `unset GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR GIT_PREFIX
umask 077
export GIT_DIR="${TMPDIR:-/tmp}/ralph-differing.$$" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
new() { mkdir "$@" "$GIT_DIR/objects" "$GIT_DIR/refs" "$GIT_DIR/info"; }
new "$GIT_DIR" 2>/dev/null || { GIT_DIR=$(mktemp -d) && new; } || exit 1
echo 'ref: refs/heads/none' >"$GIT_DIR/HEAD" && echo '* -ident -working-tree-encoding' >"$GIT_DIR/info/attributes" &&
printf '[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = %s\n' "$1" >"$GIT_DIR/config" &&
git update-index -z --index-info &&
{ git update-index --refresh >/dev/null || git diff-files -z --name-only --ignore-submodules=all; }
s=$?; rm -rf "$GIT_DIR"; exit $s`

// startMark is the last moment at which nothing had run in a checkout.
type startMark struct {
	at     time.Time     // this host's clock
	change time.Time     // the file system's clock
	wait   time.Duration // from then until the first command; 0: none has run
	dir    fs.FileInfo   // the checkout's folder: without a sandbox another folder can take its place
}

// setStartMark sets the mark to the time of a file that the host has just written.
func (w *Workspace) setStartMark(file string) {
	dir, err := os.Lstat(w.Dir)
	info, errFile := os.Lstat(file)
	if err == nil && errFile == nil && info.ModTime().Nanosecond() > 0 { // without nanoseconds the clock may count seconds
		w.startMark = &startMark{at: time.Now(), change: info.ModTime(), dir: dir}
	}
}

// markStartBeforeOpen notes the beginning of a clean checkout in which nothing has run.
func (w *Workspace) markStartBeforeOpen() {
	here := []sandboxes.Isolation{sandboxes.NoIsolation, sandboxes.Namespaces} // isolation on this kernel
	if w.startMark == nil && w.Tree.Spec().Detached && slices.Contains(here, w.c.Sandboxes.Capabilities().Isolation) && stampsChanges(w.Dir) {
		w.setStartMark(filepath.Join(w.Dir, ".git"))
	}
}

// markStartAfterOpen is called before anything runs in the open sandbox. Opening changes the owner of files over a layer, and
// in a linked worktree .git is older than the files. In both cases it sets a new mark, and waits until the file system's clock
// has moved on.
func (w *Workspace) markStartAfterOpen(ctx context.Context) {
	if w.startMark == nil || w.startMark.wait > 0 {
		return
	}
	if w.Tree.Layered() || !w.Tree.Spec().Private {
		file := filepath.Join(w.c.Repo.Temp(), "begin-"+w.id)
		err := os.WriteFile(file, nil, 0o600)
		if w.startMark = nil; err == nil {
			w.setStartMark(file)
			err = os.Remove(file)
		}
		if err != nil || w.startMark == nil {
			w.startMark = nil
			return
		}
		select {
		case <-time.After(clockTick):
		case <-ctx.Done():
		}
	}
	w.startMark.wait = time.Since(w.startMark.at)
}

// mayHaveChanged reports which tracked files may have changed in an open checkout; a nil function: none. known is false if any
// file may have changed. No command can set the change time of a file. If a folder has a new or removed entry, all files in it
// may have changed.
func (w *Workspace) mayHaveChanged(ctx context.Context) (may func(path string) bool, known bool) {
	b := w.startMark
	if b == nil {
		return nil, false
	}
	out := proc.NewTail(differMax)
	since := fmt.Sprintf("@%d.%09d", b.change.Unix(), b.change.Nanosecond())
	exit, err := w.Sandbox.Exec(ctx, sandboxes.Command{
		Dir: w.changes, Argv: []string{"find", ".", "-path", "./.git", "-prune", "-o", "-newerct", since, "-print0"}, Stdout: out,
	})
	now := time.Now()
	back := now.Sub(b.at) - now.Round(0).Sub(b.at.Round(0)) // how far somebody has set the clock back
	dir, _ := os.Lstat(w.Dir)                               // nil equals no other folder
	if err != nil || !exit.OK() || out.Total() >= differMax || b.wait-max(0, back) < clockTick || !os.SameFile(dir, b.dir) {
		return nil, false
	}
	if out.Total() == 0 {
		return nil, true
	}
	names := map[string]bool{}
	for name := range strings.SplitSeq(out.String(), "\x00") {
		names[strings.TrimPrefix(name, "./")] = true
	}
	top := w.changes != "" && names["."]
	if top {
		delete(names, ".") // names has new entries themselves, and the top folder cannot hide a layer's entries, as folders below can
	}
	return func(file string) bool {
		if top && !w.inLayer(file) {
			return true
		}
		for ; !names[file]; file = path.Dir(file) {
			if file == "." {
				return false
			}
		}
		return true
	}, true
}

// inLayer reports whether a layer has the top-level entry of a file. Only then its removal leaves a trace.
func (w *Workspace) inLayer(file string) bool {
	first, _, _ := strings.Cut(file, "/")
	return slices.ContainsFunc(w.layers, func(layer string) bool {
		_, err := os.Lstat(filepath.Join(layer, first))
		return layer != "" && err == nil
	})
}

// listDiffering reads the files of an open checkout and lists those that differ from the commit. may limits them to files that
// may differ; nil: all files.
func (w *Workspace) listDiffering(ctx context.Context, commit, files string, may func(path string) bool) (paths []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, differTime)
	defer cancel()
	if may != nil {
		var some strings.Builder
		for entry := range strings.SplitAfterSeq(files, "\x00") {
			if _, name, ok := strings.Cut(strings.TrimSuffix(entry, "\x00"), "\t"); ok && may(name) {
				some.WriteString(entry)
			}
		}
		if files = some.String(); files == "" {
			return nil, nil
		}
	}
	format := map[bool]string{true: "sha1", false: "sha256"}[len(commit) == 40]
	out, tail := proc.NewTail(differMax), proc.NewTail(1<<10)
	exit, err := w.Sandbox.Exec(ctx, sandboxes.Command{
		Argv: []string{"sh", "-c", differingScript, "sh", format}, Stdin: bytes.NewReader([]byte(files)), Stdout: out, Stderr: tail,
	})
	if err == nil && !exit.OK() {
		err = fmt.Errorf("exit status %d: %s", exit.Code, lastLine(tail.String()))
	}
	if err != nil {
		return nil, fmt.Errorf("look for changed files: %w", err)
	}
	return strings.FieldsFunc(out.String(), func(r rune) bool { return r == 0 }), nil
}

// touchedFiles lists the tracked files of an open checkout that have changed, so that they were not checked as committed.
func (w *Workspace) touchedFiles(ctx context.Context, o Checkout) ([]string, error) {
	may, known := w.mayHaveChanged(ctx)
	if known && may == nil {
		return nil, nil
	}
	files, err := w.c.Repo.Git().Files(ctx, o.Base.Commit)
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	after, err := w.listDiffering(ctx, o.Base.Commit, files, may)
	if err != nil && ctx.Err() == nil { // the checks have caused the failure
		return []string{"the checkout (" + err.Error() + ")"}, nil
	}
	if err != nil || len(after) == 0 {
		return nil, err
	}
	before := map[string]bool{} // they differ even in a checkout in which nothing has run
	o.Name, o.FillHome, o.Checks.Setup = "new-"+o.Name, false, nil
	_, err = w.c.inCheckout(ctx, o, func(ctx context.Context, fresh *Workspace) error {
		paths, err := fresh.listDiffering(ctx, o.Base.Commit, files, nil)
		for _, path := range paths {
			before[path] = true
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return slices.DeleteFunc(after, func(path string) bool { return before[path] }), nil
}
