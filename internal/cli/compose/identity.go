package compose

import (
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/identity"
)

// Identity is in whose name the configuration has commits made.
func (p *Parts) Identity() worktree.Identity {
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
