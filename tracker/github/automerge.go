package github

import "context"

// MergeLater implements tracker.AutoMerger, by auto-merge or the base's merge queue.
func (t *Tracker) MergeLater(ctx context.Context, head, commit string) (refused string, err error) {
	own, err := t.OwnRequest(ctx, head)
	if err != nil || own.Number == 0 {
		return "no request of ralph's is open for it", err
	}
	return t.graph.MergeLater(ctx, own.Number, commit)
}

// KeepOpen implements tracker.AutoMerger.
func (t *Tracker) KeepOpen(ctx context.Context, head string) error {
	own, err := t.OwnRequest(ctx, head)
	if err != nil || own.Number == 0 {
		return err
	}
	return t.graph.KeepOpen(ctx, own.Number)
}
