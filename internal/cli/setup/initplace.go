package setup

import (
	"context"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/internal/cli/scaffold"
	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/git"
)

// place decides where the issues are: as the flag says, else on the remote's forge, else in a folder. A folder in a clone of
// a forge's project would hide the project's own issues. If no flag decided, place returns the forge, for a question.
func place(ctx context.Context, a *compose.App, top string, c *scaffold.Choices) (forge *tracker.Descriptor, err error) {
	if c.Tracker != "" {
		kind, err := a.Trackers.Lookup(c.Tracker)
		c.Tracker, c.Backlog = kind.Name, kind.Takes(tracker.OptionFolder)
		return nil, err
	}
	remote, err := git.New(top).RemoteURL(ctx, "origin")
	if err != nil {
		return nil, err
	}
	kind, found := a.Trackers.ForRemote(remote)
	if found && !hasBacklog(top) {
		return &kind, nil
	}
	if folder, has := a.Trackers.Folder(); found && has {
		c.Tracker = folder.Name // auto would choose the forge
	}
	c.Backlog = true
	return nil, nil
}

// hasBacklog reports whether the folder of issues exists.
func hasBacklog(top string) bool {
	_, err := os.Lstat(filepath.Join(top, scaffold.Dir, "backlog"))
	return err == nil
}

// place asks where the issues are, in a clone of a forge's project.
func (a *asker) place(ctx context.Context, forge, folder tracker.Descriptor, c *scaffold.Choices) error {
	answer, err := a.choose(ctx, "Where are the issues?", []option{
		{name: forge.Name, note: forge.Summary + ", the project of this clone"},
		{name: folder.Name, note: folder.Summary},
	})
	if err != nil {
		return err
	}
	c.Tracker, c.Backlog = answer, answer == folder.Name
	return nil
}
