// Package commits reads commits and their statistics for people, in this process.
//
// It only reads: the git program does all that writes, because go-git knows no linked worktrees and takes no lock on the
// index. What it reads was checked before it came into the repository, and limits bound the work. Its callers are the
// commands that show a run and, through a function in the configuration, reports. A [Repo] is safe for concurrent use.
package commits

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"

	"github.com/ralph-pool/ralph/worktree/message"
)

const (
	maxFiles   = 2000    // files that are counted line by line
	maxCommits = 500     // commits that are listed
	maxBlob    = 1 << 20 // bytes of a file that is counted line by line
)

// Repo reads one repository.
type Repo struct{ repo *git.Repository }

// Open opens the repository that the folder is in. It fails for repositories with an extension that go-git does not know.
func Open(dir string) (*Repo, error) {
	r, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if err != nil {
		return nil, fmt.Errorf("open repository of %s: %w", dir, err)
	}
	return &Repo{r}, nil
}

// Commit is one commit. All of it may be hostile; very long lines are clipped.
type Commit struct {
	SHA     string    `json:"sha"`
	Subject string    `json:"subject"`
	Author  string    `json:"author"`
	Time    time.Time `json:"time"`
}

// Stat counts what a range of commits changes.
type Stat struct {
	Files      []File `json:"files"`
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
	// Uncounted is how many files were too many or too big to count line by line.
	Uncounted int `json:"uncounted,omitempty"`
}

// File is one changed file. Binary files have no lines.
type File struct {
	Path       string `json:"path"`
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
}

// Commits lists the commits of tip that base does not contain, oldest first: the newest 500 at most.
func (r *Repo) Commits(ctx context.Context, base, tip string) ([]Commit, error) {
	from, to, err := r.pair(base, tip)
	if err != nil {
		return nil, err
	}
	seen, err := r.ancestors(ctx, from)
	if err != nil {
		return nil, err
	}
	var out []Commit
	walk := object.NewCommitPreorderIter(to, seen, nil)
	defer walk.Close()
	err = walk.ForEach(func(c *object.Commit) error {
		if len(out) == maxCommits {
			return errEnough
		}
		subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
		out = append(out, Commit{
			SHA: c.Hash.String(), Subject: message.Clip(subject), Author: message.Clip(c.Author.Name), Time: c.Author.When,
		})
		return ctx.Err()
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("list commits: %w", err)
	}
	slices.Reverse(out)
	return out, nil
}

// Stat counts what tip changes since it left base.
func (r *Repo) Stat(ctx context.Context, base, tip string) (Stat, error) {
	from, to, err := r.pair(base, tip)
	if err != nil {
		return Stat{}, err
	}
	if common, err := from.MergeBase(to); err == nil && len(common) > 0 {
		from = common[0]
	}
	before, err := from.Tree()
	if err != nil {
		return Stat{}, fmt.Errorf("read %s: %w", base, err)
	}
	after, err := to.Tree()
	if err != nil {
		return Stat{}, fmt.Errorf("read %s: %w", tip, err)
	}
	changes, err := r.compare(ctx, before, after)
	if err != nil {
		return Stat{}, fmt.Errorf("compare %s with %s: %w", base, tip, err)
	}
	var s Stat
	for i, change := range changes {
		file := File{Path: cmpPath(change)}
		if i >= maxFiles || r.tooBig(change) {
			s.Uncounted++
			s.Files = append(s.Files, file)
			continue
		}
		patch, err := change.PatchContext(ctx)
		if err != nil {
			return Stat{}, fmt.Errorf("compare %s: %w", file.Path, err)
		}
		for _, f := range patch.Stats() {
			file.Insertions += f.Addition
			file.Deletions += f.Deletion
		}
		s.Insertions += file.Insertions
		s.Deletions += file.Deletions
		s.Files = append(s.Files, file)
	}
	return s, nil
}

var errEnough = errors.New("enough")

func (r *Repo) pair(base, tip string) (from, to *object.Commit, err error) {
	if from, err = r.repo.CommitObject(plumbing.NewHash(base)); err != nil {
		return nil, nil, fmt.Errorf("read commit %s: %w", base, err)
	}
	if to, err = r.repo.CommitObject(plumbing.NewHash(tip)); err != nil {
		return nil, nil, fmt.Errorf("read commit %s: %w", tip, err)
	}
	return from, to, nil
}

// ancestors are the commits that a commit contains, itself included. Only recent ones matter: walking stops where a
// branch of ralph's cannot have begun.
func (r *Repo) ancestors(ctx context.Context, c *object.Commit) (map[plumbing.Hash]bool, error) {
	const horizon = 20000
	seen := map[plumbing.Hash]bool{}
	walk := object.NewCommitIterCTime(c, nil, nil)
	defer walk.Close()
	err := walk.ForEach(func(c *object.Commit) error {
		if seen[c.Hash] = true; len(seen) == horizon {
			return errEnough
		}
		return ctx.Err()
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, fmt.Errorf("list commits: %w", err)
	}
	return seen, nil
}

// tooBig reports a change of a file that takes long to compare.
func (r *Repo) tooBig(c *object.Change) bool {
	for _, e := range []object.ChangeEntry{c.From, c.To} {
		if !e.TreeEntry.Mode.IsFile() {
			continue
		}
		if size, err := r.repo.Storer.EncodedObjectSize(e.TreeEntry.Hash); err == nil && size > maxBlob {
			return true
		}
	}
	return false
}

func cmpPath(c *object.Change) string {
	if c.To.Name != "" {
		return c.To.Name
	}
	return c.From.Name
}
