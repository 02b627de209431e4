package worktree

import (
	"context"
	"fmt"
	"strings"
)

// refEdit moves one ref from exactly old to new. An empty old means that the ref must not exist, an empty new deletes
// it; keep accepts whatever the ref is at.
type refEdit struct {
	ref, new, old string
	keep          bool
}

// readRefs reads refs by their full names; a name that ends in a slash reads everything below it. What does not exist
// is not in the map.
func (g git) readRefs(ctx context.Context, names ...string) (map[string]string, error) {
	out, err := g.out(ctx, append([]string{"for-each-ref", "--format=%(refname) %(objectname)", "--"}, names...)...)
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(out) {
		name, sha, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		refs[name] = sha
	}
	return refs, nil
}

// moveRefs makes all the edits or none. A ref that is not where an edit expects it fails with ErrMoved.
func (g git) moveRefs(ctx context.Context, reason string, edits ...refEdit) error {
	if len(edits) == 0 {
		return nil
	}
	var in strings.Builder
	for _, e := range edits {
		switch {
		case e.keep:
			fmt.Fprintf(&in, "update %s\x00%s\x00\x00", e.ref, e.new)
		case e.new == "":
			fmt.Fprintf(&in, "delete %s\x00%s\x00", e.ref, e.old)
		case e.old == "":
			fmt.Fprintf(&in, "create %s\x00%s\x00", e.ref, e.new)
		default:
			fmt.Fprintf(&in, "update %s\x00%s\x00%s\x00", e.ref, e.new, e.old)
		}
	}
	_, err := g.run(ctx, in.String(), "update-ref", "--no-deref", "-m", "ralph: "+reason, "--stdin", "-z")
	if err == nil || ctx.Err() != nil {
		return err
	}
	if moved := g.whichMoved(ctx, edits); moved != nil {
		return moved
	}
	return fmt.Errorf("move refs: %w", err)
}

// whichMoved finds out, from the refs themselves, whether a transaction failed because one was not where expected.
func (g git) whichMoved(ctx context.Context, edits []refEdit) error {
	names := make([]string, len(edits))
	for i, e := range edits {
		names[i] = e.ref
	}
	now, err := g.readRefs(ctx, names...)
	if err != nil {
		return nil //nolint:nilerr // the caller reports the transaction's own error
	}
	for _, e := range edits {
		if !e.keep && now[e.ref] != e.old {
			return fmt.Errorf("%w: %s is at %s, expected %s", ErrMoved, e.ref, orNone(now[e.ref]), orNone(e.old))
		}
	}
	return nil
}

func orNone(sha string) string {
	if sha == "" {
		return "nothing"
	}
	return short(sha)
}

func short(sha string) string { return sha[:min(12, len(sha))] }
