package service

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
	"github.com/ralph-pool/ralph/pool/checks"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
	differ "github.com/ralph-pool/ralph/worktree/diff"
	"github.com/ralph-pool/ralph/worktree/git"
)

// Diff returns the changes in a run's commits as git prints them: the lines of --numstat, then the patch, with the code first. files
// counts the changed files; the lines of numstat name as many as fit into a quarter of limit bytes. cut means that the patch was cut
// after limit bytes in all. Git runs no filter, text conversion or external diff program.
func (s *Service) Diff(ctx context.Context, name string, r journal.Record, limit int) (diff []byte, files int, cut bool, err error) {
	p, parts, err := s.opened(name)
	if err != nil {
		return nil, 0, false, err
	}
	if !git.IsObject(r.Tip) { // a record may come from another machine: a ref name, such as that of the stash, would expose local data
		return nil, 0, false, ErrNoCommits
	}
	repo, err := worktree.Open(ctx, p.status().Repo, worktree.Options{StateDir: parts.Dir})
	if err != nil {
		return nil, 0, false, err
	}
	g := repo.Git().WithTimeout(diffTime)
	is := func() bool { ok, err := g.Test(ctx, "cat-file", "-e", r.Tip+"^{commit}"); return ok && err == nil }
	if !is() && parts.Fetch != nil { // the commits may be on another machine
		if err := parts.Fetch(ctx, r.Branch); err != nil {
			return nil, 0, false, err
		}
	}
	if !is() {
		return nil, 0, false, fmt.Errorf("%w, and %s on the remote does not have them", ErrElsewhere, r.Branch)
	}
	base := r.Base
	if r.Verified.Tip == r.Tip { // the branch may be merged since, or the base branch deleted
		base = cmp.Or(r.Verified.Base, base)
	}
	fork, err := g.Output(ctx, "merge-base", "--end-of-options", base, r.Tip)
	if err != nil {
		return nil, 0, false, fmt.Errorf("compare with %s: %w", base, err)
	}
	fork = strings.TrimSpace(fork)
	order, hidden, err := codeFirst(ctx, g, fork, r.Tip)
	if err != nil {
		return nil, 0, false, err
	}
	as := "--patch"
	if hidden {
		as = "--text" // a byte must not hide code from its reader
	}
	err = g.Read(ctx, order, func(out *bufio.Reader) (err error) {
		diff, files, cut, err = readDiff(out, limit)
		if cut && err == nil {
			err = errReadEnough
		}
		return err
	}, "diff-tree", "-r", "-O/dev/stdin", "--numstat", "--patch", as, "--find-renames", "-l2000", "--no-color", "--no-ext-diff", "--no-textconv",
		"--ignore-submodules=none", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/", "--end-of-options", fork, r.Tip, "--")
	if cut {
		err = nil
	}
	return diff, files, cut, err
}

var errReadEnough = errors.New("enough has been read")

// readDiff reads git's output up to a limit, and counts the files in numstat, which an empty line ends.
func readDiff(out *bufio.Reader, limit int) (diff []byte, files int, cut bool, err error) {
	for {
		line, err := out.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return diff, files, false, nil
		} else if err != nil {
			return diff, files, false, err
		}
		if line == "\n" {
			diff = append(diff, line...)
			break
		}
		if files++; len(diff)+len(line) <= limit/4 {
			diff = append(diff, line...)
		}
	}
	patch, err := io.ReadAll(io.LimitReader(out, int64(limit-len(diff))+1))
	if diff = append(diff, patch...); len(diff) > limit {
		return diff[:limit], files, true, nil
	}
	return diff, files, false, err
}

const (
	// largeChange is the size in bytes, before and after, above which a file comes after all others: it would fill the limit.
	largeChange = 64 << 10
	// mostOrdered is the maximum number of files that are put in order. Git compares each file with each of them.
	mostOrdered = 2000
)

// codeFirst returns git's order file for the changes: what a reader must see comes first, and large files last. hidden means that
// git takes some of it for data.
func codeFirst(ctx context.Context, g git.Runner, fork, tip string) (order string, hidden bool, err error) {
	files, err := differ.Files(ctx, g, fork, tip)
	if err != nil {
		return "", false, err
	}
	unseen, err := checks.FindUnseen(ctx, g, files)
	if err != nil && !errors.Is(err, differ.ErrTooMuch) {
		return "", false, err
	}
	binary, err := differ.Binary(ctx, g, fork, tip)
	if err != nil {
		return "", false, err
	}
	hidden = len(unseen.Texts) > 0 || slices.ContainsFunc(binary, ecosystem.IsSource)
	marked := map[string]bool{}
	for _, path := range slices.Concat(unseen.Texts, unseen.Submodules) {
		marked[path] = true
	}
	sizes, err := sizesOf(ctx, g, files)
	if err != nil {
		return "", false, err
	}
	rank := map[string]int{}
	for _, f := range files {
		role, _ := suite.RoleOf(f.Path, nil)
		at := 2
		if marked[f.Path] || ecosystem.IsSource(f.Path) || role != ecosystem.None || f.New.Mode == "100755" {
			if at = 0; !f.Old.Exists() && !marked[f.Path] {
				at = 1
			}
		}
		if sizes[f.Old.ID]+sizes[f.New.ID] > largeChange {
			at += 3
		}
		rank[f.Path] = at
	}
	slices.SortStableFunc(files, func(a, b differ.File) int { return cmp.Compare(rank[a.Path], rank[b.Path]) })
	var b strings.Builder
	literally := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "#", `\#`, "\n", "?") // only a wildcard matches a line end
	for _, f := range files[:min(len(files), mostOrdered)] {
		b.WriteString(literally.Replace(f.Path) + "\n")
	}
	return b.String(), hidden, nil
}

// sizesOf returns the sizes of the files' contents in bytes, by object.
func sizesOf(ctx context.Context, g git.Runner, files []differ.File) (map[string]int, error) {
	var ids strings.Builder
	for _, f := range files {
		for _, e := range []differ.Entry{f.Old, f.New} {
			if e.Exists() && e.Mode != differ.Gitlink {
				ids.WriteString(e.ID + "\n")
			}
		}
	}
	sizes := map[string]int{}
	out, err := g.Run(ctx, ids.String(), "cat-file", "--batch-check=%(objectname) %(objectsize)")
	for line := range strings.Lines(out) {
		id, size, _ := strings.Cut(strings.TrimSpace(line), " ")
		sizes[id], _ = strconv.Atoi(size) // a missing object has none
	}
	return sizes, err
}

// diffTime limits each git command of Diff.
const diffTime = 20 * time.Second
