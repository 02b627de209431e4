// Package replay puts commits on another parent, like a rebase, but on objects only. Its caller is package worktree. Calls
// with different scratch folders are independent.
package replay

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/message"
)

// Options configures a replay.
type Options struct {
	Git         git.Runner
	Objects     git.Store
	Scratch     string // a new folder that does not exist; the caller deletes it
	Name, Email string // of the committer
	Now         time.Time
	Top         string // top of the user's checkout, for errors
}

// ConflictError means that a commit conflicts with its new parent.
type ConflictError struct{ Paths string }

func (e *ConflictError) Error() string { return "conflict in " + e.Paths }

// Replay replays the commits, oldest first and without merges, on the base. It returns the new tip, and the new names by
// old name. A commit that already has the right parent stays; one whose changes are in the base is dropped.
func (o Options) Replay(ctx context.Context, base string, commits []string, parents map[string][]string) (tip string, renamed map[string]string, err error) {
	if err := os.MkdirAll(o.Scratch, 0o700); err != nil {
		return "", nil, err
	}
	r := &replay{
		Options: o, git: o.Git.WithAlternate(o.Scratch),
		scratch:   git.Store{Dir: o.Scratch, SHA256: o.Objects.SHA256},
		committer: fmt.Sprintf("%s <%s> %d %s", cleanIdent(o.Name), cleanIdent(o.Email), o.Now.Unix(), o.Now.Format("-0700")),
	}
	names := []string{base}
	for _, c := range commits {
		names = append(append(names, c), parents[c]...)
	}
	if r.objects, err = r.git.Objects(ctx, "commit", names); err != nil {
		return "", nil, fmt.Errorf("read commits: %w", err)
	}
	renamed, tip = map[string]string{}, base
	for _, c := range commits {
		if p := parents[c]; len(p) == 1 && p[0] == tip {
			tip = c
		} else if tip, err = r.replayCommit(ctx, c, p, tip); err != nil {
			return "", nil, err
		}
		renamed[c] = tip
	}
	return tip, renamed, nil
}

type replay struct {
	Options
	git       git.Runner
	scratch   git.Store // for temporary commits that make git use the right merge base
	committer string
	objects   map[string]string
}

// cleanIdent removes characters that would end a name in a commit.
func cleanIdent(name string) string {
	return strings.NewReplacer("<", "", ">", "", "\n", " ").Replace(name)
}

// replayCommit replays a commit onto newParent. It returns newParent if the commit has no changes left.
func (r *replay) replayCommit(ctx context.Context, commit string, parents []string, newParent string) (string, error) {
	oldParentTree, err := r.scratch.Write("tree", nil)
	if err != nil {
		return "", err
	}
	if len(parents) > 0 {
		oldParentTree = treeOf(r.objects[parents[0]])
	}
	newParentTree, oldTree := treeOf(r.objects[newParent]), treeOf(r.objects[commit])
	if newParentTree == "" || oldTree == "" || oldParentTree == "" {
		return "", fmt.Errorf("commit %s or one of its parents is missing", git.Short(commit))
	}
	parent, err := r.scratch.Commit(oldParentTree, nil, "before", r.Now)
	if err != nil {
		return "", err
	}
	left, err := r.scratch.Commit(newParentTree, []string{parent}, "ours", r.Now)
	if err != nil {
		return "", err
	}
	right, err := r.scratch.Commit(oldTree, []string{parent}, "replayed", r.Now)
	if err != nil {
		return "", err
	}
	tree, names, err := r.git.MergeTree(ctx, left, right)
	switch {
	case err != nil:
		return "", err
	case names != "":
		return "", &ConflictError{names}
	case tree == newParentTree && oldParentTree != oldTree:
		return newParent, nil
	}
	object := replayedObject(r.objects[commit], tree, newParent, r.committer)
	name, err := r.Objects.Write("commit", []byte(object))
	r.objects[name] = object
	return name, err
}

// treeOf returns the tree of a commit object.
func treeOf(object string) string {
	line, _, _ := strings.Cut(object, "\n")
	return strings.TrimPrefix(line, "tree ")
}

// replayedObject returns a commit object with another tree, parent and committer, and without its signature.
func replayedObject(object, tree, parent, committer string) string {
	header, text, _ := strings.Cut(object, "\n\n")
	lines := []string{"tree " + tree, "parent " + parent}
	for _, line := range message.Unsigned(strings.Split(header, "\n")) {
		name, _, _ := strings.Cut(line, " ")
		switch name {
		case "tree", "parent":
		case "committer":
			lines = append(lines, "committer "+committer)
		default:
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n\n" + text
}
