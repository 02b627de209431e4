package judge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/git"
)

// diffLimit is the maximum number of bytes of a diff in a prompt. The rest can be read in the checkout.
const diffLimit = 256 << 10

// change is the whole change of a run's commits.
type change struct {
	fork   string // commit where they begin
	tree   string // tree at their end
	diff   string // at most diffLimit bytes of the diff
	cut    bool   // the diff is longer
	digest string // of the whole diff
}

// read compares a tip with its base. No filter, text conversion or external diff runs.
func read(ctx context.Context, repo *worktree.Repo, base, tip string) (change, error) {
	var c change
	g := repo.Git()
	fork, err := repo.Spans().Fork(ctx, base, tip)
	if err == nil {
		c.fork = fork
		c.tree, err = g.Output(ctx, "rev-parse", "--verify", "--end-of-options", tip+"^{tree}")
	}
	if err != nil {
		return c, fmt.Errorf("compare with the base: %w", err)
	}
	out, sum := &headWriter{limit: diffLimit}, sha256.New()
	err = g.Pipe(ctx, nil, io.MultiWriter(sum, out), "diff-tree", "-r", "--patch", "--find-renames", "-l2000", "--no-color", "--no-ext-diff",
		"--no-textconv", "--full-index", "--ignore-submodules=none", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/",
		"--end-of-options", c.fork, c.tree, "--")
	if err != nil {
		return c, fmt.Errorf("compare with the base: %w", err)
	}
	c.diff, c.cut, c.digest = out.text.String(), out.full, hex.EncodeToString(sum.Sum(nil))
	return c, nil
}

// headWriter keeps the first bytes of a text.
type headWriter struct {
	limit int
	text  bytes.Buffer
	full  bool
}

// Write never fails.
func (h *headWriter) Write(p []byte) (int, error) {
	room := h.limit - h.text.Len()
	h.full = h.full || len(p) > room
	h.text.Write(p[:min(len(p), room)])
	return len(p), nil
}

// commit makes one commit of the change, without the commit messages of the run. No ref names it.
func (c change) commit(ctx context.Context, g git.Runner) (string, error) {
	g, err := g.WithIdent(ctx)
	if err != nil {
		return "", err
	}
	return g.CommitTree(ctx, c.tree, "The change\n", c.fork)
}
