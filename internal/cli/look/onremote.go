package look

import (
	"context"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/worktree"
)

// remoteWait bounds a look at the remote for something that can also be said without it.
const remoteWait = 10 * time.Second

// OnRemote is the base as the remote has it, if that contains the base here: on a forge people merge there, and nobody may have pulled
// since. It is the base here when the remote cannot be asked.
func OnRemote(ctx context.Context, p *compose.Parts, here worktree.Base) worktree.Base {
	remote := p.Repo.Remote()
	if remote == "" {
		return here
	}
	ctx, cancel := context.WithTimeout(ctx, remoteWait)
	defer cancel()
	branch := strings.TrimPrefix(here.Name, remote+"/")
	tips, err := p.Repo.RemoteTips(ctx, branch)
	tip, newer := tips[branch], false
	if err == nil && tip != "" && tip != here.Commit {
		newer, err = p.Repo.Contains(ctx, tip, here.Commit)
	}
	if err != nil {
		p.Log.Debug("base not looked up on the remote", "error", err)
	}
	if newer {
		here.Name, here.Commit = remote+"/"+branch, tip
	}
	return here
}
