package worktree

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
	"github.com/ralph-pool/ralph/worktree/internal/refname"
	"github.com/ralph-pool/ralph/worktree/span"
)

// Which commits are the run's own? An agent in the user's repository can fetch or merge commits of people, and it can make
// any ref claim that its own commits are a person's. So the answer uses only the refs as they were before the agent began,
// stored beside the worktree's record, and the current base as the remote reports it.

// recordRefs stores the commits of all refs, except ralph's own and the branches of other runs, which are not finished yet.
func (t *Tree) recordRefs(ctx context.Context) error {
	if t.rec.Spec.Private || t.rec.Spec.Detached { // an agent in a sandbox sees no refs of the repository
		return nil
	}
	refs, err := t.repo.git.RefsExcept(ctx, refname.Own)
	if err != nil {
		return fmt.Errorf("note refs: %w", err)
	}
	skip := map[string]bool{refname.Branch(t.rec.Spec.Branch): true}
	trees, _ := t.repo.Trees(ctx) // a broken record is reported where it is needed
	for _, other := range trees {
		skip[refname.Branch(other.Spec().Branch)] = true
	}
	var commits []string
	for ref, commit := range refs {
		if !skip[ref] {
			commits = append(commits, commit)
		}
	}
	if err := t.repo.records.SaveRefs(t.name, commits); err != nil {
		return fmt.Errorf("note refs: %w", err)
	}
	return nil
}

// ownCommits lists the span's commits that only this run or an earlier run of the key can have made, oldest first. Unless
// all is set, it returns nothing if no commit needs another message or name.
func (t *Tree) ownCommits(ctx context.Context, s span.Span, all bool) ([]string, error) {
	rec := t.record()
	peopleCommits := s.Reach(rec.Start)
	for commit := range s.Reach(rec.Earlier) {
		delete(peopleCommits, commit)
	}
	var ownCommits []string
	needsRewrite := all
	for _, c := range s.Commits {
		if !peopleCommits[c.SHA] {
			ownCommits = append(ownCommits, c.SHA)
			needsRewrite = needsRewrite || s.ForgeCommands[c.SHA] || s.Controls[c.SHA]
		}
	}
	if !needsRewrite {
		return nil, nil
	}
	foreignCommits, err := t.repo.records.LoadRefs(t.name)
	if err != nil {
		return nil, fmt.Errorf("commits from before run %s: %w", rec.Spec.Run, err)
	}
	if rec.Spec.Private || rec.Spec.Base.Remote == "" {
		localTip, err := t.localBase(ctx)
		if err != nil {
			return nil, err
		}
		foreignCommits = append(foreignCommits, localTip)
	}
	remoteTip, err := t.remoteBase(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	if err != nil { // the run continues without the remote
		t.repo.log.Warn("commits that people made meanwhile are not known", "run", rec.Spec.Run, "error", err)
	}
	foreignCommits = slices.DeleteFunc(append(foreignCommits, remoteTip, rec.Lease), func(commit string) bool { return commit == "" })
	if len(foreignCommits) == 0 {
		return ownCommits, nil
	}
	// Ignore missing commits: they exclude nothing from the list.
	out, err := t.repo.git.Run(ctx, s.Tip+"\n^"+s.Base+"\n^"+strings.Join(foreignCommits, "\n^")+"\n",
		"rev-list", "--topo-order", "--reverse", "--ignore-missing", "--stdin", "--")
	if err != nil {
		return nil, fmt.Errorf("list the run's own commits: %w", err)
	}
	return slices.DeleteFunc(strings.Fields(out), func(commit string) bool { return peopleCommits[commit] }), nil
}

// CurrentBase returns the current commit of the run's base, fetched if need be, from a place that no agent can change: the
// remote if Base.Remote is set, otherwise this repository if the agent works in a private one, otherwise "".
func (t *Tree) CurrentBase(ctx context.Context) (string, error) {
	switch s := t.Spec(); {
	case s.Base.Remote != "":
		return t.remoteBase(ctx)
	case s.Private:
		return t.localBase(ctx)
	}
	return "", nil
}

// localBase returns the commit of the base branch in this repository.
func (t *Tree) localBase(ctx context.Context) (string, error) {
	s := t.Spec()
	ref := s.Base.Ref
	if !strings.HasPrefix(ref, git.Heads) || ref == refname.Branch(s.Branch) {
		return "", nil
	}
	refs, err := t.repo.git.Refs(ctx, ref)
	return refs[ref], err
}

// remoteBase asks the remote for the commit of the base branch. If the remote's configuration has changed since the
// worktree was made, the answer could come from anybody, and remoteBase returns "".
func (t *Tree) remoteBase(ctx context.Context) (string, error) {
	rec := t.record()
	branch := rec.Spec.Base.OnRemote(t.repo.opts.Remote)
	if branch == "" {
		return "", nil
	}
	now, err := t.repo.remote.ConfigDigest(ctx)
	if err != nil || now != rec.RemoteConfig {
		return "", err
	}
	tips, err := t.repo.RemoteTips(ctx, branch)
	return tips[branch], err
}
