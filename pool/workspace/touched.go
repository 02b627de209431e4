package workspace

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/proc"
	"github.com/ralph-pool/ralph/sandboxes"
)

const (
	differTime = 5 * time.Minute
	differMax  = 1 << 20 // bytes of names
)

// differing prints the tracked files that are not as in the listing of a commit on standard input. It runs in the sandbox, where
// code of the commit has run: git directory, index and configuration are new ones. Files that a checkout converts differ always.
const differing = `unset GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR GIT_PREFIX
d=$(mktemp -d) || exit 1
export GIT_DIR="$d/git" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
git init -q --bare --template= --object-format="$1" "$d/git" && mkdir -p "$d/git/info" &&
echo '* -ident -working-tree-encoding' >"$d/git/info/attributes" && git update-index -z --index-info &&
{ git --work-tree=. -c core.bare=false update-index -q --refresh >/dev/null
git --work-tree=. -c core.bare=false diff-files -z --name-only --ignore-submodules=all; }
s=$?; rm -rf "$d"; exit $s`

// differ lists the tracked files of an open checkout that are not those of its commit. It reads all of them.
func (w *Workspace) differ(ctx context.Context, commit string) (paths []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, differTime)
	defer cancel()
	files, err := w.c.Repo.Git().Out(ctx, "ls-tree", "-r", "-z", "--full-tree", "--end-of-options", commit)
	if err != nil {
		return nil, err
	}
	format := map[bool]string{true: "sha1", false: "sha256"}[len(commit) == 40]
	out, tail := proc.NewTail(differMax), proc.NewTail(1<<10)
	exit, err := w.Box.Exec(ctx, sandboxes.Command{
		Argv: []string{"sh", "-c", differing, "sh", format}, Stdin: bytes.NewReader([]byte(files)), Stdout: out, Stderr: tail,
	})
	if err == nil && !exit.OK() {
		err = fmt.Errorf("exit status %d: %s", exit.Code, lastLine(tail.String()))
	}
	if err != nil {
		return nil, fmt.Errorf("look for changed files: %w", err)
	}
	return strings.FieldsFunc(out.String(), func(r rune) bool { return r == 0 }), nil
}

// touched lists the tracked files of an open checkout that have changed, and so were not judged as the commit has them.
func (w *Workspace) touched(ctx context.Context, o Checkout) ([]string, error) {
	after, err := w.differ(ctx, o.Base.Commit)
	if err != nil && ctx.Err() == nil { // a check's doing
		return []string{"the checkout (" + err.Error() + ")"}, nil
	}
	if err != nil || len(after) == 0 {
		return nil, err
	}
	var before []string // as on a checkout in which nothing has run
	o.Name, o.FillHome, o.Checks.Setup = "new-"+o.Name, false, nil
	_, err = w.c.inCheckout(ctx, o, func(ctx context.Context, fresh *Workspace) (err error) {
		before, err = fresh.differ(ctx, o.Base.Commit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("verify: %w", err)
	}
	return slices.DeleteFunc(after, func(path string) bool { return slices.Contains(before, path) }), nil
}
