package look

import (
	"context"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/internal/cli/compose"
	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
)

// remoteWait is the time limit for asking the remote, when the command can do without an answer.
const remoteWait = 10 * time.Second

// OnRemote returns the remote's base if it contains the local one: on a forge people merge there, and nobody may have pulled since.
// It returns the local base if the remote cannot be asked, or if the two have diverged, which apart reports.
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

// begunOn returns the remote's base on which a run without commits ended, or on which its commits were verified, if it contains the
// local base. Otherwise commits that others pushed and nobody pulled would look like the run's work.
func begunOn(ctx context.Context, p *compose.Parts, here worktree.Base, s journal.State) worktree.Base {
	remote, base := p.Repo.Remote(), s.Verified.Base
	if s.Commits == 0 {
		base = s.Tip
	}
	if remote == "" || base == "" || base == here.Commit {
		return here
	}
	newer, err := p.Repo.Contains(ctx, base, here.Commit)
	switch {
	case err != nil:
		p.Log.Debug("base of the run not looked up", "error", err)
	case newer:
		here.Name, here.Commit = remote+"/"+strings.TrimPrefix(here.Name, remote+"/"), base
	}
	return here
}
