package publish

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/worktree/git"
)

// maxTemplate is the maximum length of a template in bytes: a forge limits the whole body.
const maxTemplate = 32 << 10

// templates returns the paths of request templates, in order of preference: those of the tracker's forge, and those that several
// forges read.
func templates(t tracker.Tracker) (paths []string) {
	if own, ok := tracker.As[tracker.Templater](t); ok {
		paths = append(paths, own.RequestTemplates()...)
	}
	for _, folder := range []string{".github/", "", "docs/"} {
		paths = append(paths, folder+"pull_request_template.md", folder+"PULL_REQUEST_TEMPLATE.md")
	}
	return paths
}

// Template returns the repository's own request template in the commit; "" if there is none or it is too long.
func Template(ctx context.Context, g git.Runner, commit string, t tracker.Tracker) (string, error) {
	paths := templates(t)
	out, err := g.Output(ctx, append([]string{"ls-tree", "-z", "--long", "--full-tree", commit, "--"}, paths...)...)
	if err != nil {
		return "", fmt.Errorf("request template: %w", err)
	}
	best, object := len(paths), ""
	for entry := range strings.SplitSeq(out, "\x00") {
		head, path, _ := strings.Cut(entry, "\t")
		f := strings.Fields(head) // mode, kind, object, size
		if len(f) != 4 || !strings.HasPrefix(f[0], "100") {
			continue // a link leads elsewhere
		}
		size, err := strconv.Atoi(f[3])
		if at := slices.Index(paths, path); err == nil && size <= maxTemplate && at >= 0 && at < best {
			best, object = at, f[2]
		}
	}
	if object == "" {
		return "", nil
	}
	text, err := g.Output(ctx, "cat-file", "blob", object)
	if err != nil {
		return "", fmt.Errorf("request template: %w", err)
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd")), nil
}
