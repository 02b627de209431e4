package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An agent that works in the user's own repository can fetch what people have committed, and merge it or rebase onto it.
// That is theirs, and stays as it is. It can also make any ref say so of its own commits. So what counts is where the
// refs were before it began, which is noted beside the worktree's record, and where the base is by now: on the remote,
// as the remote itself says, or here where no agent moves it or nothing else is known of it.

// refsSuffix ends the name of the file with the commits that refs were at.
const refsSuffix = ".refs"

func (r *Repo) refsPath(name string) string { return r.path("worktrees", name+refsSuffix) }

// noteRefs writes down where all refs are. Branches of other runs are left out: until they are handed back, messages on
// them have their force. So are the tips that ralph has put aside, for the same reason.
func (t *Tree) noteRefs(ctx context.Context) error {
	refs, ok := t.repo.refs.all()
	if !ok {
		var err error
		if refs, err = t.repo.git.readRefs(ctx); err != nil {
			return fmt.Errorf("note refs: %w", err)
		}
	}
	others := map[string]bool{}
	trees, _ := t.repo.Trees(ctx) // a broken record is the trouble of whoever needs it
	for _, other := range trees {
		if other.name != t.name {
			others[branchRef(other.Spec().Branch)] = true
		}
	}
	var commits []string
	for ref, commit := range refs {
		if !others[ref] && (!strings.HasPrefix(ref, ownPrefix) || strings.HasPrefix(ref, workPrefix)) {
			commits = append(commits, commit)
		}
	}
	slices.Sort(commits)
	content := strings.Join(slices.Compact(commits), "\n") + "\n"
	if err := writeNew(t.repo.refsPath(t.name), []byte(content), 0o600, true); err != nil {
		return fmt.Errorf("note refs: %w", err)
	}
	return nil
}

// notedRefs are the commits that refs were at before any agent worked in the tree.
func (t *Tree) notedRefs() ([]string, error) {
	content, err := os.ReadFile(t.repo.refsPath(t.name))
	if errors.Is(err, fs.ErrNotExist) { // nobody has noted them; then only the base is known
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("commits that were there before run %s: %w", t.Spec().Run, err)
	}
	return slices.DeleteFunc(strings.Split(string(content), "\n"), func(s string) bool { return !isObjectName(s) }), nil
}

// BaseNow is where the run's base stands by now, its commits brought here, as far as no agent can have moved it: on the
// remote where Base.Remote says so, else here where the agent has a repository of its own. Empty: that is not known.
func (t *Tree) BaseNow(ctx context.Context) (string, error) {
	if t.Spec().Base.Remote != "" {
		return t.remoteBase(ctx)
	}
	if t.record().Private {
		return t.baseHere(ctx)
	}
	return "", nil
}

// baseHere is where the base's branch is in this repository.
func (t *Tree) baseHere(ctx context.Context) (string, error) {
	s := t.Spec()
	ref := s.Base.Ref
	if !strings.HasPrefix(ref, "refs/heads/") || ref == branchRef(s.Branch) {
		return "", nil
	}
	refs, err := t.repo.readRefs(ctx, ref)
	return refs[ref], err
}

// remoteBase asks the remote where its branch of the base is. Where the configuration is not what it was any more when
// the worktree was made, the answer could be anybody's.
func (t *Tree) remoteBase(ctx context.Context) (string, error) {
	rec := t.record()
	branch := rec.remoteBranch(t.repo.opts.Remote)
	if branch == "" {
		return "", nil
	}
	now, err := t.repo.remoteConfig(ctx)
	if err != nil || now != rec.RemoteConfig {
		return "", err
	}
	return t.repo.remoteBranch(ctx, branch)
}

// remoteBranch is the remote's branch that the base is, or follows; empty when there is none.
func (rec record) remoteBranch(remote string) string {
	base := rec.Spec.Base
	if remote == "" || base.Remote != "" {
		return base.Remote
	}
	if branch, ok := strings.CutPrefix(base.Ref, "refs/remotes/"+remote+"/"); ok {
		return branch
	}
	branch, _ := strings.CutPrefix(base.Ref, "refs/heads/")
	return branch
}

// remoteConfig is a digest of what decides who answers for the remote.
func (r *Repo) remoteConfig(ctx context.Context) (string, error) {
	if r.opts.Remote == "" {
		return "", nil
	}
	out, err := r.git.with("GIT_CONFIG_COUNT=0").run(ctx, "", "config", "--list", "-z", "--includes")
	if err != nil {
		return "", fmt.Errorf("read git's configuration: %w", err)
	}
	sum := sha256.New()
	for _, s := range parseConfig(out) {
		section, name, key := s.split()
		switch section {
		case "remote":
			if name != r.opts.Remote {
				continue
			}
		case "core":
			if key != "sshcommand" && key != "gitproxy" {
				continue
			}
		case "url", "http":
		default:
			continue
		}
		_, _ = fmt.Fprintf(sum, "%s\x00%s\x00", s.name, s.value)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// mayHaveFetched reports a sign of commits that have come here since the worktree was made. A forged one costs a look
// at the remote.
func (t *Tree) mayHaveFetched(ctx context.Context, noted []string) (bool, error) {
	for _, dir := range []string{t.record().GitDir, t.privateDir()} {
		if _, err := os.Lstat(filepath.Join(dir, "FETCH_HEAD")); err == nil {
			return true, nil
		}
	}
	refs, err := t.repo.git.readRefs(ctx, "refs/remotes/")
	if err != nil {
		return false, err
	}
	for _, commit := range refs {
		if _, known := slices.BinarySearch(noted, commit); !known {
			return true, nil
		}
	}
	return false, nil
}

// own lists the commits of head that only the agent can have made, oldest first; before is what was taken in already.
func (t *Tree) own(ctx context.Context, head string, before []string, acts func(commit string) bool) ([]string, error) {
	rec := t.record()
	noted, err := t.notedRefs()
	if err != nil {
		return nil, err
	}
	theirs := slices.Concat(noted, before, []string{rec.Spec.Base.Commit, rec.Start})
	if rec.Private || rec.Spec.Base.Remote == "" {
		here, err := t.baseHere(ctx)
		if err != nil {
			return nil, err
		}
		theirs = append(theirs, here)
	}
	own, err := t.repo.without(ctx, head, theirs)
	if err != nil || !slices.ContainsFunc(own, acts) {
		return own, err
	}
	if fetched, err := t.mayHaveFetched(ctx, noted); err != nil || !fetched {
		return own, err
	}
	there, err := t.remoteBase(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	if err != nil { // commits are taken in without the remote, too
		t.repo.opts.Log.Warn().Err(err).Str("run", rec.Spec.Run).Msg("what people have committed meanwhile is not known")
	}
	if there == "" {
		return own, nil
	}
	return t.repo.without(ctx, head, append(theirs, there))
}

// without lists the commits of head that none of the others has, oldest first. What is not here any more has none.
func (r *Repo) without(ctx context.Context, head string, others []string) ([]string, error) {
	var in strings.Builder
	in.WriteString(head + "\n")
	for _, commit := range others {
		if commit != "" {
			in.WriteString("^" + commit + "\n")
		}
	}
	out, err := r.git.run(ctx, in.String(), "rev-list", "--topo-order", "--reverse", "--ignore-missing", "--stdin", "--")
	if err != nil {
		return nil, fmt.Errorf("list commits: %w", err)
	}
	return strings.Fields(out), nil
}
