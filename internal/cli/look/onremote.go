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
// since. It is the base here when the remote cannot be asked, or the two are apart: each has commits that the other lacks.
func OnRemote(ctx context.Context, p *compose.Parts, here worktree.Base) (base worktree.Base, apart bool) {
	remote := p.Repo.Remote()
	if remote == "" {
		return here, false
	}
	ctx, cancel := context.WithTimeout(ctx, remoteWait)
	defer cancel()
	branch := strings.TrimPrefix(here.Name, remote+"/")
	tips, err := p.Repo.RemoteTips(ctx, branch)
	tip, newer := tips[branch], false
	if err == nil && tip != "" && tip != here.Commit {
		newer, err = p.Repo.Contains(ctx, tip, here.Commit)
		if err == nil && !newer {
			older, failed := p.Repo.Contains(ctx, here.Commit, tip)
			apart, err = failed == nil && !older, failed
		}
	}
	if err != nil {
		p.Log.Debug("base not looked up on the remote", "error", err)
	}
	if newer {
		here.Name, here.Commit = remote+"/"+branch, tip
	}
	return here, apart
}
