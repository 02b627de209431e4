package worktree

import (
	"context"

	"github.com/ralph-pool/ralph/worktree/identity"
	"github.com/ralph-pool/ralph/worktree/record"
	"github.com/ralph-pool/ralph/worktree/span"
)

// Identity says in whose name commits are made.
type Identity = identity.Identity

var (
	// ErrNoIdentity means that git does not know the user's name and e-mail address, which commits need.
	ErrNoIdentity = identity.ErrNone
	// ErrSign means that git cannot sign commits.
	ErrSign = identity.ErrSign
)

// Finish rewrites the run's commits as Spec.Identity asks and moves the branch. It removes control characters from messages
// and names. With neutralize, it also changes messages that would act on a forge, for example through a closing keyword, a
// mention or [skip ci]. Commits after a rewritten one get new IDs, and lose signatures that are not the user's. It does not
// change commits of people or any files. A second call changes nothing.
func (t *Tree) Finish(ctx context.Context, neutralize bool) (result Import, err error) {
	key := t.Spec().Key
	err = t.repo.locked(ctx, key, "finish commits of "+key, func() (err error) {
		result, err = t.finish(ctx, neutralize)
		return err
	})
	return result, err
}

func (t *Tree) finish(ctx context.Context, neutralize bool) (Import, error) {
	if t.Spec().Detached {
		return Import{}, errDetached
	}
	refs, err := t.readRefs(ctx)
	if err != nil {
		return Import{}, err
	}
	before, err := t.readSpan(ctx, refs.tip(t.Start()))
	if err != nil {
		return Import{}, err
	}
	tip, err := t.finishSpan(ctx, before, neutralize)
	if err != nil {
		return Import{}, err
	}
	if tip == before.Tip {
		return Import{Tip: tip, Commits: before.Commits, WIP: refs.wip}, nil
	}
	after, err := t.readSpan(ctx, tip)
	if err != nil {
		return Import{}, err
	}
	// No ref may keep the old tip: its commits act on a forge or carry another name.
	edits, err := t.tipEdits(ctx, after, refs, before.Tip)
	if err != nil {
		return Import{}, err
	}
	if err := t.updateRecord(func(rec *record.Record) { rec.Replaced, rec.Finished = before.Tip, tip }); err != nil {
		return Import{}, err
	}
	if err := t.guard().MoveRefs(ctx, edits...); err != nil {
		return Import{}, err
	}
	return Import{Tip: tip, Commits: after.Commits, WIP: refs.wip}, nil
}

// finishSpan rewrites the commits of the span and returns the new tip.
func (t *Tree) finishSpan(ctx context.Context, s span.Span, neutralize bool) (string, error) {
	who := t.Spec().Identity
	ownCommits, err := t.ownCommits(ctx, s, !who.IsZero())
	if err != nil || len(ownCommits) == 0 {
		return s.Tip, err
	}
	config, err := t.userConfig(ctx)
	if err != nil {
		return "", err
	}
	w := t.repo.writer(who, identity.UserOrRalph(config))
	w.Neutralize, w.Signed = neutralize, s.Tip == t.record().Finished
	renamed, err := w.Rewrite(ctx, ownCommits)
	if next, ok := renamed[s.Tip]; ok {
		return next, err
	}
	return s.Tip, err
}

// writer returns a writer that makes commits in the name that the identity asks for.
func (r *Repo) writer(who Identity, user identity.Ident) identity.Writer {
	return identity.Writer{Git: r.git, Objects: r.objects, Identity: who.For(user)}
}

// User returns the user's name and address from git's configuration, or ralph's with ErrNoIdentity.
func (r *Repo) User(ctx context.Context) (identity.Ident, error) { return identity.User(ctx, r.git) }

// CheckIdentity checks, before any agent is started, that commits can be made as asked: git knows the user's name where it
// is needed, and can sign. environ is the environment of agents that commit with the user's own configuration, or nil.
func (r *Repo) CheckIdentity(ctx context.Context, who Identity, environ []string) error {
	return r.writer(who, identity.Ident{}).Check(ctx, who, environ, r.tempDir)
}
