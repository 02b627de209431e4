// Package commits reads commits and their statistics with go-git, in this process, to show them to people. Its callers are
// the commands that show a run and, through a function in the configuration, reports.
//
// It only reads. The git program does all writing, because go-git does not support linked worktrees and does not lock the
// index. The objects were checked when they were imported, and limits bound the work. A [Repo] is safe for concurrent use.
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
	textdiff "github.com/go-git/go-git/v5/utils/diff"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/worktree/message"
)

const (
	maxFiles   = 2000    // number of files whose lines are counted
	maxCommits = 500     // number of commits that are listed
	maxBlob    = 1 << 20 // size of a file whose lines are counted, in bytes
)

// Repo reads one repository.
type Repo struct{ repo *git.Repository }

// Open opens the repository that contains dir. It fails for repositories with an extension that go-git does not know.
func Open(dir string) (*Repo, error) {
	r, err := git.PlainOpenWithOptions(dir, &git.PlainOpenOptions{DetectDotGit: true, EnableDotGitCommonDir: true})
	if err != nil {
		return nil, fmt.Errorf("open repository of %s: %w", dir, err)
	}
	return &Repo{r}, nil
}

// Commit describes one commit. Its texts may be hostile; very long lines are cut.
type Commit struct {
	SHA     string    `json:"sha"`
	Subject string    `json:"subject"`
	Author  string    `json:"author"`
	Time    time.Time `json:"time"`
}

// Stat is the diff statistics of a range of commits.
type Stat struct {
	Files      []File `json:"files"`
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
	// Uncounted is the number of files whose lines were not counted, because they were too many or too large.
	Uncounted int `json:"uncounted,omitempty"`
}

// File is one changed file. The counts of binary files are zero.
type File struct {
	Path       string `json:"path"`
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
}

// Commits lists the commits that are in tip and not in base, oldest first. It returns at most the newest 500.
func (r *Repo) Commits(ctx context.Context, base, tip string) ([]Commit, error) {
	from, to, err := r.loadCommits(base, tip)
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
			return errWalkLimit
		}
		subject, _, _ := strings.Cut(strings.TrimSpace(c.Message), "\n")
		out = append(out, Commit{
			SHA: c.Hash.String(), Subject: message.Clip(subject), Author: message.Clip(c.Author.Name), Time: c.Author.When,
		})
		return ctx.Err()
	})
	if err != nil && !errors.Is(err, errWalkLimit) {
		return nil, fmt.Errorf("list commits: %w", err)
	}
	slices.Reverse(out)
	return out, nil
}

// Stat counts the changes of tip since it forked from base.
func (r *Repo) Stat(ctx context.Context, base, tip string) (Stat, error) {
	from, to, err := r.loadCommits(base, tip)
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
		if file.Insertions+file.Deletions == 0 && ecosystem.IsSource(file.Path) {
			if err := file.countAsText(change); err != nil {
				return Stat{}, fmt.Errorf("compare %s: %w", file.Path, err)
			}
		}
		s.Insertions += file.Insertions
		s.Deletions += file.Deletions
		s.Files = append(s.Files, file)
	}
	return s, nil
}

// countAsText counts the lines of a source file that git takes for data, because it has a NUL byte.
func (f *File) countAsText(c *object.Change) error {
	from, to, err := c.Files()
	if err != nil {
		return err
	}
	var texts [2]string
	for i, file := range []*object.File{from, to} {
		if file == nil {
			continue
		}
		if texts[i], err = file.Contents(); err != nil {
			return err
		}
	}
	for _, d := range textdiff.DoWithTimeout(texts[0], texts[1], time.Second) {
		n := strings.Count(strings.TrimSuffix(d.Text, "\n")+"\n", "\n")
		switch {
		case d.Type > 0:
			f.Insertions += n
		case d.Type < 0:
			f.Deletions += n
		}
	}
	return nil
}

var errWalkLimit = errors.New("enough")

func (r *Repo) loadCommits(base, tip string) (from, to *object.Commit, err error) {
	if from, err = r.repo.CommitObject(plumbing.NewHash(base)); err != nil {
		return nil, nil, fmt.Errorf("read commit %s: %w", base, err)
	}
	if to, err = r.repo.CommitObject(plumbing.NewHash(tip)); err != nil {
		return nil, nil, fmt.Errorf("read commit %s: %w", tip, err)
	}
	return from, to, nil
}

// ancestors returns the commits that c contains, including c. It stops after the newest 20,000: no branch of ralph's forks
// earlier.
func (r *Repo) ancestors(ctx context.Context, c *object.Commit) (map[plumbing.Hash]bool, error) {
	const horizon = 20000
	seen := map[plumbing.Hash]bool{}
	walk := object.NewCommitIterCTime(c, nil, nil)
	defer walk.Close()
	err := walk.ForEach(func(c *object.Commit) error {
		if seen[c.Hash] = true; len(seen) == horizon {
			return errWalkLimit
		}
		return ctx.Err()
	})
	if err != nil && !errors.Is(err, errWalkLimit) {
		return nil, fmt.Errorf("list commits: %w", err)
	}
	return seen, nil
}

// tooBig reports whether a change is of a file that is too large to compare.
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
