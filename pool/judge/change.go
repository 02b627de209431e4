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

// diffLimit is how much of a diff a prompt shows, in bytes. The rest can be read in the checkout.
const diffLimit = 256 << 10

// change is what the commits of a run come to.
type change struct {
	fork   string // where they begin
	tree   string // what they end with
	diff   string // the beginning of it
	cut    bool   // there is more
	digest string // of all of it
}

// read compares a tip with its base. No filter, text conversion or external diff runs.
func read(ctx context.Context, repo *worktree.Repo, base, tip string) (change, error) {
	var c change
	g := repo.Git()
	fork, err := repo.Spans().Fork(ctx, base, tip)
	if err == nil {
		c.fork = fork
		c.tree, err = g.Out(ctx, "rev-parse", "--verify", "--end-of-options", tip+"^{tree}")
	}
	if err != nil {
		return c, fmt.Errorf("compare with the base: %w", err)
	}
	out, sum := &head{limit: diffLimit}, sha256.New()
	err = g.Pipe(ctx, nil, io.MultiWriter(sum, out), "diff-tree", "-r", "--patch", "--find-renames", "-l2000", "--no-color", "--no-ext-diff",
		"--no-textconv", "--full-index", "--ignore-submodules=none", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/",
		"--end-of-options", c.fork, c.tree, "--")
	if err != nil {
		return c, fmt.Errorf("compare with the base: %w", err)
	}
	c.diff, c.cut, c.digest = out.text.String(), out.full, hex.EncodeToString(sum.Sum(nil))
	return c, nil
}

// head keeps the first bytes of a text.
type head struct {
	limit int
	text  bytes.Buffer
	full  bool
}

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	room := h.limit - h.text.Len()
	h.full = h.full || len(p) > room
	h.text.Write(p[:min(len(p), room)])
	return len(p), nil
}

// commit makes one commit of the change, without the messages of those that made it. No ref names it.
func (c change) commit(ctx context.Context, g git.Runner) (string, error) {
	g, err := g.WithIdent(ctx)
	if err != nil {
		return "", err
	}
	return g.CommitTree(ctx, c.tree, "The change\n", c.fork)
}
