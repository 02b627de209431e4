package github

import "context"

// MergeLater implements tracker.AutoMerger, by auto-merge or the base's merge queue.
func (t *Tracker) MergeLater(ctx context.Context, head, commit string) (refused string, err error) {
	number, err := t.ownPull(ctx, head)
	if err != nil || number == 0 {
		return "no request of ralph's is open for it", err
	}
	return t.graph.MergeLater(ctx, t.project.Owner, t.project.Name, number, commit)
}

// KeepOpen implements tracker.AutoMerger.
func (t *Tracker) KeepOpen(ctx context.Context, head string) error {
	number, err := t.ownPull(ctx, head)
	if err != nil || number == 0 {
		return err
	}
	return t.graph.KeepOpen(ctx, t.project.Owner, t.project.Name, number)
}

// ownPull is the number of ralph's own open pull request of a branch; 0 when there is none.
func (t *Tracker) ownPull(ctx context.Context, head string) (int, error) {
	me, err := t.identity(ctx)
	if err != nil {
		return 0, err
	}
	if p, err := t.pullOf(ctx, head); err != nil || p == nil || account(p.User).ID == me.ID {
		return p.GetNumber(), err
	}
	return 0, nil
}
