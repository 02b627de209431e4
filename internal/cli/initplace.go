package cli

import (
	"context"

	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/worktree"
)

// place decides where the issues are: where the flag says, else on the forge that the remote is on, else in a folder. A
// folder beside a forge would hide the project's own issues. It returns the forge that nobody has named.
func (o initOptions) place(ctx context.Context, top string, c *scaffold.Choices) (forge string, err error) {
	if o.tracker != nil {
		c.Tracker, c.Backlog = *o.tracker, *o.tracker == "local"
		return "", nil
	}
	remote, err := worktree.RemoteURL(ctx, top, "origin")
	if err != nil {
		return "", err
	}
	forge = forgeOf(remote)
	c.Backlog = forge == ""
	return forge, nil
}

// place asks where the issues are, in a clone of a forge's project.
func (a *asker) place(ctx context.Context, forge string, c *scaffold.Choices) error {
	answer, err := a.choose(ctx, "Where are the issues?", []option{
		{name: forge, note: "those of the project that this is a clone of"},
		{name: "local", note: "files in .ralph/backlog"},
	})
	if err != nil {
		return err
	}
	c.Tracker, c.Backlog = answer, answer == "local"
	return nil
}
