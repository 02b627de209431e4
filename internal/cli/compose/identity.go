package compose

import (
	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/identity"
)

// Identity returns the configured author, committer, co-authors and signing of commits.
func (p *Parts) Identity() worktree.Identity {
	ident := func(text string) (i identity.Ident) {
		if text != "" {
			i, _ = identity.Parse(text) // the configuration was checked
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
