package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/ralph-pool/ralph/internal/cli/hint"
	"github.com/ralph-pool/ralph/pool/publish"
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/identity"
)

// identity is in whose name the configuration has commits made.
func (p *parts) identity() worktree.Identity {
	ident := func(text string) (i identity.Ident) {
		if text != "" {
			i, _ = identity.Parse(text) // the configuration has checked it
		}
		return i
	}
	who := worktree.Identity{
		Author: ident(p.CommitAuthor), Committer: ident(p.Committer), SignOff: p.SignOff, Sign: identity.Format(p.Sign),
	}
	for _, text := range p.CoAuthors {
		who.CoAuthors = append(who.CoAuthors, ident(text))
	}
	return who
}

// identity looks whether commits can be made as asked.
func (d *doctor) identity(ctx context.Context, p *parts) {
	var environ []string
	if p.Sandbox == "none" {
		environ = os.Environ()
	}
	who, err := publish.Author(ctx, p.identity(), p.tracker)
	if err == nil {
		err = p.repo.CheckIdentity(ctx, who, environ)
	}
	if err != nil {
		d.fail("identity", err.Error(), hint.Identity(err))
		return
	}
	if who.Author == (identity.Ident{}) {
		if who.Author, err = p.repo.User(ctx); err != nil {
			d.warn("identity", fmt.Sprintf("%v; commits are of %s", err, who.Author), hint.Identity(err))
			return
		}
	}
	text := "commits are of " + who.Author.String()
	if who.Sign != "" {
		text += ", signed with " + string(who.Sign)
	}
	d.ok("identity", text)
}
